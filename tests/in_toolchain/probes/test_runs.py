"""Probes of whole subjects, in processes, on a target repo that runs on a CPU."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from containers.box.gate import probes
from containers.box.gate.probes import calls as saved
from containers.box.gate.probes.cases import case_to_plain
from containers.box.gate.probes.plan import plan
from containers.box.gate.probes.side import source_side, target_side
from containers.box.gate.probes.worker import NO_TIME, Worker
from containers.box.gate.subject import Sink, Subject
from farm.codec import decode
from farm.gates import Ruling
from farm.measured.probes import judge_probes
from farm.measured.records import Probe, ProbeKind
from tests.cpugym import KERNELS, NATIVE, replace, subject
from tests.in_toolchain.probes.support import call_of


def run(
    made: Subject, folder: Path, budget: int, case_limit_s: float = 60.0, *, jobs: int = 1, limit_s: float = 600.0
) -> tuple[list[Probe], probes.Summary]:
    """The records, as a reader of results gets them."""
    sink = Sink(folder / "probes.jsonl")
    try:
        summary = probes.run(
            made,
            limit_s=limit_s,
            sink=sink,
            jobs=jobs,
            budget=budget,
            case_limit_s=case_limit_s,
            scratch=folder,
        )
    finally:
        sink.close()
    lines = [json.loads(line) for line in (folder / "probes.jsonl").read_text().splitlines()]
    assert {line.pop("record") for line in lines} == {"Probe"}
    assert [p.name for p in folder.iterdir() if p.name.startswith("probes-")] == []
    return [decode(Probe, line) for line in lines], summary


def wrapper(text: str) -> Callable[[Path], None]:
    """An edit that puts `text` at the start of the target's function."""
    place = "def relu(x):\n"
    return lambda tree: replace(tree / NATIVE / "relu.py", place, place + text)


def test_a_landed_implementation_passes_with_an_oracle_for_each_probe(tmp_path: Path) -> None:
    records, summary = run(subject(tmp_path / "s", "relu"), tmp_path, 40)
    assert len(records) == summary.probes == 40
    assert (summary.functions, summary.unportable) == (("relu",), ())
    assert judge_probes(records).findings == ()
    assert {record.kind for record in records} == set(ProbeKind)
    assert all(record.source_raised is None and record.target_raised is None for record in records)
    spoken = [record for record in records if "-> 0" not in record.name]
    assert all(record.source_error_ulp == 0.0 == record.target_error_ulp for record in spoken)


@pytest.mark.long
def test_a_library_that_leaves_out_the_last_element_and_a_lacking_way_back_are_found(tmp_path: Path) -> None:
    def edit(tree: Path) -> None:
        replace(tree / KERNELS / "relu.c", "FOR_EACH(x, float v", "FOR_EACH(x, if (i == n_ - 1) break; float v")
        wrapper("    x = x.detach()\n")(tree)

    records, _ = run(subject(tmp_path / "s", "relu", edit), tmp_path, 12)
    assert all(record.poisoned for record in records if record.source_raised is None and "-> 0" not in record.name)
    facts = records[0].unequal_facts
    assert facts is not None
    assert "requires_grad False, not True" in facts
    assert "no gradient of x" in facts


@pytest.mark.long
def test_a_process_that_dies_or_hangs_on_a_probe_loses_no_other(tmp_path: Path) -> None:
    edit = wrapper(
        "    import os, time\n"
        "    if x.shape == (3, 6, 7):\n"
        "        os.kill(os.getpid(), 11)\n"
        "    while x.shape == (7, 5, 7):\n"
        "        time.sleep(1)\n"
    )
    records, _ = run(subject(tmp_path / "s", "relu", edit), tmp_path, 40, case_limit_s=20)
    raised = {record.name: record.target_raised for record in records if record.target_raised is not None}
    assert raised == {"axis 5 -> 6": "the process died (signal 11)", "axis 3 -> 7": "no reply within 20 s"}
    assert all(record.source_raised is None for record in records)
    assert len(judge_probes(records).findings) == 2


