"""The real spine, step by step: real git, ledger and files, boxes that are functions."""

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from celery import Celery

from containers.engine import BoxSpec
from containers.engine.fake_engine import FakeExit, runs_on
from farm.errors import StaleFence
from farm.fault import Fault
from farm.job import Accept, JobState, ParkReason, WaitsFor
from farm.ledger import TRACE
from farm.mountindex import Mount
from farm.orders import BoxResult, Diagnosis
from farm.patch import Patch
from farm.pipeline.stage import Stage
from tests.integration.workers.conversion_bench import (
    MINIGYM,
    Bench,
    Program,
    certified,
    certifies,
    converts,
    finish,
    folder,
    order_of,
    write_patch,
)
from workers.places import jobs_folder, places
from workers.tasks import register

SIX = (
    "src/minigym/ops/cutile_rs/__init__.py",
    "src/minigym/ops/cutile_rs/cutile_kernels/src/lib.rs",
    "src/minigym/ops/cutile_rs/relu.py",
    "src/minigym/ops/cutile_rs/relu_kernel/ffi.rs",
    "src/minigym/ops/cutile_rs/relu_kernel/kernel.rs",
    "tests/ops/test_relu.py",
)
GitCommand = Callable[..., str]


class Held:
    """A lease that stays ours."""

    fence = 1

    def check(self) -> None:
        return None


class Lost:
    """A lease that somebody else has by now."""

    fence = 1

    def check(self) -> None:
        raise StaleFence


