"""The correctness gate: each way not to pass, beside the way to pass."""

import pytest

from farm.gates import Ruling
from farm.measured.correctness import CorrectnessRuling, correctness_gate
from farm.measured.records import Collected, Outcome, Phase, Probe, ResultFact, RowRun
from farm.measured.rowtable import gather
from farm.measured.ruling import Record
from tests.unit.farm.measured.builders import KEYS, changed, collected, is_row, probe, row, rows


def ruled(records: list[Record], *probes: Probe) -> CorrectnessRuling:
    gathered = gather(
        [r for r in records if isinstance(r, Collected)], [r for r in records if isinstance(r, RowRun)]
    )
    return correctness_gate(gathered, probes or (probe(),))


def without(records: list[Record], phase: Phase, key: str | None = KEYS[0]) -> list[Record]:
    return [r for r in records if not is_row(phase, key)(r)]


def test_all_rows_passed_is_a_pass() -> None:
    found = ruled(rows())
    assert (found.result.ruling, found.result.summary) == (Ruling.PASS, "measured 2/2")
    assert (found.void, found.narrowed, found.flags) == ({}, {}, ())


TARGET, SOURCE = is_row(Phase.TARGET), is_row(Phase.SOURCE)
FAILED, SKIPPED, NOT_RUN = Outcome.FAILED, Outcome.SKIPPED, Outcome.NOT_RUN


@pytest.mark.parametrize(
    ("spoil", "ruling", "reason"),
    [
        (
            lambda r: changed(r, TARGET, outcome=FAILED, reason="off by 3"),
            Ruling.FAIL,
            "1 of 2 rows fail: test_op[size=8]: off by 3",
        ),
        (
            lambda r: changed(r, TARGET, outcome=SKIPPED, reason="too hard"),
            Ruling.FAIL,
            "narrowed support, 1 of 2: test_op[size=8]: skipped: too hard",
        ),
        (
            lambda r: changed(r, lambda x: isinstance(x, Collected) and x.phase is Phase.TARGET, keys=KEYS[1:]),
            Ruling.FAIL,
            "narrowed support, 1 of 2: test_op[size=8]: not collected",
        ),
        (
            lambda r: changed(
                r,
                lambda x: isinstance(x, Collected) and x.phase is Phase.TARGET,
                uncollected=("t.py: ImportError",),
            ),
            Ruling.FAIL,
            "the target could not collect t.py: ImportError",
        ),
        (
            lambda r: changed(r, TARGET, outcome=NOT_RUN, reason="time limit"),
            Ruling.INFRA,
            "1 of 2 rows of the target did not run: test_op[size=8]: time limit",
        ),
        (
            lambda r: without(r, Phase.TARGET),
            Ruling.INFRA,
            "1 of 2 rows of the target did not run: test_op[size=8]: no record of it",
        ),
        (lambda r: changed(r, SOURCE, outcome=NOT_RUN), Ruling.INFRA, "1 of 2 rows of the source did not run"),
        (
            lambda r: [x for x in r if not (isinstance(x, Collected) and x.phase is Phase.TARGET)],
            Ruling.INFRA,
            "the target's rows were not collected",
        ),
        (
            lambda r: [x for x in r if not isinstance(x, Collected)],
            Ruling.INFRA,
            "the source's rows were not collected",
        ),
        (
            lambda r: changed(
                r,
                lambda x: isinstance(x, Collected) and x.phase is Phase.SOURCE,
                uncollected=("t.py: SyntaxError",),
            ),
            Ruling.INFRA,
            "the source could not collect t.py",
        ),
        (
            lambda r: changed(r, is_row(Phase.SOURCE, None), outcome=FAILED, reason="tileiras exit 5"),
            Ruling.INFRA,
            "the source passes none of its 2 rows: test_op[size=8]: tileiras exit 5",
        ),
        (
            lambda r: [collected(Phase.SOURCE, ()), collected(Phase.TARGET, ())],
            Ruling.INFRA,
            "the source has no rows",
        ),
        (lambda r: [], Ruling.INFRA, "the source's rows were not collected"),
    ],
)
def test_anything_but_all_rows_passed_is_no_pass(spoil: object, ruling: Ruling, reason: str) -> None:
    result = ruled(spoil(rows())).result
    assert (result.ruling, reason in result.summary) == (ruling, True), result.summary


