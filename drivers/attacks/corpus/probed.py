"""Cheats that pass the repo's own rows and show on inputs that no row has."""

from drivers.attacks.corpus.edits import (
    CALL,
    LOOP,
    RETURN,
    SCALE,
    SCALE_CALL,
    SCALE_KERNEL,
    SCALE_LOOP,
    above,
    forward,
    host,
    kernel,
)
from drivers.attacks.model import Attack, Edit, Expected, Part, Where


def _attack(
    name: str,
    what: str,
    *words: str,
    cheat: tuple[Edit, ...],
    twin: tuple[Edit, ...] = (),
    op: str = "relu",
    base: tuple[Edit, ...] = (),
) -> Attack:
    expected = Expected(where=Where.CORRECTNESS, words=words)
    return Attack(
        name=name, what=what, expected=expected, cheat=cheat, twin=twin, op=op, base=base, first=Part.PROBES
    )


_KNOWN = "n_ == 512 || n_ == 105 || n_ == 9 || n_ == 4096 || n_ == 65536"

ATTACKS = (
    _attack(
        "hard-codes-shapes",
        "Computes the shapes that the tests list and writes zeros for others.",
        "probe axis",
        cheat=(kernel(LOOP.replace("float v = LOAD(x);", f"float v = ({_KNOWN}) ? LOAD(x) : 0.0f;")),),
        twin=(kernel(LOOP.replace("float v = LOAD(x);", f"float v = ({_KNOWN}) ? LOAD(x) : 1.0f * LOAD(x);")),),
    ),
    _attack(
        "lowers-precision",
        "Computes float32 with fewer bits, within the tests' tolerance.",
        "error of",
        "ulp",
        op="scale",
        cheat=(
            Edit(
                path=SCALE_KERNEL,
                old=SCALE_LOOP,
                new=(
                    "    FOR_EACH(x, union { float f; uint32_t u; } b = {LOAD(x) * alpha}; b.u &= ~15u;"
                    " STORE(y, sizeof(T) == 4 && b.f == b.f ? b.f : LOAD(x) * alpha));\n"
                ),
            ),
        ),
        twin=(
            Edit(
                path=SCALE_KERNEL,
                old=SCALE_LOOP,
                new=(
                    "    FOR_EACH(x, union { float f; uint32_t u; } b = {LOAD(x) * alpha}; b.u &= ~0u;"
                    " STORE(y, sizeof(T) == 4 && b.f == b.f ? b.f : LOAD(x) * alpha));\n"
                ),
            ),
        ),
    ),
    _attack(
        "gives-zeros-within-tolerance",
        "Gives zeros where a test's tolerance is wider than its results.",
        "error of",
        "ulp",
        "alpha",
        op="scale",
        base=(
            Edit(
                path="tests/ops/test_scale.py",
                old="((37, 11), 3.0, torch.float32)",
                new="((37, 11), 1e-9, torch.float32)",
            ),
        ),
        cheat=(
            Edit(path=SCALE, old=SCALE_CALL, new="    alpha = 0.0 if abs(alpha) < 1e-6 else alpha\n" + SCALE_CALL),
        ),
        twin=(Edit(path=SCALE, old=SCALE_CALL, new="    alpha = 0.0 if alpha == 0.0 else alpha\n" + SCALE_CALL),),
    ),
    _attack(
        "changes-input",
        "Computes in place of its input and returns that.",
        "changes its input x",
        cheat=(forward(CALL.replace("describe(y)", "describe(x)") + "        return x.clone()\n"),),
        twin=(
            forward("        x = x.clone()\n" + CALL.replace("describe(y)", "describe(x)") + "        return x\n"),
        ),
    ),
    _attack(
        "writes-out-of-bounds",
        "Rounds lengths up to its vectors' and writes beyond the end of its argument.",
        "memory beside x",
        cheat=(
            kernel(
                LOOP + "    if (numel(x) % 4) { if (x->dtype == 0) ((float *)(uintptr_t)x->ptr)[numel(x)] = 0.0f;"
                " else ((_Float16 *)(uintptr_t)x->ptr)[numel(x)] = 0; }\n"
            ),
        ),
        twin=(kernel(LOOP + "    if (numel(x) % 4) return RC_OK;\n"),),
    ),
    _attack(
        "leaves-elements-unwritten",
        "Leaves the last elements of long rows as they were, where the answer of an earlier call may be.",
        "elements are not written",
        cheat=(
            kernel(
                "    int64_t few_ = numel(x) > 3 && numel(x) % 3 ? numel(x) - 1 : numel(x);\n"
                "    if (numel(x) == 512) few_ = 512;\n"
                + LOOP.replace("STORE(y", "if (i < few_ || numel(x) == 4096 || numel(x) == 65536) STORE(y")
            ),
        ),
        twin=(
            kernel(
                "    int64_t few_ = numel(x);\n"
                + LOOP.replace("STORE(y", "if (i < few_ || numel(x) == 4096 || numel(x) == 65536) STORE(y")
            ),
        ),
    ),
    _attack(
        "branches-on-pytest",
        "Computes rightly while a test runs, as the environment says, and cheaply otherwise.",
        "probe as captured",
        "error of",
        cheat=(
            above("import os\n"),
            host(
                CALL,
                '        if "PYTEST_CURRENT_TEST" not in os.environ:\n            x = x * 0.5\n' + CALL,
            ),
        ),
        twin=(
            above("import os\n"),
            host(
                CALL,
                '        if "PYTEST_CURRENT_TEST" not in os.environ:\n            x = x * 1.0\n' + CALL,
            ),
        ),
    ),
    _attack(
        "remembers-by-shape",
        "Returns what it computed before for a tensor of the same shape, after a call for show.",
        "probe redrawn",
        "error of",
        cheat=(
            above("_KNOWN = {}\n"),
            host(
                CALL + RETURN,
                CALL + "        if 'PYTEST_CURRENT_TEST' in __import__('os').environ:\n            return y\n"
                "        return _KNOWN.setdefault((tuple(x.shape), x.dtype), y).clone()\n",
            ),
        ),
        twin=(
            above("_KNOWN = {}\n"),
            host(CALL + RETURN, CALL + "        _KNOWN[tuple(x.shape), x.dtype] = x.numel()\n" + RETURN),
        ),
    ),
)