def test_two_workers_write_the_records_of_one(tmp_path: Path) -> None:
    made = subject(tmp_path / "s", "relu", wrapper("    x = x.detach()\n"))
    found = []
    for jobs in (1, 2):
        folder = tmp_path / f"{jobs}"
        folder.mkdir()
        found.append(run(made, folder, 16, jobs=jobs)[0])
    one, two = (sorted(records, key=lambda record: (record.key, record.name)) for records in found)
    assert len(one) == 16
    assert one == two
    assert any(record.unequal_facts for record in one)


@pytest.mark.long
def test_a_crash_of_one_worker_loses_its_case_alone(tmp_path: Path) -> None:
    edit = wrapper("    import os\n    if x.shape == (3, 6, 7):\n        os.kill(os.getpid(), 11)\n")
    records, _ = run(subject(tmp_path / "s", "relu", edit), tmp_path, 40, jobs=2)
    assert len(records) == 40
    raised = {record.name: record.target_raised for record in records if record.target_raised is not None}
    assert raised == {"axis 5 -> 6": "the process died (signal 11)"}
    assert all(record.source_raised is None for record in records)


def test_a_worker_computes_what_it_has_time_for_and_says_what_it_has_not(tmp_path: Path) -> None:
    made = subject(tmp_path / "s", "relu", wrapper("    import time\n    time.sleep(0.2)\n"))
    call = call_of("relu", torch.randn(4, 6))
    for number, case in enumerate(plan([call], 40)):
        saved.save(tmp_path / f"case-{number}", case_to_plain(case))
    worker = Worker(
        target=target_side(made, "target", tmp_path),
        source=source_side(made, "source", tmp_path),
        folder=tmp_path,
        case_limit_s=60,
    )
    worker.numbers = list(range(40))
    told: dict[int, str | None] = {}
    try:
        worker.target.start(120)
        worker.targets(time.monotonic() + 7)
        assert not worker.target.runs
        worker.sources(time.monotonic() + 120, told.__setitem__)
    finally:
        worker.end()
    done = [number for number in told if told[number] is None]
    assert list(told) == worker.numbers
    assert 0 < len(done) < 40
    assert done == list(range(len(done)))
    assert told == worker.aims
    assert all((tmp_path / f"{side}-{number}").exists() for side in ("target", "source") for number in done)
    assert not (tmp_path / f"source-{len(done)}").exists()
    assert set(told.values()) == {None, NO_TIME}


@pytest.mark.long
def test_when_time_runs_out_every_probe_has_its_record(tmp_path: Path) -> None:
    edit = wrapper("    import time\n    time.sleep(1)\n")
    records, summary = run(subject(tmp_path / "s", "relu", edit), tmp_path, 80, jobs=2, limit_s=60)
    assert summary.seconds < 75
    left = [record for record in records if record.unrun is not None]
    assert len(records) == len({(record.key, record.kind, record.name) for record in records}) == 80
    assert {record.unrun for record in left} == {NO_TIME}
    (finding,) = judge_probes(records).findings
    assert finding.ruling is Ruling.INFRA
    assert f"{len(left)} of 80 probes did not run" in finding.reason


@pytest.mark.long
def test_functions_that_the_registry_makes_are_called_with_the_rows_arguments(tmp_path: Path) -> None:
    def base(tree: Path) -> None:
        for backend in ("loops", "native"):
            file = tree / f"src/cpugym/ops/{backend}/relu.py"
            replace(file, "def relu(x):\n    return", "def relu():\n    return lambda x:")
        replace(tree / "src/cpugym/ops/ops.py", "def relu(x):", "def relu():")
        test = tree / "tests/ops/test_relu.py"
        test.write_text(test.read_text().replace("cpugym.ops.relu", "cpugym.ops.relu()"))

    records, summary = run(subject(tmp_path / "s", "relu", base=base), tmp_path, 10)
    assert summary.calls >= 2
    assert judge_probes(records).findings == ()
    assert all(record.source_error_ulp is not None for record in records if record.kind is ProbeKind.SEED)


@pytest.mark.long
def test_a_target_that_cannot_be_imported_is_no_verdict(tmp_path: Path) -> None:
    def edit(tree: Path) -> None:
        (tree / NATIVE / "relu.py").write_text("raise OSError('no library')\n")

    with pytest.raises(probes.ProbesFailed, match=r"the target could not be imported.*no library"):
        run(subject(tmp_path / "s", "relu", edit), tmp_path, 4)
