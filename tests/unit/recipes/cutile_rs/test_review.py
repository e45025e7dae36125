"""What a patch may do to the files that all ops share."""

from collections.abc import Mapping

import pytest

from farm.layout import find_package
from farm.patch import make_patch
from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.host import write_host
from farm.recipes.cutile_rs.review import review
from farm.tree import Entry, Mode
from tests.unit.recipes.cutile_rs.builders import layout, minigym, op_named, planned, traced

OP = op_named(minigym(), "relu")
BARE = bare(minigym(), layout(), OP)
PACKAGE = find_package(BARE.tree, layout())
REGISTRATION = "src/minigym/ops/cutile_rs/__init__.py"
MODULES = "src/minigym/ops/cutile_rs/cutile_kernels/src/lib.rs"
TEST = "tests/ops/test_relu.py"
WRAPPER = "src/minigym/ops/cutile_rs/relu.py"


def patched() -> dict[str, Entry]:
    """The bare base plus what the host program writes."""
    analysis = traced(OP, BARE.tree)
    written = write_host(OP, BARE.tree, layout(), analysis, planned(analysis))
    return {**BARE.tree, **{path: Entry(Mode.FILE, data) for path, data in written.files.items()}}


def reasons(after: Mapping[str, Entry | None]) -> dict[str, str]:
    whole = {**patched(), **after}
    patch = make_patch(BARE.tree, {path: entry for path, entry in whole.items() if entry is not None})
    return {violation.path: violation.reason for violation in review(BARE, layout(), OP, patch)}


def edited(path: str, old: str, new: str) -> dict[str, Entry]:
    text = patched()[path].data.decode()
    assert old in text
    return {path: Entry(Mode.FILE, text.replace(old, new).encode())}


def test_what_the_programs_write_is_allowed() -> None:
    assert reasons({}) == {}


def test_layout_and_comments_of_shared_files_are_free() -> None:
    assert reasons(edited(TEST, "import pytest\n", "# by the farm\nimport pytest\n\n")) == {}
    assert reasons(edited(MODULES, "mod ", "// more\nmod   ")) == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edited(TEST, "common.check(", "common.check if True else ("), "target backend as one more parameter"),
        (edited(TEST, "torch.float16", "torch.float32"), "target backend as one more parameter"),
        (edited(TEST, "(37, 111)", "(32, 128)"), "target backend as one more parameter"),
        (edited(TEST, "import torch\n", "import torch\nimport os\n"), "target backend as one more parameter"),
        ({TEST: Entry(Mode.FILE, b"def broken(:\n")}, "target backend as one more parameter"),
        ({TEST: Entry(Mode.FILE, b"\0")}, "target backend as one more parameter"),
        (edited(REGISTRATION, "import silu_and_mul", "import silu_and_mul, os"), "one more import"),
        (edited(REGISTRATION, '"cutile-rs"', '"cutile"'), "one more import"),
        (edited(MODULES, "mod relu", "#[path = \"x.rs\"] mod relu"), "one more `mod`"),
        ({TEST: None}, "deleted"),
        ({REGISTRATION: None}, "deleted"),
        ({"tests/conftest.py": Entry(Mode.FILE, b"")}, "not in the change set"),
        ({"src/minigym/ops/cutile_rs/cutile_kernels/build.rs": Entry(Mode.FILE, b"")}, "not in the change set"),
        ({WRAPPER: Entry(Mode.LINK, b"/etc/passwd")}, "becomes a link"),
        ({WRAPPER: Entry(Mode.EXECUTABLE, b"")}, "becomes executable"),
    ],
)  # fmt: skip
def test_anything_more_is_refused_at_its_path(change: dict[str, Entry | None], reason: str) -> None:
    (path,) = change
    found = reasons(change)
    assert list(found) == [path]
    assert reason in found[path]
