"""The recipe's worked examples, through the real validators: what agents read there compiles and is proven."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from containers.box.files import read_json
from containers.box.io import LocalBoxIO
from containers.toolchain import Toolchain
from farm import crate
from farm.analysis import Analysis
from farm.codec import decode
from farm.layout import Layout
from farm.recipes import read_table
from farm.recipes.cutile_rs.stages.kc import compile_entries
from tests.box_program import RECIPE, Folders
from tests.integration.recipes.worked import (
    ALL,
    BLEND,
    EXAMPLES,
    Example,
    begin,
    by_pointers,
    by_tensors,
    files_of,
    put_host,
    put_kernel,
)

pytestmark = pytest.mark.toolchain

#: A matrix as the compile server wants it.
MATRIX = {"kind": "tensor", "address": 1 << 20, "shape": [64, 64], "strides": [64, 1]}
#: How the two entries of the spellings are compiled.
WORDS: list[dict[str, Any]] = [
    {
        "id": "numbers",
        "entry": "numbers",
        "generics": ["f16", "64", "true"],
        "args": {
            "p": {"kind": "pointer", "address": 4096},
            "q": {"kind": "pointer", "address": 8192},
            "s": {"kind": "opaque"},
            "n": {"kind": "scalar", "value": 50},
        },
        "occupancy": None,
        "num_ctas": None,
    },
    {
        "id": "shapes",
        "entry": "shapes",
        "generics": ["f16", "32", "16"],
        "args": {"x": MATRIX, "y": MATRIX},
        "occupancy": None,
        "num_ctas": None,
    },
]


@pytest.fixture(scope="module", params=ALL, ids=lambda example: example.op)
def traced(
    request: pytest.FixtureRequest, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Example, Folders]:
    """An example's op as stage A leaves it."""
    example: Example = request.param
    made = Folders(tmp_path_factory.mktemp("worked") / example.op, toolchain)
    begin(made, example)
    assert made.run("containers.box").returncode == 0
    assert made.validate("analysis").code == 0
    return example, made


def test_a_worked_example_compiles_to_its_sources_tile_ir(traced: tuple[Example, Folders]) -> None:
    example, box = traced
    put_kernel(box, example, "kernel.rs", by_pointers(f"{example.op}_kernel"))
    for name in ("entry", "compiles", "kernel", "generated-ir", "lint"):
        said = box.validate(name)
        assert said.code == 0, (name, *said.lines, said.message)
    assert "compile to the reference's Tile IR" in box.validate("kernel").message


def test_the_example_by_tensors_differs_in_promises_alone_and_its_host_code_is_proven(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    box = Folders(tmp_path / "blend", toolchain)
    begin(box, BLEND)
    assert box.run("containers.box").returncode == 0
    analysis = read_json(box.out / "analysis.json", Analysis)
    shown = json.loads(BLEND.file("instance"))
    made = by_pointers("blend_kernel")(next(item for item in analysis.signatures if item.args[0].dtype == "f32"))
    assert (shown["entry"], shown["generics"], shown["args"]) == (made.entry, list(made.generics), made.args)
    put_kernel(box, BLEND, "tensor.rs", by_tensors("blend_kernel"))
    said = box.validate("kernel")
    assert said.code == 1
    different = [line for line in said.lines if ", signature " in line]
    assert len(different) == 3
    assert all(": fact: About parameter" in line for line in different)
    put_kernel(box, BLEND, "tensor.rs", by_tensors("blend_kernel", differs="promises of what the launcher finds"))
    put_host(box, BLEND, layout(), "ffi-tensor.rs")
    for name in ("compiles", "kernel", "host", "symbol"):
        said = box.validate(name)
        assert said.code == 0, (name, *said.lines, said.message)
    proof = json.loads((box.out / "proof.json").read_text(encoding="utf-8"))
    assert len(proof["undecided"]) == 3
    assert all("differs as declared: promises" in text for text in proof["undecided"])
    put_kernel(box, BLEND, "kernel.rs", by_pointers("blend_kernel"))
    put_host(box, BLEND, layout())
    for name in ("registration", "lint", "entry", "kernel", "host", "symbol"):
        said = box.validate(name)
        assert said.code == 0, (name, *said.lines, said.message)


def kernels() -> list[tuple[str, str]]:
    """Every kernel file of the examples, with the example's name."""
    texts = sorted(EXAMPLES.glob("*.md"))
    files = [(text.stem, name, body) for text in texts for name, body in files_of(text).items()]
    return [(stem, body) for stem, name, body in files if "#[cutile::module]" in body]


def layout() -> Layout:
    return decode(Layout, read_table((RECIPE / "recipe.toml").read_text(encoding="utf-8")), "layout")


def test_every_spelling_of_the_mapping_compiles_and_rustc_takes_all_kernels(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    box = Folders(tmp_path / "words", toolchain)
    begin(box, BLEND)
    io = LocalBoxIO(workspace=box.work, out=box.out, toolchain=toolchain.root, log=tmp_path / "log")
    spellings = tmp_path / "spellings.rs"
    spellings.write_text(files_of(EXAMPLES / "spellings.md")["kernel.rs"], encoding="utf-8")
    results = compile_entries(io, spellings, "sm_90", tmp_path / "ir", WORDS)
    assert isinstance(results, list), results
    assert [result["error"] for result in results] == [None, None]
    library = box.work / "src/minigym/ops/cutile_rs/cutile_kernels/src/lib.rs"
    modules = []
    for number, (name, text) in enumerate(kernels()):
        (tmp_path / f"{number}.rs").write_text(text, encoding="utf-8")
        modules.append(f'mod {name}_{number} {{ include!("{tmp_path}/{number}.rs"); }}\n')
    assert len(modules) == 5
    library.write_text(library.read_text(encoding="utf-8") + "".join(modules), encoding="utf-8")
    built = crate.build(io, library.parents[1])
    assert built.library is not None, built.findings


def test_every_function_that_the_mapping_names_is_among_the_spellings_or_said_to_be_untried() -> None:
    mapping = (RECIPE / "references" / "mapping.md").read_text(encoding="utf-8")
    spelled = files_of(EXAMPLES / "spellings.md")["kernel.rs"]
    rows = [line.split("|") for line in mapping.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"\b([a-z_0-9]+)[!]?\(", row[2])}
    assert len(named) > 40
    assert {name for name in named if not re.search(rf"\b{name}!?[(\[]", spelled)} == set()
