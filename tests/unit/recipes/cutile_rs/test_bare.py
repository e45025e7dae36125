import dataclasses

import pytest

from farm.recipes.cutile_rs.bare import bare, change_set
from farm.recipes.cutile_rs.host import write_host
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.syntax import Source
from farm.recipes.cutile_rs.targetless import without_target
from tests.unit.recipes.cutile_rs.builders import (
    layout,
    minigym,
    op_named,
    planned,
    traced,
    with_files,
)

TARGET = "cutile-rs"


def stripped(text: str) -> str:
    return without_target(Source("test_x.py", text.encode()), TARGET).decode()


def test_an_op_that_has_not_landed_is_bare_already() -> None:
    tree = minigym()
    found = bare(tree, layout(), op_named(tree, "relu"))
    assert found.tree == tree
    assert found.hidden == {}
    assert found.symbols == ()
    assert "README.md" in found.withheld


def test_the_landed_op_leaves_no_trace_in_the_bare_tree() -> None:
    tree = minigym()
    found = bare(tree, layout(), op_named(tree, "silu_and_mul"))
    target = {path: entry for path, entry in found.tree.items() if "cutile_rs" in path or "test_silu" in path}
    assert target
    for entry in target.values():
        assert b"silu_and_mul_kernel" not in entry.data
        assert b"cutile_silu" not in entry.data
    assert TARGET.encode() not in found.tree["tests/ops/test_silu_and_mul.py"].data
    assert "cutile_silu_and_mul" in found.symbols
    assert len(found.hidden) == 6
    assert all(found.hidden[path] == tree[path] for path in found.hidden)
    assert inventory(found.tree, layout()) != inventory(tree, layout())


@pytest.mark.parametrize("name", ["relu", "scale", "add_bias", "silu_and_mul"])
def test_landing_an_op_and_taking_it_out_again_gives_the_same_bytes(name: str) -> None:
    start = bare(minigym(), layout(), op_named(minigym(), name)).tree
    op = op_named(start, name)
    analysis = traced(op, start, scalars=("alpha",))
    files = write_host(op, start, layout(), analysis, planned(analysis)).files
    assert set(files) == set(change_set(start, layout(), op))
    landed = with_files(start, files)
    assert op_named(landed, name).landed
    assert bare(landed, layout(), op_named(landed, name)).tree == start


def test_the_other_ops_stay_whole_when_two_have_landed() -> None:
    start = minigym()
    landed = start
    for name in ("relu", "scale"):
        op = op_named(landed, name)
        analysis = traced(op, landed, scalars=("alpha",))
        landed = with_files(landed, write_host(op, landed, layout(), analysis, planned(analysis)).files)
    only_relu = bare(landed, layout(), op_named(landed, "scale")).tree
    assert op_named(only_relu, "relu").landed
    assert bare(only_relu, layout(), op_named(only_relu, "relu")).tree == start


HEAD = "def test_op(backend, n, flag):\n"


