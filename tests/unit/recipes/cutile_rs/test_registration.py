from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.layout import find_package
from farm.recipes.cutile_rs.registration import (
    add_import,
    add_module,
    declared_modules,
    imported_ops,
    remove_import,
    remove_module,
)
from farm.recipes.cutile_rs.rust import symbols
from farm.recipes.cutile_rs.syntax import Source
from tests.unit.recipes.cutile_rs.builders import layout, minigym

PACKAGE = find_package(minigym(), layout())
INIT = 'from pkg import ok\n\nif ok("cutile-rs"):\n'
LIB = '#[path = "../../ffi_util.rs"]\nmod ffi_util;\n'
NAMES = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True).filter(str.isidentifier), unique=True)
PYTHON = frozenset({"if", "in", "is", "as", "or", "and", "not", "for", "def", "del", "try", "from", "pass"})
PYTHON_WORDS = PYTHON | {"elif", "else", "with", "while", "class", "break", "raise", "yield", "await", "async"}
WORDS = NAMES.map(lambda names: [name for name in names if name not in PYTHON_WORDS])


def init(data: bytes) -> Source:
    return Source("init.py", data)


def plus_import(data: bytes, op: str) -> bytes:
    return add_import(init(data), op, "cutile-rs")


def minus_import(data: bytes, op: str) -> bytes:
    return remove_import(init(data), op)


def plus_module(data: bytes, op: str) -> bytes:
    return add_module(data, op, PACKAGE)


@pytest.mark.parametrize(
    "text",
    [
        INIT + "    pass\n",
        INIT + "    from . import aaa\n    from . import zzz  # noqa: F401 (kept)\n",
        INIT + "    from . import zzz\n\nlast = 1\n",
        INIT + "    from . import (aaa, zzz)\n",
        "from . import aaa\nfrom . import zzz\n",
        "import os\n",
        "",
    ],
)
def test_an_import_comes_and_goes_without_a_trace(text: str) -> None:
    added = plus_import(text.encode(), "mmm")
    assert "mmm" in imported_ops(init(added))
    assert plus_import(added, "mmm") == added
    assert minus_import(added, "mmm") == text.encode()


def test_an_import_takes_its_sorted_place_and_its_neighbours_comment() -> None:
    text = INIT + "    from . import aaa  # noqa: F401  (entry)\n    from . import zzz  # noqa: F401  (entry)\n"
    lines = plus_import(text.encode(), "mmm").decode().splitlines()
    assert lines[3:] == [f"    from . import {name}  # noqa: F401  (entry)" for name in ("aaa", "mmm", "zzz")]


def test_one_name_of_several_goes_alone() -> None:
    text = INIT + "    from . import (\n        aaa,\n        mmm,\n        zzz,\n    )\n"
    left = minus_import(text.encode(), "zzz").decode()
    assert left == INIT + "    from . import (\n        aaa,\n        mmm,\n    )\n"


def test_an_emptied_block_holds_pass() -> None:
    assert minus_import((INIT + "    from . import aaa  # x\n").encode(), "aaa").decode() == INIT + "    pass\n"


def test_names_imported_from_the_module_go_too() -> None:
    text = INIT + "    from .aaa import aaa_impl\n    from . import zzz\n"
    assert minus_import(text.encode(), "aaa").decode() == INIT + "    from . import zzz\n"


@settings(max_examples=25, deadline=None)
@given(WORDS)
def test_any_order_of_landing_gives_one_registration(names: list[str]) -> None:
    one = two = (INIT + "    pass\n").encode()
    for name in names:
        one = plus_import(one, name)
    for name in reversed(names):
        two = plus_import(two, name)
    assert one == two
    assert list(imported_ops(init(one))) == sorted(names)


@pytest.mark.parametrize(
    "text",
    [
        LIB,
        LIB + '\nmod aaa {\n    include!("a");\n}\n',
        LIB.replace("\n", "\r\n"),
        LIB.rstrip("\n"),
        LIB + '// mod mmm { not code }\nconst S: &str = "mod mmm {";\n',
        "",
    ],
)
def test_a_module_comes_and_goes_without_a_trace(text: str) -> None:
    added = plus_module(text.encode(), "mmm")
    assert declared_modules(added)[-1] == "mmm"
    assert b'include!("../../mmm_kernel/ffi.rs");' in added
    assert plus_module(added, "mmm") == added
    assert remove_module(added, "mmm") == text.encode()


def test_a_module_in_the_middle_goes_with_its_comments_and_one_blank_line() -> None:
    block = "/// About b {\n#[allow(dead_code)]\nmod b {\n    /* } */ const C: char = '}'; // }\n}\n"
    text = LIB + "\nmod a {\n}\n\n" + block + "\nmod c {\n}\n"
    assert declared_modules(text.encode()) == ("a", "b", "c")
    assert remove_module(text.encode(), "b").decode() == LIB + "\nmod a {\n}\n\nmod c {\n}\n"


def test_a_nested_module_is_not_an_op() -> None:
    text = LIB + "\nmod outer {\n    mod relu {\n    }\n}\n"
    assert declared_modules(text.encode()) == ("outer",)
    assert remove_module(text.encode(), "relu") == text.encode()


@given(st.permutations(["a", "b", "c"]), st.sampled_from(["\n", "\r\n"]))
def test_modules_added_in_turn_can_be_taken_out_in_any_order(order: list[str], newline: str) -> None:
    start = data = LIB.replace("\n", newline).encode()
    for name in "abc":
        data = plus_module(data, name)
    for name in order:
        data = remove_module(data, name)
    assert data == start


@pytest.mark.parametrize("change", [minus_import, lambda data, op: remove_module(data, op)])
def test_what_is_not_there_is_not_removed(change: Callable[[bytes, str], bytes]) -> None:
    data = b"# nothing here\n" if change is minus_import else LIB.encode()
    assert change(data, "relu") == data


def test_symbols_are_entries_and_exports_in_code_only() -> None:
    text = (
        "// #[cutile::entry()] fn no()\n#[cutile::entry(print_ir = false)]\npub unsafe fn one<E>() {}\n"
        '#[entry]\n#[inline]\nfn two() {}\nfn plain() {}\npub unsafe extern "C" fn cutile_x() {}\n'
        'const S: &str = "#[cutile::entry()] fn three()";\n'
    )
    assert symbols(text) == ("cutile_x", "one", "two")