@pytest.fixture
def bench(tmp_path: Path):
    made: list[Bench] = []

    def make(**options: object) -> Bench:
        made.append(Bench(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.ledger.close()


def own_repo(folder: Path, git: GitCommand) -> Path:
    """The built-in target repo as a user would have it: a repository with a working tree."""
    shutil.copytree(MINIGYM, folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache", "target"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "gym")
    return folder


def pipeline_that(change: Callable[[Path], None]) -> Program:
    """The pipeline that works, and then does something more to its workspace."""

    def program(spec: BoxSpec) -> FakeExit:
        ended = converts(spec)
        change(folder(spec, "/work"))
        return ended

    return program


def test_a_job_lands_as_one_commit_and_leaves_nothing_on_the_host(bench, git: GitCommand) -> None:
    b = bench()
    job = b.go(JobState.ACCEPTED)
    repo = b.state / "builtin" / "minigym.git"
    assert job.branch == "farm-certified/cutile-rs/relu"
    assert git(repo, "rev-parse", job.branch) == job.commit
    assert git(repo, "rev-parse", f"{job.commit}^") == b.ledger.run(job.run).base
    changed = git(repo, "diff", "--name-only", f"{job.commit}^", job.commit).splitlines()
    assert tuple(sorted(changed)) == SIX
    kept = b.ledger.artifacts(job.id, attempt=1)
    assert {"patch", "patch.diff", "result.json", "gates.json", "leak-scan.json", "order.json"} <= kept.keys()
    assert b.store.get(kept["A-1.log"]) == b"traced\n"
    assert b.engine.list({}) == ()
    assert list(jobs_folder(b.state).glob("*")) == []


def test_one_worker_converts_an_op_again_in_a_later_run(bench) -> None:
    b = bench()
    first = b.go(JobState.ACCEPTED)
    run = b.ledger.run(first.run)
    assert not (b.state / "recipes" / run.id).exists()
    again = b.ledger.submit(
        recipe=run.recipe,
        repo=run.repo,
        push_to=run.push_to,
        base=run.base,
        accept=run.accept,
        attempts=run.attempts,
        ops=["relu"],
    )
    b.id = f"{again.id}.relu"
    second = b.go(JobState.ACCEPTED)
    assert (second.attempt, second.transients) == (1, 0)


def test_an_op_whose_test_is_not_python_fails_at_once_with_its_place_and_the_others_land(
    bench, tmp_path: Path, git: GitCommand
) -> None:
    repo = own_repo(tmp_path / "repo", git)
    (repo / "tests" / "ops" / "test_scale.py").write_text("def (\n")
    git(repo, "commit", "--quiet", "--all", "--message=broken")
    b = bench(repo=str(repo), ops=("relu", "scale"), transient_retries=3)
    assert b.go(JobState.ACCEPTED).op == "relu"
    b.id = b.ids[1]
    job = b.go(JobState.FAILED)
    assert (job.fault, job.transients) == (Fault.UNSUPPORTED, 0)
    trace = b.trace()
    assert str(trace["summary"]).startswith("tests/ops/test_scale.py:1:5: not readable as Python")
    assert "correct the file" in str(trace["next_step"])


@pytest.mark.parametrize(
    "state",
    [JobState.PREPARING, JobState.RUNNING, JobState.CAPTURED, JobState.VERIFYING, JobState.LANDING],
)
def test_a_step_that_a_crash_made_repeat_gives_the_same_again(bench, state: JobState) -> None:
    b = bench()
    job = b.go(state)
    outcomes = [b.spine().step(job, Held()) for _ in range(3)]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert len(b.engine.started) == len(set(b.engine.started))
    assert b.go(JobState.ACCEPTED).commit is not None


def test_a_failure_that_a_crash_made_repeat_fails_in_the_same_way(bench) -> None:
    wrong = Diagnosis(stage=Stage.B, fault=Fault.UNSUPPORTED, summary="no rule for `while`", next_step="add one")
    b = bench(pipeline=lambda spec: finish(spec, BoxResult(complete=False, records=(), diagnosis=wrong)))
    job = b.go(JobState.RUNNING)
    first = b.spine().step(job, Held())
    b.spine().abandon(job, first)  # and the worker dies before it writes the transition
    assert b.spine().step(job, Held()).summary == first.summary
    ended = b.go(JobState.FAILED)
    assert (ended.fault, ended.summary) == (Fault.UNSUPPORTED, "no rule for `while`")
    assert b.trace()["summary"] == "no rule for `while`"
    assert list(jobs_folder(b.state).glob("*")) == []


def test_a_half_made_workspace_is_made_anew(bench) -> None:
    b = bench()
    at = places(b.state, b.go(JobState.PREPARING))
    at.workspace.mkdir(parents=True)
    (at.workspace / "half").write_text("")
    b.go(JobState.RUNNING)
    assert not (at.workspace / "half").exists()


def test_a_box_of_a_dead_worker_is_adopted_and_its_patch_taken(bench) -> None:
    b = bench(pipeline=runs_on)
    job = b.go(JobState.RUNNING)
    b.step()
    (name,) = b.engine.started
    assert b.job.state is JobState.RUNNING
    b.engine.finish(name, converts(b.engine.spec(name)))
    b.go(JobState.ACCEPTED)
    assert b.engine.started == [name, name.replace("pipeline", "gate")]
    assert b.job.attempt == job.attempt


def test_a_box_killed_twice_and_then_gone_goes_on_in_its_folders_and_is_then_infra(bench) -> None:
    b = bench(pipeline=runs_on)
    at = places(b.state, b.go(JobState.RUNNING))
    b.step()
    (name,) = b.engine.started
    (at.out / "stages").mkdir()
    (at.out / "stages" / "A-1.json").write_text("kept")
    for _ in range(2):
        b.engine.finish(name, FakeExit(exit_code=137))
        b.step()
        b.step()
    assert b.engine.started == [name] * 3
    assert (at.out / "stages" / "A-1.json").read_text() == "kept"
    b.engine.remove(name, grace_s=0)
    job = b.go(JobState.FAILED)
    assert job.fault is Fault.INFRA
    assert "the box is gone" in (job.summary or "")
    assert b.engine.started == [name] * 3
    assert b.trace()["where"] == "running"


@pytest.mark.parametrize(
    ("how", "fault", "words"),
    [
        (FakeExit(exit_code=137, oom_killed=True), Fault.ENV, "memory"),
        (FakeExit(exit_code=1, log="No space left on device"), Fault.INFRA, "full"),
        (FakeExit(exit_code=1, log="Traceback"), Fault.INFRA, "ended with 1"),
        (FakeExit(exit_code=0), Fault.INFRA, "finished"),
    ],
)
def test_a_box_without_a_result_is_charged_as_it_ended(bench, how: FakeExit, fault: Fault, words: str) -> None:
    b = bench(pipeline=lambda _: how)
    job = b.go(JobState.FAILED)
    assert job.fault is fault
    assert words in (job.summary or "")
    kept = b.ledger.artifacts(job.id, attempt=1)
    assert ("box.log" in kept) == bool(how.log)


def test_a_transient_retry_begins_in_folders_of_its_own(bench) -> None:
    seen: list[Path] = []

    def breaks_once(spec: BoxSpec) -> FakeExit:
        seen.append(folder(spec, "/work"))
        return FakeExit(exit_code=1) if len(seen) == 1 else converts(spec)

    b = bench(pipeline=breaks_once, transient_retries=1)
    job = b.go(JobState.ACCEPTED)
    assert (job.attempt, job.transients) == (1, 1)
    assert len(set(seen)) == 2
    assert not seen[0].exists()


@pytest.mark.parametrize(
    "leave",
    [
        lambda out: (out / "result.json").symlink_to("/etc/passwd"),
        lambda out: (out / "result.json").write_bytes(b"\xff\x00{"),
    ],
    ids=["link", "bytes"],
)
def test_a_result_that_no_box_of_ours_writes_is_an_attack(bench, leave: Callable[[Path], None]) -> None:
    def program(spec: BoxSpec) -> FakeExit:
        write_patch(folder(spec, "/work"))
        leave(folder(spec, "/out"))
        return FakeExit()

    b = bench(pipeline=program, transient_retries=3)
    job = b.go(JobState.FAILED)
    assert job.fault is Fault.INTEGRITY
    assert "result.json" in (job.summary or "")
    assert len(b.engine.started) == 1
    assert b.trace()["fault"] == "integrity"
    assert b.engine.list({}) == ()


def test_a_forged_gate_report_is_refused(bench) -> None:
    b = bench(gate=lambda spec: finish(spec, certified("0" * 64)))
    job = b.go(JobState.FAILED)
    assert (job.fault, job.summary) == (Fault.INTEGRITY, "the certificate is about another patch")
    trace = b.trace()
    assert (trace["summary"], trace["where"]) == (job.summary, "verifying")


def _edit(path: str, old: str, new: str) -> Callable[[Path], None]:
    def change(work: Path) -> None:
        text = (work / path).read_text()
        assert old in text
        (work / path).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        (lambda work: (work / "conftest.py").write_text(""), "conftest.py", "change set"),
        (
            _edit("tests/ops/test_relu.py", "common.check(", "repr("),
            "tests/ops/test_relu.py",
            "one more parameter",
        ),
    ],
    ids=["new-file", "weaker-test"],
)
def test_a_patch_beyond_its_change_set_is_refused_with_path_and_reason(
    bench, change: Callable[[Path], None], path: str, reason: str
) -> None:
    b = bench(pipeline=pipeline_that(change))
    job = b.go(JobState.FAILED)
    assert job.fault is Fault.INTEGRITY
    assert path in (job.summary or "")
    assert reason in (job.summary or "")
    assert [name for name in b.engine.started if "gate" in name] == []
    assert b.trace()["summary"] == job.summary


def test_a_link_out_of_the_workspace_is_refused(bench) -> None:
    b = bench(pipeline=pipeline_that(lambda work: (work / "leak").symlink_to("/etc/passwd")))
    job = b.go(JobState.FAILED)
    assert job.fault is Fault.INTEGRITY
    assert "'leak'" in (job.summary or "")


def test_a_pipeline_that_changed_nothing_is_charged_to_its_executor(bench) -> None:
    b = bench(pipeline=lambda spec: finish(spec, BoxResult(complete=True, records=(), diagnosis=None)))
    assert b.go(JobState.FAILED).fault is Fault.AGENT


def test_the_gate_sees_the_bare_base_plus_the_patch_and_nothing_else(bench) -> None:
    def program(spec: BoxSpec) -> FakeExit:
        ended = converts(spec)
        (folder(spec, "/work") / ".git" / "planted").write_text("")
        return ended

    trees: list[set[str]] = []

    def judge(spec: BoxSpec) -> FakeExit:
        work = folder(spec, "/work")
        trees.append({path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()})
        assert [mount.target for mount in spec.mounts if mount.writable] == ["/work", "/out"]
        return certifies(spec)

    b = bench(pipeline=program, gate=judge)
    b.go(JobState.ACCEPTED)
    assert set(SIX) <= trees[0]
    assert not any(path.startswith((".git/", "README")) for path in trees[0])


def test_a_box_sees_its_own_recipe_alone(bench) -> None:
    specs: list[BoxSpec] = []
    b = bench(pipeline=lambda spec: specs.append(spec) or converts(spec))
    b.go(JobState.CAPTURED)
    assert folder(specs[0], "/farm/recipe").name == order_of(specs[0]).recipe
    assert not (folder(specs[0], "/farm/lib") / "config").exists()
    places_scanned = json.loads(b.store.get(b.ledger.artifacts(b.id, attempt=1)["leak-scan.json"]))["places"]
    assert "recipe" in [place["name"] for place in places_scanned]


def test_measured_acceptance_waits_for_a_gpu_and_keeps_patch_and_certificate(bench) -> None:
    b = bench(accept=Accept.MEASURED)
    job = b.go(JobState.AWAITING_GPU)
    kept = b.ledger.artifacts(job.id, attempt=1)
    assert Patch.from_bytes(b.store.get(kept["patch"])).paths == SIX
    assert json.loads(b.store.get(kept["gates.json"]))["certificate"]["rows"]
    b.spine().step(job, Held())
    assert b.engine.list({}) == ()


def test_no_more_boxes_run_than_may(bench) -> None:
    b = bench(pipeline=runs_on, most=1, ops=("relu", "scale"))
    for job_id in b.ids:
        for _ in range(4):
            b.step(job_id)
    assert [box.labels["op"] for box in b.engine.list({}) if box.running] == ["relu"]
    assert {b.ledger.job(job_id).state for job_id in b.ids} == {JobState.RUNNING}
    (name,) = b.engine.started
    b.engine.finish(name, converts(b.engine.spec(name)))
    b.step(b.ids[1])
    assert len(b.engine.started) == 2


def waiting_jobs(bench: Callable[..., Bench], *ops: str) -> Bench:
    """Jobs of which the first has the only box; the others ask for one, the last first."""
    b = bench(pipeline=runs_on, most=1, ops=ops)
    for job_id in b.ids:
        while b.ledger.job(job_id).state is not JobState.RUNNING:
            b.step(job_id)
    for job_id in (b.ids[0], *reversed(b.ids[1:])):
        b.step(job_id)
    return b


def running(b: Bench) -> list[str]:
    return [box.labels["op"] for box in b.engine.list({}) if box.running]


def test_a_free_box_goes_to_the_job_that_is_first_whoever_asks(bench) -> None:
    b = waiting_jobs(bench, "add_bias", "relu", "scale")
    assert b.ledger.waits(b.ids) == dict.fromkeys(b.ids[1:], WaitsFor.BOX)
    b.engine.finish(b.engine.started[0], FakeExit(exit_code=1))
    due = b.step(b.ids[2])
    assert due is not None
    assert due.first == b.ids[1]
    assert running(b) == []
    b.step(b.ids[1])
    assert running(b) == ["relu"]
    assert b.ledger.waits(b.ids) == {b.ids[2]: WaitsFor.BOX}


def test_a_job_that_verifies_gets_a_box_before_an_older_one_that_is_to_run(bench) -> None:
    b = waiting_jobs(bench, "add_bias", "relu")
    first, second = b.ids
    b.engine.remove(b.engine.started[0], grace_s=0)
    b.step(second)
    box = b.engine.started[1]
    spec = b.engine.spec(box)
    b.engine.finish(box, converts(spec))
    while b.ledger.job(second).state is not JobState.VERIFYING:
        b.step(second)
    assert b.ledger.ahead(first, WaitsFor.BOX) == ()
    # The place is taken by somebody who is gone when the older one asks.
    b.engine.ensure(type(spec)(**{**vars(spec), "name": "other"}))
    b.step(second)
    b.engine.remove("other", grace_s=0)
    due = b.step(first)
    assert due is not None
    assert due.first == second


def test_the_hand_that_finds_a_free_box_takes_the_step_of_the_job_that_is_first(bench) -> None:
    b = waiting_jobs(bench, "add_bias", "relu", "scale")
    app = Celery("test", set_as_current=False)
    sent: list[str] = []
    register(app, b.runtime, lambda job, _: sent.append(job.op))
    b.engine.finish(b.engine.started[0], FakeExit(exit_code=1))
    app.tasks["poll"](b.ids[2])
    assert running(b) == ["relu"]
    assert sent == ["scale", "relu"]


def test_the_oldest_waiting_job_has_the_next_turn(bench) -> None:
    b = bench(pipeline=runs_on, most=1, ops=("add_bias", "relu", "scale", "silu_and_mul"))
    for job_id in b.ids:
        b.step(job_id)
    later = b.ledger.submit(
        recipe="cutile-rs",
        repo="builtin:minigym",
        push_to=None,
        base=b.ledger.run(b.job.run).base,
        accept=Accept.CERTIFIED,
        attempts=2,
        ops=["relu"],
    )
    assert b.ledger.waits(b.ids) == {b.ids[3]: WaitsFor.TURN}
    b.ledger.request_cancel(b.ids[0])
    b.step(b.ids[0])
    due = b.step(f"{later.id}.relu")
    assert due is not None
    assert due.first == b.ids[3]
    b.step(b.ids[3])
    assert b.ledger.job(b.ids[3]).state is JobState.PREPARING


def test_a_job_parked_for_the_engine_or_the_disk_comes_back_where_it_was(bench) -> None:
    b = bench(pipeline=runs_on)
    b.go(JobState.RUNNING)
    b.step()
    b.engine.down = True
    job = b.go(JobState.PARKED)
    assert (job.park_reason, job.parked_from) == (ParkReason.ENGINE, JobState.RUNNING)
    b.step()
    assert b.job.state is JobState.PARKED
    b.engine.down = False
    b.go(JobState.RUNNING)
    (name,) = b.engine.started
    b.engine.finish(name, converts(b.engine.spec(name)))
    assert b.go(JobState.ACCEPTED).attempt == 1


def test_a_full_disk_parks_before_anything_is_written(bench) -> None:
    b = bench(min_free_bytes=2**62)
    job = b.go(JobState.PARKED)
    assert (job.park_reason, job.parked_from) == (ParkReason.DISK, JobState.PREPARING)
    assert "free space" in (job.summary or "")
    assert list(jobs_folder(b.state).glob("*")) == []


def test_reaping_takes_what_nobody_waits_for_and_leaves_other_farms_alone(bench) -> None:
    b = bench(pipeline=runs_on)
    b.go(JobState.RUNNING)
    b.step()
    (name,) = b.engine.started
    mine = b.engine.spec(name)
    foreign = type(mine)(**{**vars(mine), "name": "other", "labels": {**mine.labels, "farm": "other"}})
    orphan = type(mine)(**{**vars(mine), "name": "orphan", "labels": {**mine.labels, "job": "r-0.gone"}})
    b.engine.ensure(foreign)
    b.engine.ensure(orphan)
    (jobs_folder(b.state) / "r-0.gone").mkdir()
    known = {b.id: b.job}
    assert b.spine().reap(known.get) == 1
    assert {box.name for box in b.engine.list({})} == {name, "other"}
    assert [path.name for path in jobs_folder(b.state).glob("*")] == [b.id]
    known[b.id] = b.job.evolve(state=JobState.CANCELLED)
    assert b.spine().reap(known.get) == 1
    assert {box.name for box in b.engine.list({})} == {"other"}
    assert list(jobs_folder(b.state).glob("*")) == []


def test_cancelling_keeps_the_logs_and_removes_the_box(bench) -> None:
    b = bench(pipeline=runs_on)
    b.go(JobState.RUNNING)
    b.step()
    (name,) = b.engine.started
    b.engine.finish(name, FakeExit(exit_code=0, log="half done\n"))
    b.ledger.request_cancel(b.id)
    b.go(JobState.CANCELLED)
    kept = b.ledger.artifacts(b.id, attempt=1)
    assert b.store.get(kept["box.log"]) == b"half done\n"
    assert TRACE not in kept
    assert b.engine.list({}) == ()


def _as_file(folder: Path, answer: bytes) -> None:
    (folder / "src.rs").write_bytes(answer)


def _as_crate(folder: Path, answer: bytes) -> None:
    with tarfile.open(folder / "kernels-0.1.0.crate", "w:gz") as crate:
        member = tarfile.TarInfo("kernels-0.1.0/src/lib.rs")
        member.size = len(answer)
        crate.addfile(member, io.BytesIO(answer))


@pytest.mark.parametrize("plant", [_as_file, _as_crate])
def test_the_hidden_answer_in_a_mount_ends_the_job_before_any_box(
    bench, tmp_path: Path, plant: Callable[[Path, bytes], None]
) -> None:
    registry = tmp_path / "cargo-home" / "registry"
    registry.mkdir(parents=True)
    (registry / "other.rs").write_text("fn other() {}\n")
    b = bench(ops=("silu_and_mul",), mounts=(Mount(name="cargo registry", folder=registry),))
    hidden = MINIGYM / "src/minigym/ops/cutile_rs/silu_and_mul_kernel/kernel.rs"
    plant(registry, hidden.read_bytes())
    job = b.go(JobState.FAILED)
    assert job.fault is Fault.INTEGRITY
    assert "cargo registry" in (job.summary or "")
    assert "silu_and_mul_kernel/kernel.rs" in (job.summary or "")
    assert b.engine.started == []
    assert b.trace()["where"] == "preparing"


def test_an_op_with_a_hidden_answer_is_prepared_where_nothing_gives_it_away(bench, tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    b = bench(ops=("silu_and_mul",), mounts=(Mount(name="cargo registry", folder=tmp_path / "registry"),))
    b.go(JobState.RUNNING)


@pytest.fixture
def remote(tmp_path: Path, git: GitCommand) -> Path:
    folder = tmp_path / "remote.git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main")
    return folder


def test_a_remote_that_refuses_is_asked_again_and_then_named_in_the_trace(bench, remote: Path) -> None:
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'this remote is read-only' >&2\nexit 1\n")
    hook.chmod(0o755)
    b = bench(push_to=str(remote), transient_retries=3)
    job = b.go(JobState.LANDING)
    waits = [b.spine().step(job, Held()) for _ in range(2)]
    assert waits[0].after_s == 2.0
    assert waits[1].final
    b.step()
    assert b.job.state is JobState.FAILED
    assert b.job.fault is Fault.INFRA
    trace = b.trace()
    assert trace["where"] == "landing"
    assert "this remote is read-only" in str(trace["summary"])
    assert "--push-to" in str(trace["summary"])
    assert len(b.engine.started) == 2, "the conversion was repeated"


def test_a_remote_that_comes_back_gets_the_commit_without_another_conversion(bench, remote: Path) -> None:
    b = bench(push_to=str(remote))
    job = b.go(JobState.LANDING)
    away = remote.rename(remote.with_name("away"))
    remote.mkdir()
    assert b.spine().step(job, Held()).after_s == 5.0
    shutil.rmtree(remote)
    away.rename(remote)
    assert b.go(JobState.ACCEPTED).commit is not None
    assert len(b.engine.started) == 2


def test_a_second_run_replaces_the_branch_that_the_first_one_left(bench, tmp_path: Path, git: GitCommand) -> None:
    repo = own_repo(tmp_path / "repo", git)
    b = bench(repo=str(repo))
    first = b.go(JobState.ACCEPTED)
    (repo / "NOTES").write_text("more\n")
    git(repo, "add", "NOTES")
    git(repo, "commit", "-q", "-m", "the base moves on")
    base = b.repositories.resolve(str(repo), None)
    run = b.ledger.submit(
        recipe="cutile-rs",
        repo=str(repo),
        push_to=None,
        base=base,
        accept=Accept.CERTIFIED,
        attempts=2,
        ops=["relu"],
    )
    b.id = f"{run.id}.relu"
    b.engine.started.clear()
    second = b.go(JobState.ACCEPTED)
    assert second.branch == first.branch
    assert git(repo, "rev-parse", second.branch) == second.commit != first.commit
    assert git(repo, "rev-parse", f"{second.commit}^") == base
    assert git(repo, "rev-list", "--count", f"main..{second.branch}") == "1"
    assert git(
        repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/farm*", "refs/heads/farm-certified"
    ) == ("farm-certified/cutile-rs/relu")
    assert git(repo, "rev-parse", "main") == base


def test_a_worker_that_lost_its_lease_pushes_nothing(bench, git: GitCommand) -> None:
    b = bench()
    job = b.go(JobState.LANDING)
    with pytest.raises(StaleFence):
        b.spine().step(job, Lost())
    assert git(b.state / "builtin" / "minigym.git", "branch", "--list", "farm*") == ""
