"""The license lines of generated Rust: those of the reference."""

from farm.op import Op
from farm.tree import Tree


def rust_header(tree: Tree, op: Op) -> str:
    """The license lines of the reference as Rust comments; empty where it has none."""
    lines = tree[op.source_files[0]].data.decode("utf-8", "surrogateescape").splitlines()
    header = []
    for line in lines:
        if not line.startswith("#"):
            break
        header.append("//" + line[1:])
    return "\n".join(header) if any("SPDX" in line or "opyright" in line for line in header) else ""


def licensed(text: str, tree: Tree, op: Op) -> str:
    """The text of a Rust file below the reference's license lines."""
    header = rust_header(tree, op)
    return f"{header}\n\n{text}" if header else text
