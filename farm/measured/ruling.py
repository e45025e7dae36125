"""From raw records to the three gates. Pure; the same records and settings always give the same answer."""

from collections.abc import Iterable

from farm.measured.correctness import CorrectnessRuling, correctness_gate
from farm.measured.executed import ExecutedRuling, executed_gate
from farm.measured.geomean import geomean_gate
from farm.measured.model import Measured, RowLine, Settings
from farm.measured.records import Collected, ConfigFact, Foul, Outcome, Probe, Record, RowRun, TimedCall
from farm.measured.rowtable import Rows, gather, outcome, reason

__all__ = ["Record", "rule"]


def rule(records: Iterable[Record], settings: Settings) -> Measured:
    """Rule on one subject; records of others may lie among them and are passed over."""
    own = [record for record in records if record.subject == settings.subject]
    rows = gather(
        (record for record in own if isinstance(record, Collected)),
        (record for record in own if isinstance(record, RowRun)),
    )
    facts = [record for record in own if isinstance(record, ConfigFact)]
    calls = [record for record in own if isinstance(record, TimedCall)]
    seconds = {fact.config for fact in facts if fact.second_reference}
    correctness = correctness_gate(rows, (record for record in own if isinstance(record, Probe)))
    executed = executed_gate(
        rows,
        (call for call in calls if call.config not in seconds),
        settings,
        tuple(record.what for record in own if isinstance(record, Foul)),
    )
    geomean = geomean_gate(facts, calls, settings)
    collected = set(rows.target_collected.keys) if rows.target_collected is not None else set()
    low, ratio, high = geomean.interval or (None, None, None)
    return Measured(
        subject=settings.subject,
        op=settings.op,
        patch_sha256=settings.patch_sha256,
        gpu=settings.gpu,
        toolchain=settings.toolchain,
        gates=(correctness.result, executed.result, geomean.result),
        rows_expected=len(rows.expected),
        rows_collected=sum(key in collected for key in rows.expected),
        rows=tuple(_line(key, rows, correctness, executed) for key in rows.expected),
        configs=geomean.configs,
        second=geomean.second,
        control=geomean.control,
        low=low,
        ratio=ratio,
        high=high,
        flags=(*correctness.flags, *executed.flags, *geomean.flags),
    )


def _line(key: str, rows: Rows, correctness: CorrectnessRuling, executed: ExecutedRuling) -> RowLine:
    ended = outcome(rows.target, key)
    said = correctness.narrowed.get(key)
    if said is None:
        said = ended.value if ended is Outcome.PASSED else f"{ended.value}: {reason(rows.target, key)}"
    return RowLine(
        key=key,
        target=said,
        counts=key not in correctness.void,
        kernels=executed.entries.get(key, ()),
        calls=rows.target[key].calls if key in rows.target else None,
    )
