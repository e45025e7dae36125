import pytest

from farm.errors import RepositoryError
from farm.recipes.cutile_rs.inventory import inventory
from farm.tree import Entry, Mode
from tests.unit.recipes.cutile_rs.builders import gym_with, layout, minigym, op_named, with_files

KERNEL = """
import cuda.tile as ct
from minigym.backend import register_impl

@ct.kernel
def _probe_kernel(x, N: ct.Constant[int]):
    pass

@register_impl("get_probe", backend="cutile")
def get_probe():
    return None
"""


def rows_of(test: str) -> list[int | None]:
    return [site.rows for site in op_named(gym_with(KERNEL, test), "probe").tests]


def test_the_builtin_repo_has_its_ops_with_kernels_rows_and_the_landed_one() -> None:
    ops = {op.name: op for op in inventory(minigym(), layout())}
    assert {"relu", "silu_and_mul", "add_bias", "scale"} <= set(ops)
    assert [name for name, op in ops.items() if op.landed] == ["silu_and_mul"]
    assert [kernel.function for kernel in ops["scale"].kernels] == ["_scale_whole_kernel", "_scale_tail_kernel"]
    assert all(site.rows for op in ops.values() for site in op.tests)
    assert len(ops["silu_and_mul"].target_files) == 3


def test_a_kernel_site_is_the_line_of_its_def() -> None:
    op = op_named(gym_with(KERNEL), "probe")
    assert [(k.function, k.line) for k in op.kernels] == [("_probe_kernel", 6)]
    assert op.registered == ("get_probe",)
    assert op.tests == ()


@pytest.mark.parametrize(
    "text",
    [
        "from cuda import tile as ct\n@ct.kernel(occupancy=2)\ndef k(x): pass\n",
        "from cuda.tile import kernel as kk\n@kk\ndef k(x): pass\n",
        "import cuda.tile\ndef k(x): pass\nkernel = cuda.tile.kernel(k)\n",
        "import cuda.tile as ct\ndef outer():\n    @ct.kernel\n    def k(x): pass\n    return k\n",
        "import cuda.tile as ct\n@mark('a')\n@ct.kernel\ndef k(x): pass\n",
    ],
)
def test_kernels_are_found_however_the_decorator_is_written(text: str) -> None:
    op = op_named(gym_with(text + "register_impl('probe', backend='cutile')(k)\n"), "probe")
    assert [kernel.function for kernel in op.kernels] == ["k"]


def test_kernels_of_imported_helper_modules_belong_to_the_op() -> None:
    source = (
        "from . import utils\nfrom .deep.more import f\n@register_impl('probe', 'cutile')\ndef probe(): pass\n"
    )
    more = "import cuda.tile as ct\n@ct.kernel\ndef _more(x): pass\n"
    tree = with_files(gym_with(source), {"src/minigym/ops/cutile/deep/more.py": more})
    op = op_named(tree, "probe")
    assert [kernel.file for kernel in op.kernels] == ["src/minigym/ops/cutile/deep/more.py"]
    assert "src/minigym/ops/cutile/utils.py" in op.source_files
    assert op.source_files[0] == "src/minigym/ops/cutile/probe.py"


HEAD = "import itertools\nimport pytest\nimport torch\n_backends = ['cutile']\n"


@pytest.mark.parametrize(
    ("marks", "rows"),
    [
        ("@pytest.mark.parametrize('backend', _backends)", 1),
        ("@pytest.mark.parametrize('backend', ['cutile', 'other'])\n@pytest.mark.parametrize('n', [1, 2, 3])", 3),
        (
            "@pytest.mark.parametrize('backend', _backends)\n"
            "@pytest.mark.parametrize('n,d', [(n, d) for n in range(4) for d in (torch.int8, torch.half) if n])",
            6,
        ),
        ("@pytest.mark.parametrize('backend,n', [(b, n) for b in _backends + ['other'] for n in (1, 2)])", 2),
        ("@pytest.mark.parametrize('backend, n', [pytest.param('cutile', 2, id='a'), ('other', 2)])", 1),
        ("@pytest.mark.parametrize('backend', ['other'])", 0),
        (
            "@pytest.mark.parametrize('backend', _backends)\n"
            "@pytest.mark.parametrize('n,m', list(itertools.product([1, 2], [3, 4, 5])))",
            6,
        ),
        ("@pytest.mark.parametrize('backend', _backends)\n@pytest.mark.parametrize('n', sizes())", None),
        ("@pytest.mark.parametrize('backend', [b for b in every_backend()])", None),
    ],
)
def test_rows_are_counted_where_the_parametrisation_is_literal(marks: str, rows: int | None) -> None:
    assert rows_of(f"{HEAD}{marks}\ndef test_op(**kw): pass\n") == [rows]


def test_lists_that_depend_on_available_backends_are_read_for_the_source_alone() -> None:
    test = (
        f"{HEAD}class TestProbe:\n    _b = ['cutile']\n    if is_backend_available('other'):\n"
        "        _b = _b + ['other', 'cutile']\n"
        "    @pytest.mark.parametrize('backend', _b)\n    def test_op(self, backend): pass\n"
    )
    assert rows_of(test) == [1]


