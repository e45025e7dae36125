from drivers.one_shot import IDLE_S, run_here
from farm.job import JobState
from tests.builders import job


def test_only_jobs_that_move_take_a_step_and_the_earliest_one_is_waited_for() -> None:
    asked: list[str] = []

    def advance(job_id: str) -> float | None:
        asked.append(job_id)
        return {"r-1.a": 3.0, "r-1.b": 0.5}.get(job_id)

    jobs = [
        job("a", JobState.RUNNING),
        job("b", JobState.QUEUED),
        job("c", JobState.ACCEPTED),
        job("d", JobState.AWAITING_GPU),
    ]
    assert run_here(jobs, advance) == 0.5
    assert asked == ["r-1.a", "r-1.b"]


def test_a_job_that_somebody_else_has_is_looked_at_again_soon() -> None:
    assert run_here([job("a", JobState.RUNNING)], lambda _: None) == IDLE_S
