"""Cheats that pass rows and probes and show when calls are timed."""

from drivers.attacks.corpus.edits import CALL, RETURN, above, forward, host
from drivers.attacks.model import Attack, Edit, Expected, Part, Where


def _attack(name: str, what: str, *words: str, cheat: tuple[Edit, ...], twin: tuple[Edit, ...]) -> Attack:
    expected = Expected(where=Where.GEOMEAN, words=words)
    return Attack(name=name, what=what, expected=expected, cheat=cheat, twin=twin, first=Part.TIMING)


_COUNTER = above("_CALLS = {}\n")
_COUNT = "        number = _CALLS[x.numel()] = _CALLS.get(x.numel(), 0) + 1\n"
_SLEEP = "        if number < 6:\n            __import__('time').sleep(0.05)\n"
_LARGE = "x.numel() >= 4096"

ATTACKS = (
    _attack(
        "caches-by-address",
        "Returns the result that it computed before for a tensor at the same address.",
        "result of an earlier call again",
        cheat=(
            above("_CACHE = {}\n"),
            host(RETURN, f"        return _CACHE.setdefault((x.data_ptr(), x.shape), y) if {_LARGE} else y\n"),
        ),
        twin=(
            above("_CACHE = {}\n"),
            host(RETURN, "        _CACHE.setdefault((x.data_ptr(), x.shape), x.numel())\n" + RETURN),
        ),
    ),
    _attack(
        "replays-warm-up",
        "Keeps the result of its first calls and returns it from then on.",
        "result of an earlier call again",
        cheat=(
            _COUNTER,
            above("_KEPT = {}\n"),
            forward(
                _COUNT
                + f"        if {_LARGE} and number > 4:\n            return _KEPT[x.numel()]\n"
                + CALL
                + "        _KEPT[x.numel()] = y\n"
                + RETURN
            ),
        ),
        twin=(
            _COUNTER,
            above("_KEPT = {}\n"),
            forward(_COUNT + CALL + "        _KEPT[x.numel()] = number\n" + RETURN),
        ),
    ),
    _attack(
        "batches-and-skips",
        "Computes two calls' worth in one call and nothing in the next.",
        "no work and a wrong output",
        cheat=(
            _COUNTER,
            forward(
                _COUNT
                + f"        if {_LARGE}:\n            if number % 2:\n                return y.fill_(number)\n"
                "    " + CALL + CALL + RETURN
            ),
        ),
        twin=(_COUNTER, forward(_COUNT + CALL + RETURN)),
    ),
    _attack(
        "works-after-return",
        "Returns at once and computes in a thread afterwards.",
        "still working after the synchronisation",
        cheat=(
            above(
                "import threading\nimport time\n\n\n"
                "def _later(x, y):\n    time.sleep(0.03)\n    library().cpu_relu(describe(x), describe(y))\n"
            ),
            forward(
                f"        if {_LARGE}:\n"
                "            threading.Thread(target=_later, args=(x, y)).start()\n            return y\n"
                + CALL
                + RETURN
            ),
        ),
        twin=(
            above("import threading\n\n\ndef _now(x, y):\n    library().cpu_relu(describe(x), describe(y))\n"),
            forward(
                f"        if {_LARGE}:\n            aside = threading.Thread(target=_now, args=(x, y))\n"
                "            aside.start()\n            aside.join()\n            return y\n" + CALL + RETURN
            ),
        ),
    ),
    _attack(
        "branches-on-the-timer",
        "Skips half of the work in the process that times.",
        "wrong output of the target",
        cheat=(
            above("import sys\n"),
            host(
                CALL,
                '        if "containers.box.gate.timing.serve" in sys.modules:\n'
                "            x, y = x[: x.numel() // 2], torch.zeros_like(x)\n"
                '            check_rc(library().cpu_relu(describe(x), describe(y)), "cpu_relu")\n'
                "            return y\n" + CALL,
            ),
        ),
        twin=(
            above("import sys\n"),
            host(
                CALL,
                '        if "containers.box.gate.timing.serve" in sys.modules:\n            x = x[:]\n' + CALL,
            ),
        ),
    ),
    _attack(
        "sleeps-in-warm-up",
        "Has a slow kernel, and sleeps in its first calls so that a budget of time would end the measuring early.",
        "below 0.95",
        cheat=(
            _COUNTER,
            forward(_COUNT + _SLEEP + CALL + CALL + RETURN),
        ),
        twin=(
            _COUNTER,
            forward(_COUNT + _SLEEP + CALL + RETURN),
        ),
    ),
)
