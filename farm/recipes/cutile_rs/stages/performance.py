"""performance.json and the two records below perf/: what was timed, or that nothing was and why.

A report's figures are worth nothing by themselves: `problem` recomputes them from the raw records, as the gate
does.
"""

from dataclasses import dataclass
from pathlib import Path

from farm.codec import CodecError
from farm.measured.model import Settings
from farm.measured.records import Record, TimedCall
from farm.orders import BoxOrder
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.stages.tools import load, save
from farm.tree import sha256

REPORT = "performance.json"
SIDES = ("baseline", "candidate")
#: Of recomputed figures: they come from the same arithmetic on the same numbers.
TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class SideRecord:
    """perf/baseline.json, perf/candidate.json: where a side's raw records are."""

    side: str  #: `baseline` or `candidate`
    op: str
    gpu: str  #: architecture, e.g. `sm_90`
    deferred: str | None  #: why nothing was measured; None: it was
    records: str | None = None  #: file of raw records beside this one, a JSON line each
    sha256: str = ""  #: of that file


@dataclass(frozen=True, kw_only=True)
class Performance:
    """performance.json."""

    op: str
    gpu: str  #: architecture
    deferred: str | None  #: why nothing was measured; None: it was
    settings: Settings | None = None  #: by which numbers it is judged
    low: float | None = None  #: 95 % interval of the geomean speedup; above 1 the candidate is faster
    ratio: float | None = None
    high: float | None = None
    configs: int = 0  #: how many were timed
    schema: int = 1


def side_file(side: str) -> str:
    """The record of a side, in the artifact folder."""
    return f"perf/{side}.json"


def defer(order: BoxOrder, io: BoxIO, reason: str) -> tuple[str, ...]:
    """Say that nothing was measured; the files that say so."""
    report = save(io, REPORT, Performance(op=order.op, gpu=order.gpu, deferred=reason))
    sides = (SideRecord(side=side, op=order.op, gpu=order.gpu, deferred=reason) for side in SIDES)
    return report, *(save(io, side_file(record.side), record) for record in sides)


def side_problem(order: BoxOrder, out: Path, side: str) -> str | None:
    """What is wrong with one side's record by itself, or None."""
    try:
        record = load(out / side_file(side), SideRecord)
    except OSError:
        return f"{side_file(side)} is not there"
    except ValueError as error:
        return f"{side_file(side)}: {error}"
    if (record.side, record.op, record.gpu) != (side, order.op, order.gpu):
        return f"{side_file(side)} is of the {record.side} of {record.op} on {record.gpu}"
    if record.deferred is not None:
        return _not_both(side_file(side), record.deferred, record.records is not None)
    if record.records is None or Path(record.records).name != record.records:
        return f"{side_file(side)} names no file of raw records beside it and does not say why"
    try:
        data = (out / "perf" / record.records).read_bytes()
    except OSError:
        return f"perf/{record.records} is not there"
    if sha256(data) != record.sha256:
        return f"perf/{record.records} is not the file that {side_file(side)} speaks of: another sha256"
    return None


def problem(order: BoxOrder, out: Path) -> str | None:
    """What is wrong with report and records, or None: complete, and the figures follow from the records."""
    for side in SIDES:
        wrong = side_problem(order, out, side)
        if wrong is not None:
            return wrong
    try:
        report = load(out / REPORT, Performance)
    except OSError:
        return f"{REPORT} is not there"
    except ValueError as error:
        return f"{REPORT}: {error}"
    if (report.op, report.gpu) != (order.op, order.gpu):
        return f"{REPORT} is of {report.op} on {report.gpu}"
    records = [load(out / side_file(side), SideRecord) for side in SIDES]
    if {report.deferred is None, *(record.deferred is None for record in records)} == {True, False}:
        return f"{REPORT} and the records below perf/ disagree on whether anything was measured"
    if report.deferred is not None:
        figures = (report.low, report.ratio, report.high)
        return _not_both(REPORT, report.deferred, report.configs > 0 or any(f is not None for f in figures))
    return _figures(report, [out / "perf" / str(record.records) for record in records])


def _not_both(file: str, reason: str, figures: bool) -> str | None:
    if not reason.strip():
        return f"{file} is deferred without a reason"
    return f"{file} is deferred and holds figures" if figures else None


def _figures(report: Performance, files: list[Path]) -> str | None:
    from farm.measured.reading import RecordsBroken  # with numpy, which a deferred report does without
    from farm.measured.ruling import rule

    if report.settings is None:
        return f"{REPORT} has no settings, by which its figures could be recomputed"
    sides = []
    for file in files:
        try:
            sides.append(_records(file))
        except (RecordsBroken, CodecError, UnicodeDecodeError) as error:
            return f"perf/{file.name}: {error}"
    baseline, candidate = sides
    if any(not isinstance(record, TimedCall) or record.control or record.reference for record in candidate):
        return f"perf/{files[1].name} holds something that is no timed call of the candidate"
    if any(isinstance(record, TimedCall) and not record.control and not record.reference for record in baseline):
        return f"perf/{files[0].name} holds timed calls of the candidate"
    told = rule([*baseline, *candidate], report.settings)
    for name in ("low", "ratio", "high"):
        said, found = getattr(report, name), getattr(told, name)
        if (said is None) != (found is None) or (said is not None and abs(said - found) > TOLERANCE):
            return f"{REPORT} says {name} {said}, the raw records give {found}"
    if report.ratio is None:
        return f"{REPORT} says that it was measured, and the raw records give no figure"
    timed = sum(line.ratio is not None for line in told.configs)
    return None if report.configs == timed else f"{REPORT} says {report.configs} configs, the records have {timed}"


def _records(file: Path) -> list[Record]:
    from farm.measured.reading import read_records

    return list(read_records(file.read_text(encoding="utf-8").splitlines()))
