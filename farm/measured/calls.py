"""What timed calls give away before any ratio is taken: cheats of the target, failures of the measuring. Pure.

A cheat is a FAIL. What the measuring lost is INFRA, and so is anything odd in the reference, which is trusted
code. Device records that are incomplete convict nobody: kernels and streams are looked at in whole calls alone.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from farm.gates import Ruling
from farm.measured.model import Finding
from farm.measured.records import TimedCall

_Found = Callable[[str, str], Finding]


def call_findings(calls: Iterable[TimedCall]) -> tuple[Finding, ...]:
    """Everything wrong with the calls of one subject, cheats first."""
    by_config: dict[str, list[TimedCall]] = defaultdict(list)
    for call in calls:
        by_config[call.config].append(call)
    found = [finding for config, listed in by_config.items() for finding in _config(config, listed)]
    return tuple(sorted(found, key=lambda finding: finding.ruling is not Ruling.FAIL))


def _config(config: str, calls: Sequence[TimedCall]) -> Iterator[Finding]:
    lost = sum(call.lost for call in calls)
    if lost:
        yield _infra(config, f"{lost} device records lost")
    empty = sum(not call.events for call in calls)
    if empty:
        yield _infra(config, f"no device record in {empty} of {len(calls)} calls")
    if any(event.end_ns <= event.start_ns for call in calls for event in call.events):
        yield _infra(config, "a device record of no duration")
    for control in (False, True):
        for first in (True, False):
            # Each is a process of its own, which may have tuned its kernels otherwise.
            side = [call for call in calls if (call.control, call.reference) == (control, first)]
            if control or first:
                yield from _side(config, "the control" if control else "the reference", side, _infra)
            else:
                yield from _side(config, "the target", side, _fail)
    streams = max((len(_streams(call)) for call in calls if call.reference or call.control), default=1)
    target = [call for call in calls if _whole(call) and not (call.reference or call.control)]
    spread = next((call for call in target if len(_streams(call)) > streams), None)
    if spread is not None:
        yield _fail(
            config,
            f"the target works on {len(_streams(spread))} streams, the source on {streams}, {_place(spread)}",
        )


def _side(config: str, who: str, side: Sequence[TimedCall], found: _Found) -> Iterator[Finding]:
    # Causes before what follows from them: the first finding is what a gate says.
    late = next((call for call in side if call.late), None)
    if late is not None:
        yield found(config, f"{who} was still working after the synchronisation, {_place(late)}")
    whole = [call for call in side if _whole(call)]
    usual = _kernels(whole[0]) if whole else Counter()
    other = next((call for call in whole if _kernels(call) != usual), None)
    if other is not None:
        differences = (("more", _kernels(other) - usual), ("fewer", usual - _kernels(other)))
        listed = "; ".join(f"{word} {_listed(kernels)}" for word, kernels in differences if kernels)
        yield found(config, f"{who} does not launch the same kernels in each call, {_place(other)}: {listed}")
    wrong = [call for call in side if not call.same_output]
    stale = [call for call in wrong if call.stale]
    nothing = [call for call in wrong if not call.stale and not call.events and not call.lost]
    for what, calls in (
        ("the result of an earlier call again from", stale),
        ("no work and a wrong output from", nothing),
        ("wrong output of", [call for call in wrong if call not in stale and call not in nothing]),
    ):
        if calls:
            yield found(config, f"{what} {who} in {len(calls)} of {len(side)} calls, {_place(calls[0])}")


def _whole(call: TimedCall) -> bool:
    return bool(call.events) and not call.lost


def _kernels(call: TimedCall) -> "Counter[str]":
    return Counter(event.symbol for event in call.events)


def _listed(kernels: "Counter[str]") -> str:
    return ", ".join(f"{count} x {symbol}" for symbol, count in sorted(kernels.items()))


def _streams(call: TimedCall) -> set[int]:
    return {event.stream for event in call.events}


def _place(call: TimedCall) -> str:
    return f"block {call.block} slot {call.slot} call {call.repeat}"


def _fail(config: str, reason: str) -> Finding:
    return Finding(ruling=Ruling.FAIL, reason=f"{config}: {reason}")


def _infra(config: str, reason: str) -> Finding:
    return Finding(ruling=Ruling.INFRA, reason=f"{config}: {reason}")
