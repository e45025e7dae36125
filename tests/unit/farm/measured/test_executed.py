"""The executed gate: that the target ran, and nothing in its place."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from farm.gates import GateName, Ruling
from farm.measured.executed import ExecutedRuling, executed_gate
from farm.measured.model import Settings
from farm.measured.records import Collected, DeviceEvent, Foul, Outcome, Phase, RowRun, TimedCall
from farm.measured.rowtable import gather
from farm.measured.ruling import Record, rule
from farm.measured.symbols import is_source
from tests.unit.farm.measured.builders import (
    CLEAN,
    ENTRY,
    KEYS,
    OWN,
    SETTINGS,
    TORCH,
    changed,
    honest,
    is_call,
    is_row,
    row,
)

TARGET, SOURCE, STUB = is_row(Phase.TARGET), is_row(Phase.SOURCE), is_row(Phase.STUB)
FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEE"


def ruled(records: list[Record], settings: Settings = SETTINGS) -> ExecutedRuling:
    gathered = gather(
        [r for r in records if isinstance(r, Collected)], [r for r in records if isinstance(r, RowRun)]
    )
    return executed_gate(gathered, [r for r in records if isinstance(r, TimedCall)], settings)


def test_an_honest_run_passes() -> None:
    found = ruled(honest())
    assert (found.result.ruling, found.result.summary) == (Ruling.PASS, "measured 2/2")
    assert found.entries == dict.fromkeys(KEYS, (ENTRY,))


@pytest.mark.parametrize(
    ("met", "changes", "ruling", "reason"),
    [
        (TARGET, {"calls": 0}, Ruling.FAIL, "passes without a call of the library"),
        (TARGET, {"kernels": {TORCH: 2}}, Ruling.FAIL, "none of the candidate's entries ran"),
        (TARGET, {"kernels": {ENTRY: 1, "sgemm": 1}}, Ruling.FAIL, "launches sgemm, which is no entry"),
        (TARGET, {"kernels": {ENTRY: 1, OWN: 1}}, Ruling.FAIL, f"launches the source's own kernel {OWN}"),
        (TARGET, {"kernels": {ENTRY: 1, TORCH: 3}}, Ruling.FAIL, f"launches {TORCH} 3 times"),
        (TARGET, {"kernels": None}, Ruling.INFRA, "no device records"),
        (TARGET, {"lost": 1}, Ruling.INFRA, "1 device records lost"),
        (SOURCE, {"kernels": None}, Ruling.INFRA, "no device records"),
        (SOURCE, {"lost": 2}, Ruling.INFRA, "2 device records lost"),
        (TARGET, {"calls": None}, Ruling.INFRA, "calls of the library were not counted"),
        (TARGET, {"outcome": Outcome.FAILED}, Ruling.INFRA, "1 of 2 rows did not pass"),
        (STUB, {"outcome": Outcome.PASSED}, Ruling.FAIL, "1 of 2 rows do not fail with a library that fails"),
        (STUB, {"outcome": Outcome.SKIPPED}, Ruling.FAIL, "test_op[size=8] skipped"),
        (STUB, {"outcome": Outcome.NOT_RUN}, Ruling.INFRA, "1 of 2 rows did not run with a library that fails"),
        (is_row(Phase.SOURCE, None), {"outcome": Outcome.FAILED}, Ruling.INFRA, "no row is expected"),
    ],
)
def test_each_way_not_to_have_run_is_named(
    met: object, changes: dict[str, object], ruling: Ruling, reason: str
) -> None:
    result = ruled(changed(honest(), met, **changes)).result
    assert (result.ruling, reason in result.summary) == (ruling, True), result.summary


def event(symbol: str) -> DeviceEvent:
    return DeviceEvent(symbol=symbol, start_ns=0, end_ns=9, stream=7, correlation=1)


@pytest.mark.parametrize(
    ("symbols", "reason"),
    [
        ((OWN,), f"n=1024, timed: launches the source's own kernel {OWN}"),
        ((TORCH,), f"n=1024, timed: launches {TORCH}, which is no entry"),
        ((ENTRY, TORCH), f"n=1024, timed: launches {TORCH}, which is no entry"),
        (("[memset]",), "n=1024, timed: none of the candidate's entries ran"),
    ],
)
def test_a_timed_call_that_does_other_work_fails(symbols: tuple[str, ...], reason: str) -> None:
    events = tuple(event(symbol) for symbol in symbols)
    result = ruled(changed(honest(), is_call(reference=False, block=5), events=events)).result
    assert (result.ruling, result.summary) == (Ruling.FAIL, result.summary)
    assert reason in result.summary


def test_an_incomplete_timed_call_convicts_nobody() -> None:
    records = changed(honest(), is_call(reference=False, block=5), events=(event("x"),), lost=1)
    assert ruled(records).result.ruling is Ruling.PASS


def test_copies_memsets_and_declared_symbols_are_allowed() -> None:
    kernels = {ENTRY: 1, "[memcpy]": 3, "[memset]": 1, "helper": 2}
    records = changed(honest(), TARGET, kernels=kernels)
    assert ruled(records).result.ruling is Ruling.FAIL
    assert ruled(records, replace(SETTINGS, declared=("helper",))).result.ruling is Ruling.PASS


def test_filling_oftener_than_the_source_is_allowed_and_computing_is_not() -> None:
    records = changed(honest(), SOURCE, kernels={OWN: 1, FILL: 1, TORCH: 1})
    assert ruled(changed(records, TARGET, kernels={ENTRY: 1, FILL: 2, TORCH: 1})).result.ruling is Ruling.PASS
    assert ruled(changed(records, TARGET, kernels={ENTRY: 1, FILL: 1, TORCH: 2})).result.ruling is Ruling.FAIL


def test_a_row_in_which_the_source_launches_nothing_asks_nothing_of_the_target() -> None:
    records = changed(honest(), SOURCE, kernels={TORCH: 2})
    records = changed(records, TARGET, kernels={TORCH: 2}, calls=0)
    records = changed(records, STUB, outcome=Outcome.PASSED)
    found = ruled(records)
    assert (found.result.ruling, found.result.summary) == (Ruling.PASS, "measured 1/1")
    assert found.flags[0].what == "the source launches nothing in this row"
    unnamed = changed(records, SOURCE, kernels={TORCH: 2, "some_other_kernel": 1})
    assert ruled(unnamed).result.ruling is Ruling.FAIL, "a kernel that no name fits may be the source's"
    both = changed(honest(), is_row(Phase.SOURCE, None), kernels={TORCH: 2})
    assert ruled(both).result.ruling is Ruling.INFRA


def is_side(phase: Phase) -> Callable[[Record], bool]:
    return lambda record: isinstance(record, Collected) and record.phase is phase


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("source_dsl", "imported by relu.py", "the source's language in the target: imported by relu.py"),
        ("source_dsl", "held by pkg.relu.ct", "the source's language in the target: held by pkg.relu.ct"),
        ("patched", "torch.equal", "functions that judge or time were replaced torch.equal"),
        ("result_types", "LazyTensor", "results are no plain tensors LazyTensor"),
        ("threads", "worker-1, worker-2; worker-1", "threads were left running worker-1, worker-2"),
    ],
)
def test_what_the_process_of_the_target_gives_away_is_named(fact: str, value: str, reason: str) -> None:
    process = {**CLEAN, fact: value}
    result = ruled(changed(honest(), is_side(Phase.TARGET), process=process)).result
    assert (result.ruling, result.summary) == (Ruling.FAIL, reason)
    unknown = {name: said for name, said in CLEAN.items() if name != fact}
    result = ruled(changed(honest(), is_side(Phase.TARGET), process=unknown)).result
    assert (result.ruling, fact in result.summary) == (Ruling.INFRA, True)


@pytest.mark.parametrize(
    ("fact", "ruling"),
    [("threads", Ruling.PASS), ("patched", Ruling.PASS), ("source_dsl", Ruling.FAIL)],
)
def test_what_the_repository_does_beside_the_source_as_well_is_not_the_targets_doing(
    fact: str, ruling: Ruling
) -> None:
    records = changed(honest(), is_side(Phase.TARGET), process={**CLEAN, fact: "pool"})
    records = changed(records, is_side(Phase.SOURCE), process={**CLEAN, fact: "pool"})
    assert ruled(records).result.ruling is ruling
    more = changed(records, is_side(Phase.TARGET), process={**CLEAN, fact: "pool, hidden"})
    assert ruled(more).result.ruling is Ruling.FAIL


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("left_processes", "sleep", "processes were left running sleep"),
        ("tree_libraries", "src/libsource.so", "the target loads libraries that are not its own src/libsource.so"),
    ],
)
def test_facts_that_older_runners_do_not_give_are_judged_where_they_are(
    fact: str, value: str, reason: str
) -> None:
    result = ruled(changed(honest(), is_side(Phase.TARGET), process={**CLEAN, fact: value})).result
    assert (result.ruling, result.summary) == (Ruling.FAIL, reason)
    unknown = {name: said for name, said in CLEAN.items() if name != fact}
    assert ruled(changed(honest(), is_side(Phase.TARGET), process=unknown)).result.ruling is Ruling.PASS


def hollow(outcome: Outcome) -> RowRun:
    return row(KEYS[0], Phase.HOLLOW, outcome)


def test_a_row_that_passes_with_a_library_that_does_nothing_was_computed_by_another() -> None:
    result = ruled([*honest(), hollow(Outcome.PASSED)]).result
    reason = f"1 of 2 rows pass with a library that does nothing: {KEYS[0]}"
    assert (result.ruling, result.summary) == (Ruling.FAIL, reason)
    for outcome in (Outcome.FAILED, Outcome.NOT_RUN):
        assert ruled([*honest(), hollow(outcome)]).result.ruling is Ruling.PASS


def test_a_library_that_does_nothing_may_pass_where_nothing_is_proven_or_done() -> None:
    void = changed(honest(), is_row(Phase.NULL, null="zeros"), outcome=Outcome.PASSED)
    assert ruled([*void, hollow(Outcome.PASSED)]).result.ruling is Ruling.PASS
    empty = changed(honest(), SOURCE, kernels={TORCH: 2})
    empty = changed(empty, TARGET, kernels={TORCH: 2}, calls=0)
    assert ruled([*empty, hollow(Outcome.PASSED)]).result.ruling is Ruling.PASS


def test_deceit_that_was_seen_from_outside_comes_first() -> None:
    what = "in the target rows somebody spoke for the gate"
    records = changed(honest(), TARGET, calls=0)
    assert ruled(records).result.summary != f"foul play: {what}"
    measured = rule([*records, Foul(subject=SETTINGS.subject, what=what)], SETTINGS)
    result = measured.gate(GateName.EXECUTED)
    assert (result.ruling, result.summary) == (Ruling.FAIL, f"foul play: {what} (and 1 more)")


def test_without_known_entries_nothing_is_shown() -> None:
    assert ruled(honest(), replace(SETTINGS, entries=())).result.ruling is Ruling.INFRA


@pytest.mark.parametrize(
    ("symbol", "named", "unnamed"),
    [
        (OWN, True, True),
        ("_relu_kernel_cutile_x", True, True),
        (TORCH, False, False),
        ("_ZN8internal5gemvx6kernelIiiE", False, False),
        ("_Z17gemv2T_kernel_valIiE", False, False),
        ("void at::native::elementwise_kernel<128, 2>(int)", False, False),
        ("nvjet_hsh_64x8", False, False),
        ("triton_poi_fused", False, True),
        ("[memset]", False, False),
        (ENTRY, False, False),
    ],
)
def test_the_sources_kernels_are_told_by_name_or_by_not_being_the_frameworks(
    symbol: str, named: bool, unnamed: bool
) -> None:
    assert is_source(symbol, SETTINGS) is named
    assert is_source(symbol, replace(SETTINGS, source_kernels=())) is unnamed