def test_functions_without_the_backend_and_timings_are_not_sites() -> None:
    test = (
        f"{HEAD}@pytest.mark.parametrize('n', [1])\ndef test_other(n): pass\n"
        "@pytest.mark.parametrize('backend', _backends)\ndef test_perf(backend): pass\n"
        "@pytest.mark.parametrize('backend', _backends)\ndef helper(backend): pass\n"
    )
    assert rows_of(test) == []


def test_a_repo_without_the_layout_says_what_was_looked_for() -> None:
    tree = {path: entry for path, entry in minigym().items() if "cutile_kernels" not in path}
    with pytest.raises(RepositoryError, match="`ops/cutile` and `ops/cutile_rs/cutile_kernels`"):
        inventory(tree, layout())
    with pytest.raises(RepositoryError):
        inventory({}, layout())


def test_two_packages_are_refused_by_name() -> None:
    tree = minigym()
    twice = {**tree, **{f"vendor/{path}": entry for path, entry in tree.items()}}
    with pytest.raises(RepositoryError, match=r"src/minigym, vendor/src/minigym"):
        inventory(twice, layout())


RELU = "src/minigym/ops/cutile/relu.py"
TEST = "tests/ops/test_relu.py"


def unread(files: dict[str, str | bytes]) -> dict[str, list[str]]:
    """Op -> places that cannot be read, of the built-in repo with some files replaced."""
    ops = inventory(with_files(minigym(), files), layout())
    return {op.name: [f"{p.file}:{p.line}:{p.column}" for p in op.problems] for op in ops if op.problems}


@pytest.mark.parametrize("file", [RELU, TEST])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("def broken(:\n", "1:12"),
        ("x = 1\n\n  y = 2\n", "3:2"),
        ("a = '\0'\n", "1:1"),
        (b"\xff\xfe", "1:2"),
        ("x = " + "-" * 100_000 + "1\n", "1:1"),
    ],
)
def test_a_file_that_is_not_python_is_a_problem_of_its_op_alone(file: str, text: str | bytes, place: str) -> None:
    tree = with_files(minigym(), {file: text})
    ops = {op.name: op for op in inventory(tree, layout())}
    assert unread({file: text}) == {"relu": [f"{file}:{place}"]}
    assert "not readable as Python" in str(ops["relu"].problems[0])
    assert "correct the file" in ops["relu"].problems[0].advice
    assert [ops[name] for name in ("add_bias", "scale")] == [op_named(minigym(), n) for n in ("add_bias", "scale")]


def test_an_op_with_an_unreadable_test_keeps_what_can_be_read_of_it() -> None:
    op = op_named(with_files(minigym(), {TEST: "def ("}), "relu")
    assert [kernel.function for kernel in op.kernels] == ["_relu_kernel"]
    assert op.tests == ()


def test_an_unreadable_helper_is_a_problem_of_the_ops_that_import_it_and_no_op_itself() -> None:
    helper = {"src/minigym/ops/cutile/shared.py": "def (\n"}
    user = "from . import shared\n" + KERNEL
    tree = with_files(gym_with(user), helper)
    found = {op.name: [p.file for p in op.problems] for op in inventory(tree, layout()) if op.problems}
    assert found == {"probe": ["src/minigym/ops/cutile/shared.py"]}


def test_an_unreadable_package_file_is_a_problem_of_every_op_below_it() -> None:
    assert set(unread({"src/minigym/ops/cutile/__init__.py": "def (\n"})) == {
        "add_bias",
        "relu",
        "scale",
        "silu_and_mul",
    }
    assert unread({"src/minigym/ops/cutile/deep/__init__.py": "def (\n"}) == {}


def test_an_unreadable_file_that_nobody_imports_is_listed_as_an_op() -> None:
    op = op_named(with_files(minigym(), {"src/minigym/ops/cutile/wave.py": "def (\n"}), "wave")
    assert (op.source_files, op.landed, len(op.problems)) == (("src/minigym/ops/cutile/wave.py",), False, 1)


def test_links_in_the_source_folder_are_passed_over_and_problems_as_tests() -> None:
    link = Entry(Mode.LINK, b"relu.py")
    tree = {**minigym(), "src/minigym/ops/cutile/again.py": link}
    assert inventory(tree, layout()) == inventory(minigym(), layout())
    assert "is a symbolic link" in str(op_named({**tree, TEST: link}, "relu").problems[0])


def test_a_broken_file_elsewhere_does_not_matter() -> None:
    tree = with_files(minigym(), {"scripts/old.py": "print 'x'\n", "src/minigym/ops/other.py": "def (\n"})
    assert inventory(tree, layout()) == inventory(minigym(), layout())


def test_two_files_with_one_op_name_are_a_problem_of_that_op_alone() -> None:
    again = {"src/minigym/ops/cutile/more/relu.py": minigym()[RELU].data}
    assert set(unread(again)) == {"relu"}
    (problem,) = op_named(with_files(minigym(), again), "relu").problems
    assert "two files define an op `relu`" in problem.message
