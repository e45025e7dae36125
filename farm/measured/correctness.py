"""The correctness gate: from rows, null kernels and probes to a ruling. Pure.

Expected is what the source passes on the machine where the gate runs. Every expected row must be collected,
pass, and give back what the source gives back. A row that passes with a kernel that computes nothing proves
nothing and is not counted. Inputs that no test of the repository has are judged by their error.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from farm.gates import Basis, GateName, GateResult, Ruling
from farm.measured.model import Finding, Flag
from farm.measured.probes import judge_probes
from farm.measured.records import Outcome, Probe, ResultFact, RowRun
from farm.measured.rowtable import Rows, outcome, reason


class CorrectnessRuling(NamedTuple):
    """The gate and what it rests on."""

    result: GateResult
    void: dict[str, str]  #: expected rows that prove nothing, with the reason
    narrowed: dict[str, str]  #: rows the target supports less of, with the reason
    flags: tuple[Flag, ...]


def correctness_gate(rows: Rows, probes: Iterable[Probe]) -> CorrectnessRuling:
    """Rule on the records of one subject. What the target did wrong comes before what could not be measured."""
    void = dict(_void(rows))
    narrowed = dict(_narrowed(rows))
    judged = judge_probes(probes)
    findings = [*_rows(rows, narrowed), *judged.findings, *_unknown(rows, void)]
    bad = [f for wanted in (Ruling.FAIL, Ruling.INFRA, Ruling.AMBIGUOUS) for f in findings if f.ruling is wanted]
    source_failed = [key for key in rows.source if outcome(rows.source, key) is Outcome.FAILED]
    flags = [
        *(Flag(where=key, what=f"the source itself fails: {reason(rows.source, key)}") for key in source_failed),
        *(Flag(where=key, what=f"proves nothing: {why}") for key, why in void.items()),
        *judged.flags,
    ]
    if not rows.expected:
        result = _gate(Ruling.INFRA, _source_problem(rows))
    elif bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        result = _gate(bad[0].ruling, bad[0].reason + more)
    else:
        count = len(rows.expected) - len(void)
        result = _gate(Ruling.PASS, f"measured {count}/{count}")
    return CorrectnessRuling(result=result, void=void, narrowed=narrowed, flags=tuple(flags))


def _gate(ruling: Ruling, summary: str) -> GateResult:
    return GateResult(gate=GateName.CORRECTNESS, ruling=ruling, basis=Basis.MEASURED, summary=summary)


def _source_problem(rows: Rows) -> str:
    """Why nothing is expected: whatever it was, the target had no part in it."""
    collected = rows.source_collected
    if collected is None:
        return "the source's rows were not collected"
    if not collected.keys:
        return "the source has no rows: " + (
            collected.uncollected[0] if collected.uncollected else "none collected"
        )
    worst = max(collected.keys, key=lambda key: outcome(rows.source, key) is Outcome.FAILED)
    return f"the source passes none of its {len(collected.keys)} rows: {worst}: {reason(rows.source, worst)}"


def _rows(rows: Rows, narrowed: dict[str, str]) -> Iterator[Finding]:
    total = len(rows.expected)
    for side, collected in (("target", rows.target_collected), ("source", rows.source_collected)):
        if collected is None:
            yield Finding(ruling=Ruling.INFRA, reason=f"the {side}'s rows were not collected")
        elif collected.uncollected:
            ruling = Ruling.FAIL if side == "target" else Ruling.INFRA
            yield Finding(ruling=ruling, reason=f"the {side} could not collect {collected.uncollected[0]}")
    failed = [key for key in rows.expected if outcome(rows.target, key) is Outcome.FAILED]
    if failed:
        why = reason(rows.target, failed[0])
        yield Finding(ruling=Ruling.FAIL, reason=f"{len(failed)} of {total} rows fail: {failed[0]}: {why}")
    if narrowed:
        key, why = next(iter(narrowed.items()))
        text = f"narrowed support, {total - len(narrowed)} of {total}: {key}: {why}"
        yield Finding(ruling=Ruling.FAIL, reason=text)
    keys = rows.source_collected.keys if rows.source_collected else ()
    unknown = [key for key in keys if outcome(rows.source, key) is Outcome.NOT_RUN]
    if unknown:
        text = f"{len(unknown)} of {len(keys)} rows of the source did not run: {unknown[0]}: "
        yield Finding(ruling=Ruling.INFRA, reason=text + reason(rows.source, unknown[0]))
    missing = [
        key for key in rows.expected if key not in narrowed and outcome(rows.target, key) is Outcome.NOT_RUN
    ]
    if missing:
        text = f"{len(missing)} of {total} rows of the target did not run: {missing[0]}: "
        yield Finding(ruling=Ruling.INFRA, reason=text + reason(rows.target, missing[0]))


def _unknown(rows: Rows, void: dict[str, str]) -> Iterator[Finding]:
    """Where no row proves anything the target is neither proven nor disproven."""
    if rows.expected and len(void) == len(rows.expected):
        why = next(iter(void.values()))
        tried = any(rows.null.get(key) for key in rows.expected)
        ruling = Ruling.AMBIGUOUS if tried else Ruling.INFRA
        yield Finding(ruling=ruling, reason=f"none of {len(void)} rows proves anything: {why}")


def _void(rows: Rows) -> Iterator[tuple[str, str]]:
    """Expected rows whose null kernels did not all fail, or were not tried."""
    for key in rows.expected:
        runs = rows.null.get(key, {})
        passed = sorted(name for name, run in runs.items() if run.outcome is Outcome.PASSED)
        if passed:
            yield key, f"it passes with the null kernel {', '.join(passed)}"
        elif not any(run.outcome is Outcome.FAILED for run in runs.values()):
            yield key, "no null kernel was run on it"


def _narrowed(rows: Rows) -> Iterator[tuple[str, str]]:
    """Expected rows that the target does not collect, skips, or passes with less than the source gives back."""
    collected = rows.target_collected
    for key in rows.expected:
        if collected is not None and key not in collected.keys:
            yield key, "not collected"
        elif outcome(rows.target, key) is Outcome.SKIPPED:
            yield key, f"skipped: {reason(rows.target, key)}"
        elif outcome(rows.target, key) is Outcome.PASSED:
            less = difference(rows.source[key], rows.target[key])
            if less is not None:
                yield key, less


def difference(source: RowRun, target: RowRun) -> str | None:
    """How what the target gave back in a row differs from what the source gave back, or None.

    Strides of dimensions with at most one element say nothing and are not compared.
    """
    if len(source.results) != len(target.results):
        return f"{len(target.results)} results, the source gives {len(source.results)}"
    for number, (expected, found) in enumerate(zip(source.results, target.results, strict=True)):
        for name, one, other in (
            ("shape", expected.shape, found.shape),
            ("dtype", expected.dtype, found.dtype),
            ("stride", _strides(expected), _strides(found)),
            ("requires_grad", expected.requires_grad, found.requires_grad),
        ):
            if one != other:
                return f"result {number} has {name} {other}, the source's has {one}"
    if source.backwards != target.backwards:
        return f"{target.backwards} backward passes, the source has {source.backwards}"
    return None


def _strides(fact: ResultFact) -> tuple[int | None, ...]:
    if 0 in fact.shape:
        return ()
    return tuple(stride if size > 1 else None for size, stride in zip(fact.shape, fact.stride, strict=True))
