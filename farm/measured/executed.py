"""The executed gate: that the target backend really ran, and nothing else in its place. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from farm.gates import Basis, GateName, GateResult, Ruling
from farm.measured.model import Finding, Flag, Settings
from farm.measured.process import process_findings
from farm.measured.records import Outcome, RowRun, TimedCall
from farm.measured.rowtable import Rows, outcome, reason
from farm.measured.symbols import entries_in, foreign, is_framework, is_source, most


class ExecutedRuling(NamedTuple):
    """The gate and what it rests on."""

    result: GateResult
    entries: dict[str, tuple[str, ...]]  #: the candidate's entries that ran, by row
    flags: tuple[Flag, ...]


def executed_gate(
    rows: Rows, calls: Iterable[TimedCall], settings: Settings, foul: Sequence[str] = ()
) -> ExecutedRuling:
    """Rule on the records of one subject: rows, the stub libraries, the timed calls and the process.

    `foul` is what was seen of deceit, a sentence each.
    """
    ran = {key: rows.target[key] for key in rows.expected if outcome(rows.target, key) is Outcome.PASSED}
    idle = [key for key in ran if _idle(rows.source[key], settings)]
    findings = [
        *(Finding(ruling=Ruling.FAIL, reason=f"foul play: {what}") for what in foul),
        *_rows(rows, ran, set(idle), settings),
        *_stub(rows, set(idle)),
        *_hollow(rows, set(idle)),
        *_timed(list(calls), settings),
        *process_findings(rows.target_collected, rows.source_collected),
    ]
    bad = [f for wanted in (Ruling.FAIL, Ruling.INFRA) for f in findings if f.ruling is wanted]
    if not rows.expected:
        result = _gate(Ruling.INFRA, "no row is expected, so none shows what ran")
    elif bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        result = _gate(bad[0].ruling, bad[0].reason + more)
    elif len(ran) < len(rows.expected):
        result = _gate(Ruling.INFRA, f"{len(rows.expected) - len(ran)} of {len(rows.expected)} rows did not pass")
    elif len(idle) == len(ran):
        result = _gate(Ruling.INFRA, "the source itself launches nothing in any row")
    else:
        result = _gate(Ruling.PASS, f"measured {len(ran) - len(idle)}/{len(ran) - len(idle)}")
    return ExecutedRuling(
        result=result,
        entries={key: entries_in(run.kernels or {}, settings) for key, run in ran.items()},
        flags=tuple(Flag(where=key, what="the source launches nothing in this row") for key in idle),
    )


def _gate(ruling: Ruling, summary: str) -> GateResult:
    return GateResult(gate=GateName.EXECUTED, ruling=ruling, basis=Basis.MEASURED, summary=summary)


def _idle(source: RowRun, settings: Settings) -> bool:
    """Whether the source surely launches nothing of its own in a row, as with empty tensors; unknown is no."""
    if not settings.source_kernels or source.kernels is None or source.lost:
        return False
    return all(is_framework(symbol) and not is_source(symbol, settings) for symbol in source.kernels)


def _rows(rows: Rows, ran: dict[str, RowRun], idle: set[str], settings: Settings) -> Iterator[Finding]:
    if not settings.entries:
        yield Finding(ruling=Ruling.INFRA, reason="the candidate's entries are not known")
        return
    for key, run in ran.items():
        source = rows.source[key]
        if run.kernels is None or source.kernels is None:
            yield Finding(ruling=Ruling.INFRA, reason=f"{key}: no device records")
            continue
        if run.lost or source.lost:
            yield Finding(ruling=Ruling.INFRA, reason=f"{key}: {run.lost + source.lost} device records lost")
            continue
        if run.calls is None:
            yield Finding(ruling=Ruling.INFRA, reason=f"{key}: calls of the library were not counted")
        elif run.calls == 0 and key not in idle:
            yield Finding(ruling=Ruling.FAIL, reason=f"{key}: passes without a call of the library")
        if not entries_in(run.kernels, settings) and key not in idle:
            yield Finding(ruling=Ruling.FAIL, reason=f"{key}: none of the candidate's entries ran")
        other = foreign(run.kernels, source.kernels, settings)
        if other is not None:
            yield Finding(ruling=Ruling.FAIL, reason=f"{key}: launches {other}")


def _stub(rows: Rows, idle: set[str]) -> Iterator[Finding]:
    """With a library whose exports all fail, every expected row must fail in which the source does something."""
    busy = [key for key in rows.expected if key not in idle]
    alive = [key for key in busy if outcome(rows.stub, key) in {Outcome.PASSED, Outcome.SKIPPED}]
    if alive:
        how = outcome(rows.stub, alive[0]).value
        text = f"{len(alive)} of {len(busy)} rows do not fail with a library that fails: {alive[0]} {how}"
        yield Finding(ruling=Ruling.FAIL, reason=text)
    unknown = [key for key in busy if outcome(rows.stub, key) is Outcome.NOT_RUN]
    if unknown:
        text = f"{len(unknown)} of {len(busy)} rows did not run with a library that fails: {unknown[0]}: "
        yield Finding(ruling=Ruling.INFRA, reason=text + reason(rows.stub, unknown[0]))


def _hollow(rows: Rows, idle: set[str]) -> Iterator[Finding]:
    """With a library that reports success and does nothing, a row passes only if something else did the work.

    Not asked of rows that prove nothing, as a null kernel shows, or in which the source does nothing. A row that
    did not run says nothing.
    """
    proving = [
        key
        for key in rows.expected
        if key not in idle and not any(run.outcome is Outcome.PASSED for run in rows.null.get(key, {}).values())
    ]
    alive = [key for key in proving if outcome(rows.hollow, key) is Outcome.PASSED]
    if alive:
        text = f"{len(alive)} of {len(proving)} rows pass with a library that does nothing: {alive[0]}"
        yield Finding(ruling=Ruling.FAIL, reason=text)


def _timed(calls: Sequence[TimedCall], settings: Settings) -> Iterator[Finding]:
    """Timed calls hold the op's own work alone, so nothing of a test hides what runs beside the entries."""
    if not settings.entries:
        return
    for config in dict.fromkeys(call.config for call in calls):
        whole = [call for call in calls if call.config == config and call.events and not call.lost]
        source = most([_kernels(call) for call in whole if call.reference or call.control])
        for call in whole:
            if call.reference or call.control:
                continue
            kernels = _kernels(call)
            other = foreign(kernels, source, settings)
            if other is not None:
                yield Finding(ruling=Ruling.FAIL, reason=f"{config}, timed: launches {other}")
                break
            if not entries_in(kernels, settings):
                yield Finding(ruling=Ruling.FAIL, reason=f"{config}, timed: none of the candidate's entries ran")
                break


def _kernels(call: TimedCall) -> "Counter[str]":
    return Counter(event.symbol for event in call.events)
