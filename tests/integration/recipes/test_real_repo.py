"""The conversion's reading and editing of a real target repo, all of its ops."""

import ast
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from farm.layout import find_package
from farm.op import Op
from farm.recipes.cutile_rs.bare import bare, change_set
from farm.recipes.cutile_rs.host import write_host
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.syntax import Source
from farm.recipes.cutile_rs.targetless import without_target
from farm.recipes.cutile_rs.testfile import add_backend
from farm.tree import Entry
from tests.unit.recipes.cutile_rs.builders import folder_tree, layout, planned, traced, with_files

pytestmark = pytest.mark.shared
TARGET = "cutile-rs"


@pytest.fixture(scope="module")
def tree(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Entry]:
    folder = tmp_path_factory.mktemp("repo")
    bundle = shared / "targets" / "tilegym.bundle"
    subprocess.run(["git", "clone", "-q", "-b", "main", str(bundle), str(folder)], check=True)
    return {path: entry for path, entry in folder_tree(folder).items() if not path.startswith(".git/")}


@pytest.fixture(scope="module")
def ops(tree: dict[str, Entry]) -> tuple[Op, ...]:
    return inventory(tree, layout())


def test_it_has_32_ops_with_57_kernels_and_known_rows(ops: tuple[Op, ...]) -> None:
    named = {op.name: op for op in ops}
    assert len(ops) == 32
    assert len({(kernel.file, kernel.line) for op in ops for kernel in op.kernels}) == 57
    landed = ["attention_sink", "bmm", "matmul", "silu_and_mul", "swiglu"]
    assert sorted(name for name, op in named.items() if op.landed) == landed
    rows = {name: [site.rows for site in op.tests] for name, op in named.items()}
    assert rows["silu_and_mul"] == [17, 9]
    assert rows["swiglu"] == [3, 9, 5, 9]
    assert rows["relu"] == [4]
    assert rows["matmul"] == [None]
    assert rows["moe_align_block"] == []


def test_the_backend_parameter_comes_and_goes_in_every_test_file(
    tree: dict[str, Entry], ops: tuple[Op, ...]
) -> None:
    package = find_package(tree, layout())
    for op in ops:
        start = bare(tree, layout(), op)
        assert (start.tree == tree) is not op.landed
        for path in change_set(tree, layout(), op)[5:]:
            plain = start.tree[path].data
            assert TARGET.encode() not in plain
            edit = add_backend(Source(path, plain), package)
            assert edit.findings == ()
            assert TARGET.encode() in edit.data
            assert without_target(Source(path, edit.data), TARGET) == plain


def test_the_host_code_of_every_op_is_written_or_refused_with_a_place(
    tree: dict[str, Entry], ops: tuple[Op, ...]
) -> None:
    written = set()
    for op in ops:
        start = bare(tree, layout(), op).tree
        analysis = traced(op, start)
        code = write_host(op, start, layout(), analysis, planned(analysis))
        assert bool(code.files) is not bool(code.findings)
        assert all(finding.file and finding.line and finding.advice for finding in code.findings)
        if not code.files:
            continue
        written.add(op.name)
        assert set(code.files) == set(change_set(start, layout(), op))
        wrapper = code.files[f"src/tilegym/ops/cutile_rs/{op.name}.py"]
        imported = {node.module or "" for node in ast.walk(ast.parse(wrapper)) if isinstance(node, ast.ImportFrom)}
        assert not any(name.startswith("cuda") for name in imported)
        folder = f"src/tilegym/ops/cutile_rs/{op.name}"
        target = tuple(path for path in code.files if path.startswith((f"{folder}_kernel/", f"{folder}.py")))
        landed = replace(op, target_files=target)
        assert bare(with_files(start, code.files), layout(), landed).tree == start
    assert {"relu", "silu_and_mul", "swiglu", "gelu", "geglu", "dropout", "rms_norm", "splitk_reduce"} <= written