def fact(**changes: object) -> ResultFact:
    whole = {"shape": (8, 8), "stride": (8, 1), "dtype": "float16", "requires_grad": True}
    return ResultFact(**{**whole, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"results": (fact(requires_grad=False),)}, "result 0 has requires_grad False, the source's has True"),
        ({"results": (fact(shape=(8, 4)),)}, "shape (8, 4)"),
        ({"results": (fact(dtype="float32"),)}, "dtype float32"),
        ({"results": (fact(stride=(1, 8)),)}, "stride (1, 8)"),
        ({"results": ()}, "0 results, the source gives 1"),
        ({"backwards": 0}, "0 backward passes, the source has 1"),
    ],
)
def test_a_row_that_passes_with_less_than_the_source_gives_is_narrowed_support(
    changes: dict[str, object], reason: str
) -> None:
    found = ruled(changed(rows(), TARGET, **changes))
    assert found.result.ruling is Ruling.FAIL
    assert found.result.summary.startswith("narrowed support, 1 of 2: test_op[size=8]: ")
    assert reason in found.narrowed[KEYS[0]]


@pytest.mark.parametrize(
    ("shape", "one", "other"), [((1, 8), (8, 1), (1, 1)), ((8, 1), (1, 1), (1, 8)), ((0, 8), (8, 1), (1, 0))]
)
def test_a_stride_that_addresses_nothing_may_differ(
    shape: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    records = changed(rows(), SOURCE, results=(fact(shape=shape, stride=one),))
    assert ruled(changed(records, TARGET, results=(fact(shape=shape, stride=other),))).narrowed == {}


def test_a_row_that_a_null_kernel_passes_is_reported_and_not_counted() -> None:
    found = ruled(changed(rows(), is_row(Phase.NULL, null="zeros"), outcome=Outcome.PASSED))
    assert (found.result.ruling, found.result.summary) == (Ruling.PASS, "measured 1/1")
    assert [(f.where, f.what) for f in found.flags] == [
        (KEYS[0], "proves nothing: it passes with the null kernel zeros")
    ]


def test_a_row_that_proves_nothing_must_be_passed_all_the_same() -> None:
    void = changed(rows(), is_row(Phase.NULL), outcome=Outcome.PASSED)
    assert ruled(changed(void, TARGET, outcome=FAILED)).result.ruling is Ruling.FAIL


def test_where_every_row_proves_nothing_nothing_is_passed() -> None:
    void = ruled(changed(rows(), is_row(Phase.NULL, None, "mean"), outcome=Outcome.PASSED)).result
    assert (void.ruling, "none of 2 rows proves anything" in void.summary) == (Ruling.AMBIGUOUS, True)
    untried = ruled(without(rows(), Phase.NULL, None)).result
    assert (untried.ruling, "no null kernel was run" in untried.summary) == (Ruling.INFRA, True)


def test_a_null_kernel_that_did_not_run_is_no_proof() -> None:
    found = ruled(changed(rows(), is_row(Phase.NULL), outcome=NOT_RUN))
    assert (found.result.summary, found.void[KEYS[0]]) == ("measured 1/1", "no null kernel was run on it")


def test_rows_that_the_source_fails_are_reported_and_not_expected() -> None:
    found = ruled(changed(rows(), SOURCE, outcome=FAILED, reason="tileiras exit 5"))
    assert found.result.summary == "measured 1/1"
    assert found.flags[0].what == "the source itself fails: tileiras exit 5"


def test_of_two_runs_of_a_row_the_worse_counts() -> None:
    again = row(KEYS[0], Phase.TARGET, FAILED)
    assert ruled([*rows(), again]).result.ruling is ruled([again, *rows()]).result.ruling is Ruling.FAIL


def test_a_side_may_be_collected_in_several_processes() -> None:
    split = [r for r in rows() if not isinstance(r, Collected)]
    split += [collected(phase, [key]) for key in KEYS for phase in (Phase.SOURCE, Phase.TARGET)]
    assert ruled(split).result.summary == "measured 2/2"


def test_a_bad_probe_fails_the_gate_and_a_missing_one_leaves_it_open() -> None:
    assert ruled(rows(), probe(poisoned=3)).result.ruling is Ruling.FAIL
    assert ruled(rows(), probe(source_raised="TypeError")).result.ruling is Ruling.INFRA
