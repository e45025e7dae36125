"""The smallest conversion, from its recipe to its gates, without a box around it."""

from pathlib import Path

import pytest

from containers.box.executors import executors
from containers.box.io import LocalBoxIO
from containers.box.pipeline import run_pipeline
from farm.acceptance import Judgement, decide
from farm.capture import read_tree
from farm.errors import ConfigurationError, RepositoryError
from farm.gates import GateReport, Ruling
from farm.job import Accept
from farm.op import Op
from farm.orders import BoxOrder, BoxResult, Purpose
from farm.patch import make_patch
from farm.pipeline.routes import read_routes
from farm.recipe import detect_errors, load_recipe
from farm.recipes import Conversion, load
from farm.tree import Entry, Mode, Tree, write_tree
from tests import builders

SHIPPED = Path(__file__).parents[5] / "config" / "recipes" / "plain-copy"
RECIPE = load_recipe(SHIPPED)
TEXT = Entry(Mode.FILE, b"eleven words of a text that is long enough to hide\n")
BASE: Tree = {"ops/a.txt": TEXT, "ops/b.txt": TEXT, "ops/notes.md": TEXT, "copied/b.txt": TEXT, "README": TEXT}


@pytest.fixture
def conversion() -> Conversion:
    return load(RECIPE.conversion, RECIPE.layout)


def op_of(conversion: Conversion, name: str) -> Op:
    return next(op for op in conversion.inventory(BASE) if op.name == name)


def order(purpose: Purpose, patch: str | None = None) -> BoxOrder:
    return builders.order(
        purpose=purpose,
        op="a",
        recipe=RECIPE.name,
        conversion=RECIPE.conversion,
        source=RECIPE.source,
        target=RECIPE.target,
        executors=dict(RECIPE.executors),
        caps=dict(RECIPE.caps),
        patch_sha256=patch,
    )


def pipeline(conversion: Conversion, folder: Path) -> BoxResult:
    asked = order(Purpose.PIPELINE)
    offered = executors(asked, conversion, SHIPPED)
    table = read_routes((SHIPPED / "routes.toml").read_text(encoding="utf-8"), asked.caps)
    (folder / "out").mkdir()
    return run_pipeline(
        asked, offered, table, conversion, workspace=folder / "work", out=folder / "out", toolchain=folder
    )


def judge(conversion: Conversion, folder: Path) -> GateReport:
    io = LocalBoxIO(workspace=folder / "work", out=folder, toolchain=folder, log=folder / "logs" / "gate.log")
    return conversion.judge(order(Purpose.GATE, "0" * 64), io)


def test_the_shipped_recipe_has_no_mistakes() -> None:
    assert detect_errors(SHIPPED) == []
    assert (RECIPE.source, RECIPE.target) == ("plain", "copied")


def test_a_recipe_is_checked_by_the_layout_of_its_own_conversion(tmp_path: Path) -> None:
    text = (SHIPPED / "recipe.toml").read_text(encoding="utf-8")
    text = text.replace('target_folder = "copied"', 'target_folder = "ops"\npackage_holds = ["x"]')
    folder = tmp_path / "plain-copy"
    folder.mkdir()
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    errors = "\n".join(detect_errors(folder))
    assert "layout.package_holds" in errors
    assert "layout.target_folder: it is the source folder" in errors
    with pytest.raises(ConfigurationError, match="package_holds"):
        load("plain-copy", {**RECIPE.layout, "package_holds": ["x"]})


def test_texts_are_ops_and_their_copies_are_landed(conversion: Conversion) -> None:
    assert [(op.name, op.landed) for op in conversion.inventory(BASE)] == [("a", False), ("b", True)]
    with pytest.raises(RepositoryError, match=r"ops/\*\.txt"):
        conversion.inventory({"README": TEXT})


def test_the_bare_base_has_no_copy(conversion: Conversion) -> None:
    bare = conversion.bare(BASE, op_of(conversion, "b"))
    assert dict(bare.hidden) == {"copied/b.txt": TEXT}
    assert bare.tree.keys() == BASE.keys() - {"copied/b.txt"}
    assert not bare.crate


def test_the_pipeline_makes_a_patch_that_keeps_to_its_change_set_and_is_certified(
    conversion: Conversion, tmp_path: Path
) -> None:
    op = op_of(conversion, "a")
    bare = conversion.bare(BASE, op)
    write_tree(bare.tree, tmp_path / "work")
    result = pipeline(conversion, tmp_path)
    assert result.complete, result.diagnosis
    assert [record.stage for record in result.records] == ["A", "B", "D", "E"]
    patch = make_patch(bare.tree, read_tree(tmp_path / "work"))
    assert [(change.path, change.after) for change in patch.changes] == [("copied/a.txt", TEXT)]
    assert conversion.check(bare, op, patch) == ()
    decision = decide(
        judge(conversion, tmp_path),
        patch_sha256="0" * 64,
        accept=Accept.CERTIFIED,
        certifiable=RECIPE.gates.certifiable,
    )
    assert decision.judgement is Judgement.LAND


def test_another_file_leaves_the_change_set(conversion: Conversion) -> None:
    op = op_of(conversion, "a")
    bare = conversion.bare(BASE, op)
    patch = make_patch(bare.tree, {**bare.tree, "README": Entry(Mode.FILE, b"x")})
    assert [violation.path for violation in conversion.check(bare, op, patch)] == ["README"]


@pytest.mark.parametrize(
    ("copy", "said"), [(TEXT.data[:-1], "50 bytes instead of 51"), (b"X" + TEXT.data[1:], "byte 0 differs")]
)
def test_an_unequal_copy_fails_every_gate(conversion: Conversion, tmp_path: Path, copy: bytes, said: str) -> None:
    write_tree({**BASE, "copied/a.txt": Entry(Mode.FILE, copy)}, tmp_path / "work")
    report = judge(conversion, tmp_path)
    assert {(gate.ruling, gate.summary) for gate in report.gates} == {(Ruling.FAIL, said)}
    assert report.certificate is not None
    assert not report.certificate.complete


def test_a_missing_copy_is_the_executors_fault(conversion: Conversion, tmp_path: Path) -> None:
    write_tree({"ops/a.txt": TEXT}, tmp_path / "work")
    report = judge(conversion, tmp_path)
    assert report.certificate is None
    assert report.diagnosis is not None
    assert "copied/a.txt" in report.diagnosis.summary
