from farm.events import BoxEnded, BoxStarted, Landed, StageEnded
from farm.gates import Basis, GateName, GateResult, Ruling
from farm.job import JobState
from farm.ledger import Change
from farm.orders import Purpose
from farm.pipeline.stage import ExecutorKind, Stage, Verdict

STARTED = BoxStarted(name="box-1", purpose=Purpose.PIPELINE)
ENDED = StageEnded(
    box="box-1",
    stage=Stage.A,
    visit=1,
    executor=ExecutorKind.PROGRAM,
    verdict=Verdict.PASS,
    owner=None,
    seconds=1.5,
    summary="traced",
)


def test_what_a_poll_reports_again_is_logged_once(ledger, submit):
    (job,) = submit()
    for _ in range(3):
        ledger.stay(ledger.acquire(job.id, "w", ttl_s=9).job, Change(events=(STARTED, ENDED, STARTED)))
    second_visit = StageEnded(**{**ENDED.__dict__, "visit": 2})
    ledger.log(job.id, ENDED, second_visit, BoxEnded(name="box-1", exit_code=0, oom_killed=False))
    events = [logged.event for logged in ledger.events(job=job.id)][1:]
    assert events == [STARTED, ENDED, second_visit, BoxEnded(name="box-1", exit_code=0, oom_killed=False)]


def test_two_jobs_may_log_the_same_key(ledger, submit):
    a, b = submit("a", "b")
    ledger.log(a.id, STARTED)
    ledger.log(b.id, STARTED)
    assert len(ledger.events(run=a.run)) == 4


def test_events_are_read_on_from_where_one_stopped(ledger, submit):
    (job,) = submit()
    ledger.log(job.id, Landed(branch="b", commit="c"))
    first, second = ledger.events(run=job.run)
    assert ledger.events(job=job.id, after=first.seq) == (second,)
    assert ledger.events(after=second.seq) == ()


def test_gate_results_replace_earlier_ones_of_their_attempt_and_come_in_order(ledger, submit):
    (job,) = submit()

    def result(gate: GateName, ruling: Ruling) -> GateResult:
        return GateResult(gate=gate, ruling=ruling, basis=Basis.CERTIFIED, summary=f"{ruling} 3/3")

    open_gate = result(GateName.EXECUTED, Ruling.AMBIGUOUS)
    both = (result(GateName.EXECUTED, Ruling.PASS), result(GateName.CORRECTNESS, Ruling.PASS))
    ledger.stay(ledger.acquire(job.id, "w", ttl_s=9).job, Change(gates=(open_gate,)))
    ledger.stay(ledger.acquire(job.id, "w", ttl_s=9).job, Change(gates=both))
    assert ledger.gates(job.id) == (both[1], both[0])


def test_artifacts_of_a_name_are_replaced_within_their_attempt(ledger, submit):
    (job,) = submit()
    ledger.stay(ledger.acquire(job.id, "w", ttl_s=9).job, Change(artifacts={"patch": "1" * 64}))
    ledger.stay(ledger.acquire(job.id, "w", ttl_s=9).job, Change(artifacts={"patch": "2" * 64, "log": "3" * 64}))
    assert ledger.artifacts(job.id) == {"patch": "2" * 64, "log": "3" * 64}


def test_what_the_first_step_keeps_belongs_to_the_attempt_it_starts(ledger, submit):
    (job,) = submit()
    grant = ledger.acquire(job.id, "w", ttl_s=9)
    ledger.move(grant.job, JobState.PREPARING, Change(artifacts={"plan": "1" * 64}))
    assert ledger.artifacts(job.id) == ledger.artifacts(job.id, attempt=1) == {"plan": "1" * 64}
