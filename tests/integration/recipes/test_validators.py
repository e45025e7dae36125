"""Each validator on what the real toolchain made of an op, as it is and with one thing wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from containers.toolchain import Toolchain
from tests.box_program import Folders

pytestmark = pytest.mark.toolchain

PACKAGE = "work/src/minigym/ops/cutile_rs"
KERNEL, FFI = f"{PACKAGE}/relu_kernel/kernel.rs", f"{PACKAGE}/relu_kernel/ffi.rs"
GOOD = (
    *("preflight", "analysis", "reference-ir", "entry", "compiles", "kernel", "generated-ir"),
    *("registration", "lint", "symbol", "performance", "contract"),
)


@pytest.fixture(scope="module")
def finished(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """`relu` of the built-in repository, converted by the programs to the end of its route."""
    made = Folders(tmp_path_factory.mktemp("box") / "relu", toolchain)
    made.begin("relu")
    done = made.run("containers.box")
    assert done.returncode == 0, done.stderr
    result = json.loads((made.out / "result.json").read_text(encoding="utf-8"))
    assert result["complete"], result["diagnosis"]
    return made


@pytest.fixture
def changed(finished: Folders, tmp_path: Path) -> Folders:
    """A copy that a test may spoil."""
    return finished.copy(tmp_path / "box")


@pytest.mark.parametrize("name", GOOD)
def test_a_validator_finds_nothing_wrong_with_what_the_programs_made(name: str, finished: Folders) -> None:
    said = finished.validate(name)
    assert said.code == 0, (*said.lines, said.message)
    assert said.message
    assert not said.message.startswith(("env:", "kernel:", "host:"))


def other_op(box: Folders) -> None:
    box.edit("out/analysis.json", '"op": "relu"', '"op": "scale"')


def lost_signature(box: Folders) -> None:
    file = box.out / "analysis.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    del table["signatures"][0]
    file.write_text(json.dumps(table), encoding="utf-8")


def cut_reference(box: Folders) -> None:
    text = next((box.out / "ir" / "reference").glob("*.mlir"))
    text.write_text(text.read_text(encoding="utf-8")[:200], encoding="utf-8")


def other_bytecode(box: Folders) -> None:
    file = next((box.out / "ir" / "reference").glob("*.tileirbc"))
    file.write_bytes(file.read_bytes() + b"\0")


def mutable_output(box: Folders) -> None:
    box.edit(KERNEL, "        y: *mut E,\n", "        y: &mut Tensor<E, { [BLOCK] }>,\n")


def no_kernel(box: Folders) -> None:
    (box.root / KERNEL).unlink()


def no_rust(box: Folders) -> None:
    box.edit(KERNEL, "get_tile_block_id()", "get_tile_block_id(")


def other_arithmetic(box: Folders) -> None:
    """Reads another block than the source: compiles, and is wrong."""
    box.edit(KERNEL, "get_tile_block_id().0", "get_tile_block_id().1")


def declared(box: Folders) -> None:
    """The same, and instances.json says that it is meant."""
    other_arithmetic(box)
    declare(box)


def declare(box: Folders) -> None:
    file = box.out / "instances.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    for instance in table["instances"]:
        instance["differs"] = "blocks are counted along the second axis"
    file.write_text(json.dumps(table), encoding="utf-8")


def no_instance(box: Folders) -> None:
    file = box.out / "instances.json"
    table = json.loads(file.read_text(encoding="utf-8"))
    table["instances"].pop()
    file.write_text(json.dumps(table), encoding="utf-8")


def wrong_argument(box: Folders) -> None:
    box.edit("out/instances.json", '"pointer y"', '"the array y"')


def lying_report(box: Folders) -> None:
    box.edit("out/ir-report.json", '"same": true', '"same": false')


def lost_text(box: Folders) -> None:
    next((box.out / "ir" / "generated").glob("*.mlir")).unlink()


def long_line(box: Folders) -> None:
    box.edit(FFI, "-> i32 {", "-> i32    {")


def calls_the_source(box: Folders) -> None:
    box.edit(f"{PACKAGE}/relu.py", "import torch\n", "import torch\nimport cuda.tile as ct\n")


def no_import(box: Folders) -> None:
    box.edit(f"{PACKAGE}/__init__.py", "from . import relu", "pass  # from . import relu")


def no_module(box: Folders) -> None:
    box.edit(f"{PACKAGE}/cutile_kernels/src/lib.rs", "mod relu", "mod rely")


def no_parameter(box: Folders) -> None:
    box.edit("work/tests/ops/test_relu.py", "cutile-rs", "cutile")


def other_export(box: Folders) -> None:
    box.edit("out/proof.json", '"cutile_relu"', '"cutile_other"')


def stale_proof(box: Folders) -> None:
    box.edit(FFI, "rc::LAUNCH_FAILED", "rc::INVALID_ARGS")


def no_perf_record(box: Folders) -> None:
    (box.out / "perf" / "baseline.json").unlink()


def figures_without_records(box: Folders) -> None:
    box.edit("out/performance.json", '"ratio": null', '"ratio": 1.2')


def no_log(box: Folders) -> None:
    box.edit("out/stages/D-1.json", '"executor": "program"', '"executor": "agent"')
    (box.out / "logs" / "D-1.log").unlink()


BAD: tuple[tuple[str, Callable[[Folders], None], int, str], ...] = (
    ("analysis", other_op, 1, "env: analysis.json: it is of scale"),
    ("analysis", lost_signature, 1, "by signature"),
    ("reference-ir", cut_reference, 1, "env: ir/reference/"),
    ("reference-ir", other_bytecode, 1, "another sha256"),
    ("entry", mutable_output, 1, "kernel: src/minigym/ops/cutile_rs/relu_kernel/kernel.rs:"),
    ("entry", no_kernel, 1, "kernel: there is no src/minigym"),
    ("compiles", no_rust, 1, "kernel: does not compile: src/minigym/ops/cutile_rs/relu_kernel/kernel.rs:"),
    ("compiles", other_arithmetic, 0, "differ from the reference's Tile IR, 0 of them as declared"),
    ("compiles", declared, 0, "as declared"),
    ("compiles", no_instance, 1, "has no instance"),
    ("kernel", declared, 0, "as declared"),
    ("kernel", no_rust, 1, "kernel: does not compile: src/minigym/ops/cutile_rs/relu_kernel/kernel.rs:"),
    ("kernel", other_arithmetic, 1, "signatures differ"),
    ("kernel", no_instance, 1, "has no instance"),
    ("kernel", wrong_argument, 1, "'the array y'"),
    ("generated-ir", lying_report, 1, "the report says otherwise"),
    ("generated-ir", lost_text, 1, "kernel: ir/generated/"),
    ("lint", long_line, 1, "host: src/minigym/ops/cutile_rs/relu_kernel/ffi.rs:"),
    ("lint", calls_the_source, 1, "imports cuda.tile"),
    ("registration", no_import, 1, "does not import relu"),
    ("registration", no_module, 1, "it has no module relu"),
    ("registration", no_parameter, 1, "a list of backends lacks cutile-rs"),
    ("symbol", other_export, 1, "does not export"),
    ("symbol", stale_proof, 1, "another state of the files"),
    ("performance", no_perf_record, 1, "perf/baseline.json is not there"),
    ("performance", figures_without_records, 1, "deferred and holds figures"),
    ("ir-diagnosis", lambda box: None, 1, "env: ir-diagnosis.json"),
    ("performance-diagnosis", lambda box: None, 1, "env: performance-diagnosis.json"),
    ("contract", no_log, 1, "1 things are missing"),
    ("no-such-validator", lambda box: None, 2, "env: no validator is called"),
)


@pytest.mark.parametrize(
    ("name", "spoil", "code", "says"),
    BAD,
    ids=[f"{name}-{spoil.__name__.strip('<>')}" for name, spoil, _, _ in BAD],
)
def test_a_validator_names_what_is_wrong(
    name: str, spoil: Callable[[Folders], None], code: int, says: str, changed: Folders
) -> None:
    spoil(changed)
    said = changed.validate(name)
    assert said.code == code, (*said.lines, said.message)
    assert says in said.message


def test_without_a_tool_preflight_could_not_be_run_and_says_which(changed: Folders, tmp_path: Path) -> None:
    partial = tmp_path / "toolchain"
    partial.mkdir()
    for part in os.listdir(changed.toolchain.root):
        if part != "native":
            (partial / part).symlink_to((changed.toolchain.root / part).resolve())
    said = changed.validate("preflight", TILEFARM_TOOLCHAIN=str(partial))
    assert said.code == 2
    assert said.message == "env: the toolchain has no native/bin/tilefarm-kc"


def test_host_code_with_another_grid_is_the_hosts_fault_and_an_error_in_the_kernel_the_kernels(
    changed: Folders,
) -> None:
    changed.edit(FFI, ".grid((grid_x as u32,", ".grid((grid_x as u32 + 1,")
    said = changed.validate("host")
    assert said.code == 1
    assert said.message.startswith("host: host code: row ")
    assert "the grid is" in said.message
    changed.edit(KERNEL, "let block: i32", "let block: u8")
    said = changed.validate("host")
    assert said.code == 1
    assert said.message.startswith("kernel: the crate does not build")


def test_other_tile_ir_is_the_kernels_until_it_is_declared_and_a_gpu_is_waited_for(changed: Folders) -> None:
    other_arithmetic(changed)
    said = changed.validate("host")
    assert said.code == 1
    assert said.message.startswith("kernel: Tile IR differs")
    declare(changed)
    assert changed.validate("compiles").code == 0  # leaves the texts that launches are held against
    said = changed.validate("host")
    assert said.code == 0, (*said.lines, said.message)
    assert "cannot be decided without a GPU" in said.message
    proof = json.loads((changed.out / "proof.json").read_text(encoding="utf-8"))
    assert proof["verdict"] == "DEFERRED"


def test_host_code_is_not_written_from_a_plan_whose_entries_are_no_longer_there(changed: Folders) -> None:
    wrapper = changed.root / PACKAGE / "relu.py"
    wrapper.write_text("# by hand\n", encoding="utf-8")
    changed.edit("out/instances.json", '"relu_kernel"', '"other_kernel"')
    done = changed.run("containers.box.program", "D")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("FAIL host: host code: row ")
    assert wrapper.read_text(encoding="utf-8") == "# by hand\n"


def test_a_stages_program_is_a_tool_that_says_how_it_went(changed: Folders) -> None:
    done = changed.run("containers.box.program", "E")
    assert (done.returncode, done.stdout) == (0, "DEFERRED: not measured: there is no GPU here\n")
    assert changed.run("containers.box.program", "F").returncode == 2
    assert changed.run("containers.box.program", "X").stdout.startswith("usage: ")
    (changed.out / "candidate.json").unlink()
    done = changed.run("containers.box.program", "C")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("BLOCKED kernel: the candidate was never recorded")


def test_a_kernel_that_is_launched_otherwise_than_it_was_compiled_is_the_hosts_fault_and_c_says_so(
    changed: Folders,
) -> None:
    changed.edit(FFI, "block.to_string()", "(block / 2).to_string()")
    assert changed.validate("kernel").code == 0
    said = changed.validate("host")
    assert said.code == 1
    assert said.message.startswith("host: host code: a kernel is launched otherwise than it was compiled")
    done = changed.run("containers.box.program", "C")
    assert done.stdout.splitlines()[-1].startswith("FAIL_FIXABLE host: launched otherwise than compiled")
    assert changed.validate("ir-diagnosis").code == 0
