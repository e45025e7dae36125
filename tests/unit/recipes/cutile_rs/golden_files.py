"""The golden files of the host-code writer: what they are made from, and how to write them again."""

from pathlib import Path

from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.host import HostCode, write_host
from tests.unit.recipes.cutile_rs.builders import layout, minigym, op_named, planned, traced

FOLDER = Path(__file__).parent / "golden"
#: Op to the rank of its arrays and the names of its runtime scalars.
OPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "relu": (1, ()),
    "scale": (1, ("alpha",)),
    "add_bias": (2, ()),
    "silu_and_mul": (2, ()),
}


def written(name: str) -> HostCode:
    """The host code of an op of the built-in repo."""
    rank, scalars = OPS[name]
    tree = bare(minigym(), layout(), op_named(minigym(), name)).tree
    op = op_named(tree, name)
    analysis = traced(op, tree, rank=rank, scalars=scalars)
    return write_host(op, tree, layout(), analysis, planned(analysis))


def golden(name: str) -> dict[str, Path]:
    """Generated path to golden file."""
    folder = "src/minigym/ops/cutile_rs"
    return {
        f"{folder}/{name}.py": FOLDER / f"{name}.py.golden",
        f"{folder}/{name}_kernel/ffi.rs": FOLDER / f"{name}.ffi.rs.golden",
    }


if __name__ == "__main__":
    for op_name in OPS:
        files = written(op_name).files
        for path, file in golden(op_name).items():
            file.write_bytes(files[path])