@pytest.mark.parametrize(
    ("with_it", "without"),
    [
        ("    if backend == 'cutile-rs':\n        skip('no')\n    run()\n", "    run()\n"),
        ("    if backend == 'cutile-rs':\n        skip('no')\n", "    pass\n"),
        ("    if backend == 'cutile-rs' and not flag:\n        skip()\n    run()\n", "    run()\n"),
        (
            "    if 'cutile-rs' == backend:\n        a()\n    else:\n        b()\n        c()\n",
            "    b()\n    c()\n",
        ),
        ("    if backend != 'cutile-rs':\n        a()\n    b()\n", "    a()\n    b()\n"),
        (
            "    if flag:\n        a()\n    elif backend == 'cutile-rs':\n        b()\n    else:\n        c()\n",
            "    if flag:\n        a()\n    else:\n        c()\n",
        ),
        (
            "    if backend == 'cutile-rs':\n        a()\n    elif flag:\n        b()\n    else:\n        c()\n",
            "    if flag:\n        b()\n    else:\n        c()\n",
        ),
        (
            "    if flag:\n        a()\n    elif backend == 'cutile-rs':\n        b()\n    run()\n",
            "    if flag:\n        a()\n    run()\n",
        ),
        (
            "    if flag:\n        a()\n    elif backend != 'cutile-rs':\n        b()\n",
            "    if flag:\n        a()\n    else:\n        b()\n",
        ),
        (
            "    if backend == 'cutile' or backend == 'cutile-rs':\n        a()\n",
            "    if backend == 'cutile':\n        a()\n",
        ),
        (
            "    if (flag or n) and backend != 'cutile-rs' and n > 2:\n        a()\n",
            "    if (flag or n) and n > 2:\n        a()\n",
        ),
        (
            "    if backend in ('cutile', 'cutile-rs'):\n        a()\n",
            "    if backend in ('cutile',):\n        a()\n",
        ),
        ("    if backend in ('cutile-rs',):\n        a()\n    b()\n", "    b()\n"),
        ("    if backend not in ['cutile-rs']:\n        a()\n", "    a()\n"),
        ("    x = 1e-2 if backend == 'cutile-rs' else 1e-5\n", "    x = 1e-5\n"),
        ("    x = {'cutile': 1, 'cutile-rs': 2}[backend]\n", "    x = {'cutile': 1}[backend]\n"),
        ("    x = {'cutile-rs': 2, 'cutile': 1}[backend]\n", "    x = {'cutile': 1}[backend]\n"),
        ("    graph = backend == 'cutile-rs'\n", "    graph = False\n"),
        (
            "    if backend != 'cutile-rs':\n        if backend == 'cutile-rs' or flag:\n            a()\n",
            "    if flag:\n        a()\n",
        ),
        ("    # cutile-rs cannot\n    if backend == 'cutile-rs':\n        skip()\n    run()\n", "    run()\n"),
    ],
)
def test_conditions_about_the_target_go_and_the_rest_stays(with_it: str, without: str) -> None:
    assert stripped(HEAD + with_it) == HEAD + without


@pytest.mark.parametrize(
    ("with_it", "without"),
    [
        ("_b = ['cutile', 'cutile-rs']\n", "_b = ['cutile']\n"),
        ("_b = ['cutile-rs', 'cutile', 'cutile-rs', 'cutile-rs']\n", "_b = ['cutile']\n"),
        ("_b = ('cutile', 'cutile-rs')\n", "_b = ('cutile',)\n"),
        ("_b = [\n    'cutile',\n    'cutile-rs',\n]\n", "_b = [\n    'cutile',\n]\n"),
        ("_b = ['cutile'] + ['cutile-rs']\n", "_b = ['cutile']\n"),
        ("_b = ['cutile'] + (['cutile-rs'] if is_backend_available('cutile-rs') else [])\n", "_b = ['cutile']\n"),
        ("_b = ['cutile']\n_b += ['cutile-rs']\n", "_b = ['cutile']\n"),
        ("_b = ['cutile']\n_b.append('cutile-rs')\n", "_b = ['cutile']\n"),
        (
            "_b = ['cutile']\nif is_backend_available('cutile-rs'):\n    _b.append('cutile-rs')\n",
            "_b = ['cutile']\n",
        ),
        ("_r = [('cutile', 1), ('cutile-rs', 1)]\n", "_r = [('cutile', 1)]\n"),
        ("_r = [param('cutile', 1), param('cutile-rs', 1, marks=x)]\n", "_r = [param('cutile', 1)]\n"),
        (
            "@pytest.mark.skipif(not is_backend_available('cutile-rs'), reason='x')\ndef test_it(): 0\n\nz = 1\n",
            "\nz = 1\n",
        ),
    ],
)
def test_lists_lose_the_target_and_keep_the_rest(with_it: str, without: str) -> None:
    assert stripped(with_it) == without


def test_a_file_that_never_names_the_target_keeps_every_byte() -> None:
    text = 'x  =  {"cutile":1 ,}\r\nif backend == "cutile" :\r\n\tgo( )\r\n'
    assert stripped(text) == text


def test_siblings_are_paths_of_their_implementations() -> None:
    tree = minigym()
    rules = {"relu": ("silu_and_mul",)}
    found = bare(tree, dataclasses.replace(layout(), siblings=rules), op_named(tree, "relu"))
    assert found.siblings == op_named(tree, "silu_and_mul").target_files
