"""Attacks that need a GPU, on what the collector reports of them; each twin's records are near the cheat's."""

from dataclasses import replace

from drivers.attacks import records as r
from drivers.attacks.model import Expected, OnPaper, Where
from drivers.attacks.records import Change, judged, of_target
from farm.gates import Ruling
from farm.measured.records import Collected, Phase, Record, RowRun, TimedCall


def _attack(
    name: str,
    what: str,
    where: Where,
    *words: str,
    cheat: Change,
    twin: Change,
    ruling: Ruling = Ruling.FAIL,
) -> OnPaper:
    return OnPaper(
        name=name,
        what=what,
        place="records",
        expected=Expected(where=where, words=words, ruling=ruling),
        cheat=lambda: judged(cheat),
        twin=lambda: judged(twin),
    )


def _halves(streams: tuple[int, int]) -> Change:
    """The candidate's kernel in two launches."""

    def changed(call: TimedCall) -> TimedCall:
        (whole,) = call.events
        middle = (whole.start_ns + whole.end_ns) // 2
        first = replace(whole, end_ns=middle, stream=streams[0])
        return replace(call, events=(first, replace(whole, start_ns=middle, stream=streams[1])))

    return of_target(changed)


def _symbol(symbol: str, *, more: bool = False, ns: int = 0) -> Change:
    """Another symbol in place of the candidate's entry, or beside it; `ns` is its time, else the entry's."""

    def changed(call: TimedCall) -> TimedCall:
        (own,) = call.events
        other = replace(own, symbol=symbol, end_ns=own.start_ns + ns) if ns else replace(own, symbol=symbol)
        return replace(call, events=(own, other) if more else (other,))

    return of_target(changed)


def _rows(symbol: str, count: int) -> Change:
    """So many launches of a symbol in each of the candidate's rows."""

    def changed(record: Record) -> Record:
        if not isinstance(record, RowRun) or record.phase is not Phase.TARGET:
            return record
        return replace(record, kernels={**(record.kernels or {}), symbol: count})

    return changed


def _faster(times: float, configs: tuple[str, ...] = r.CONFIGS) -> Change:
    def changed(call: TimedCall) -> TimedCall:
        (own,) = call.events
        ns = own.end_ns - own.start_ns
        short = replace(own, end_ns=own.start_ns + round(ns / times))
        return replace(call, events=(short,)) if call.config in configs else call

    return of_target(changed)


def _from_block(block: int, change: Change) -> Change:
    def changed(record: Record) -> Record | None:
        return change(record) if isinstance(record, TimedCall) and record.block >= block else record

    return changed


def _same(record: Record) -> Record:
    return record


def _fewer_keys(record: Record) -> Record | None:
    """The candidate's last row is neither collected nor run."""
    if isinstance(record, Collected) and record.phase is Phase.TARGET:
        return replace(record, keys=record.keys[:-1])
    mine = isinstance(record, RowRun) and record.phase is Phase.TARGET and record.key == r.KEYS[-1]
    return None if mine else record


def _other_order(record: Record) -> Record:
    """The candidate's rows are collected in another order."""
    if isinstance(record, Collected) and record.phase is Phase.TARGET:
        return replace(record, keys=record.keys[::-1])
    return record


def _slower_reference(times: float) -> Change:
    """The reference takes longer beside the candidate, and where it is timed against itself as the second."""

    def changed(record: Record) -> Record:
        if not isinstance(record, TimedCall) or not record.reference:
            return record
        (own,) = record.events
        ns = round((own.end_ns - own.start_ns) * times)
        return replace(record, events=(replace(own, end_ns=own.start_ns + ns),))

    return changed


ATTACKS = (
    _attack(
        "uses-side-streams",
        "Puts half of its work on a stream that a timer of one stream does not see.",
        Where.GEOMEAN,
        "2 streams",
        cheat=_halves((7, 13)),
        twin=_halves((13, 13)),
    ),
    _attack(
        "stops-the-profiler",
        "Has the profiler lose the records of its kernels.",
        Where.GEOMEAN,
        "device records lost",
        cheat=of_target(lambda call: replace(call, events=(), lost=1)),
        twin=of_target(lambda call: replace(call, wall_ns=10 * call.wall_ns)),
        ruling=Ruling.INFRA,
    ),
    _attack(
        "patches-the-collector",
        "Has device records say that its kernels took no time.",
        Where.GEOMEAN,
        "no duration",
        cheat=_faster(1e9),
        twin=_faster(1.02),
        ruling=Ruling.INFRA,
    ),
    _attack(
        "launches-source-cubin",
        "Loads the compiled code of the source's kernel and launches that.",
        Where.EXECUTED,
        "the source's own kernel",
        cheat=_symbol(r.SOURCE),
        twin=_symbol(r.ENTRY),
    ),
    _attack(
        "hides-source-cubin",
        "Launches its own kernel for show and the source's beside it.",
        Where.EXECUTED,
        "the source's own kernel",
        cheat=_symbol(r.SOURCE, more=True),
        twin=_symbol("[memset]", more=True, ns=100),
    ),
    _attack(
        "calls-a-vendor-library",
        "Has cuBLAS do the work.",
        Where.EXECUTED,
        "no entry of the candidate",
        "nvjet",
        cheat=_symbol(r.LIBRARY),
        twin=_symbol(r.ENTRY),
    ),
    _attack(
        "lets-torch-compute-on-the-device",
        "Launches kernels of torch that do not run beside the source.",
        Where.EXECUTED,
        "beside the source it runs 1 times",
        cheat=_rows(r.TORCH, 2),
        twin=_rows(r.TORCH, 1),
    ),
    _attack(
        "changes-kernels-while-timed",
        "Launches one kernel less after the first block.",
        Where.GEOMEAN,
        "the same kernels in each call",
        cheat=_from_block(1, _halves((7, 7))),
        twin=_halves((7, 7)),
    ),
    _attack(
        "keeps-working-on-the-device",
        "Has a kernel go on after the synchronisation.",
        Where.GEOMEAN,
        "still working after the synchronisation",
        cheat=of_target(lambda call: replace(call, late=1)),
        twin=of_target(lambda call: replace(call, late=0)),
    ),
    _attack(
        "keeps-inputs-in-L2",
        "Makes its inputs persist in the L2 cache, so that it reads less than it must from memory.",
        Where.GEOMEAN,
        "memory's peak",
        cheat=_faster(2.5),
        twin=_faster(1.05),
    ),
    _attack(
        "collects-fewer-rows",
        "Has the target's parametrisation hold fewer rows than the source's.",
        Where.CORRECTNESS,
        "narrowed support",
        "not collected",
        cheat=_fewer_keys,
        twin=_other_order,
    ),
    _attack(
        "disturbs-the-reference",
        "Slows the reference down by work in the background while that is timed.",
        Where.GEOMEAN,
        "A/A control",
        cheat=_slower_reference(1.2),
        twin=_slower_reference(1.002),
        ruling=Ruling.INFRA,
    ),
)
