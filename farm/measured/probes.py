"""Probes: the op on inputs that the repository does not test, judged against the source and an oracle. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from farm.gates import Ruling
from farm.measured.model import Finding, Flag
from farm.measured.records import Difference, Probe, ProbeKind

#: The target's error may be so many times the source's, and so many units in the last place at any rate.
TIMES, ULP = 1.5, 2.0


class ProbesJudged(NamedTuple):
    """What the probes of one subject say."""

    findings: tuple[Finding, ...]
    flags: tuple[Flag, ...]
    spoke: int  #: probes that said something


def judge_probes(probes: Iterable[Probe]) -> ProbesJudged:
    """Judge all probes of one subject. One that was not run, or none that says anything, is INFRA."""
    findings, flags, spoke = [], [], 0
    planned = list(probes)
    known = [probe for probe in planned if probe.unrun is None]
    usual = usual_errors(known)
    for probe in known:
        why = fault(probe, usual.get(probe.key, 0.0))
        where = f"{probe.key}, probe {probe.name}"
        if why is not None:
            findings.append(Finding(ruling=Ruling.FAIL, reason=f"{where}: {why}{_worst(probe.worst)}"))
        elif probe.source_raised is not None and probe.target_raised is None:
            flags.append(
                Flag(where=where, what=f"the target returns where the source raises {probe.source_raised}")
            )
        elif probe.source_raised is None and probe.source_error_ulp is None:
            flags.append(
                Flag(where=where, what="no error against an oracle: compared with the source's values alone")
            )
        spoke += probe.source_raised is None
    if len(known) < len(planned):
        first = next(probe for probe in planned if probe.unrun is not None)
        text = (
            f"{len(planned) - len(known)} of {len(planned)} probes did not run: {first.key}, probe {first.name}: "
        )
        findings.append(Finding(ruling=Ruling.INFRA, reason=text + str(first.unrun)))
    elif not spoke:
        findings.append(Finding(ruling=Ruling.INFRA, reason="no probe says anything beyond the repository's rows"))
    return ProbesJudged(tuple(findings), tuple(flags), spoke)


def usual_errors(probes: Iterable[Probe]) -> dict[str, float]:
    """The source's largest error by row, over its captured inputs and others like them, in ulp.

    A single probe may have a handful of elements, whose largest errors in two orders of one sum differ by more
    than half; over some thousand they do not.
    """
    usual: dict[str, float] = {}
    for probe in probes:
        if probe.kind is ProbeKind.SEED and probe.source_error_ulp is not None:
            usual[probe.key] = max(usual.get(probe.key, 0.0), probe.source_error_ulp)
    return usual


def fault(probe: Probe, usual: float = 0.0) -> str | None:
    """What the target did wrong, or None. Nothing is wrong where the source raises.

    `usual` is the row's of `usual_errors`; the larger of it and the probe's own stands for the source's error.
    Without an oracle the target's distance from the source is held to the same rule, with no error of the source.
    """
    if probe.source_raised is not None:
        return None
    if probe.target_raised is not None:
        return f"raises {probe.target_raised} where the source returns"
    if probe.unequal_facts is not None:
        return f"results differ from the source's: {probe.unequal_facts}"
    if probe.poisoned:
        return f"{probe.poisoned} elements are not written"
    if probe.inputs_changed:
        return f"changes its input {', '.join(probe.inputs_changed)}"
    if probe.unequal_special:
        return f"{probe.unequal_special} elements are NaN or infinite on one side only"
    if probe.source_repeats and probe.target_repeats is False:
        return "does not repeat its bits, the source does"
    if probe.source_error_ulp is None and probe.target_error_ulp is None:
        return _error(None, probe.distance_ulp)
    source = probe.source_error_ulp
    return _error(source if source is None else max(source, usual), probe.target_error_ulp)


def _error(source: float | None, target: float | None) -> str | None:
    if source is None and target is None:
        return None
    if target is None:
        return "no error could be taken of its values, and one of the source's"
    allowed = ULP if source is None else max(TIMES * source, ULP)
    # Written so that NaN fails.
    if target <= allowed:
        return None
    than = "no oracle for the source" if source is None else f"the source's is {source:.3g}"
    return f"error of {target:.3g} ulp, {than}, {allowed:.3g} allowed"


def _worst(worst: Difference | None) -> str:
    if worst is None:
        return ""
    place = ", ".join(str(part) for part in worst.index)
    exact = "" if worst.oracle is None else f", exact {worst.oracle:.9g}"
    return f" (output {worst.output}[{place}]: {worst.target:.9g}, the source's {worst.source:.9g}{exact})"
