"""`farm ir`: exit codes and what is printed."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from drivers.cli import ir
from drivers.cli.app import FarmGroup

PAIRS = Path(__file__).parents[2] / "tileir" / "pairs"


def run(*args: str) -> Result:
    app = typer.Typer(cls=FarmGroup, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    ir.register(app)
    return CliRunner().invoke(app, ["ir", *args])


def pair(name: str) -> tuple[str, str]:
    return str(PAIRS / f"{name}.reference.mlir"), str(PAIRS / f"{name}.candidate.mlir")


def test_equal_kernels_end_with_0_and_cite_the_rules() -> None:
    result = run("diff", *pair("rows-in-rust"))
    assert result.exit_code == 0
    assert result.stdout.startswith("same\n")
    assert "  splat-lift: " in result.stdout
    assert "0 -> 5" in result.stdout


def test_different_kernels_end_with_1_and_show_both_places() -> None:
    result = run("diff", *pair("softmax-sum-flushes"))
    assert result.exit_code == 1
    assert "flush: " in result.stdout
    assert "reference: `addf` at line " in result.stdout
    assert "candidate: `addf` at line " in result.stdout


@pytest.mark.parametrize("content", [b"no tile ir", b"\xff\xfe", None])
def test_unreadable_input_ends_with_2_and_names_the_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "broken.mlir"
    if content is not None:
        file.write_bytes(content)
    result = run("diff", pair("rows-in-rust")[0], str(file))
    assert result.exit_code == 2
    assert "broken.mlir" in result.stderr


def test_json_is_one_document() -> None:
    result = run("diff", *pair("rows-wrong-stride"), "--json")
    document = json.loads(result.stdout)
    assert document["kind"] == "ir_diff"
    assert document["comparison"]["same"] is False
    assert document["comparison"]["difference"]["kind"] == "data flow"
    assert {"id", "why", "assumes_values"} == set(document["rules"][0])


def test_show_prints_a_text_that_reads_as_the_same() -> None:
    file = pair("rows-in-rust")[1]
    result = run("show", file)
    assert result.exit_code == 0
    assert "".join(result.stdout.split()) == "".join(Path(file).read_text().split())
    document = json.loads(run("show", file, "--json").stdout)
    assert document["entries"][0]["parameter_bytes"] == [8, 8, 4, 4, 4, 4, 4, 4, 4]
