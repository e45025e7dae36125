import pytest

from farm.layout import find_package
from farm.recipes.cutile_rs.rows import count_rows, parametrizations, scope_of
from farm.recipes.cutile_rs.syntax import Source
from farm.recipes.cutile_rs.testfile import add_backend
from tests.unit.recipes.cutile_rs.builders import layout, minigym

PACKAGE = find_package(minigym(), layout())
MARK = "@pytest.mark.parametrize('backend', {})\ndef test_op(backend): pass\n"
GUARD = 'if is_backend_available("cutile-rs"):\n    {0} = {0} + ["cutile-rs"]\n'
IMPORT = "from minigym.backend import is_backend_available\n"


def added(text: str) -> str:
    edit = add_backend(Source("test_x.py", text.encode()), PACKAGE)
    assert edit.findings == ()
    again = add_backend(Source("test_x.py", edit.data), PACKAGE)
    assert again.data == edit.data
    return edit.data.decode()


def test_a_named_list_is_extended_where_the_backend_is_available() -> None:
    text = (
        IMPORT + "_b = ['cutile']\nif is_backend_available('other'):\n    _b = _b + ['other']\n_p = _b + ['x']\n"
    )
    head, tail = text.split("_p = ")
    assert added(text + MARK.format("_b")) == head + GUARD.format("_b") + "_p = " + tail + MARK.format("_b")


def test_lists_made_from_the_list_share_one_edit() -> None:
    text = IMPORT + "_b = ['cutile']\n_p = _b + ['x']\n" + MARK.format("_b") + MARK.format("_p")
    assert added(text).count("cutile-rs") == 2


def test_a_list_of_a_class_is_extended_in_the_class() -> None:
    text = (
        IMPORT
        + "class T:\n    _b = ['cutile']\n    @pytest.mark.parametrize('backend', _b)\n    def test(self): 0\n"
    )
    assert (
        '    _b = [\'cutile\']\n    if is_backend_available("cutile-rs"):\n        _b = _b + ["cutile-rs"]\n'
        in added(text)
    )


def test_a_literal_list_takes_one_more_element() -> None:
    assert added(MARK.format("['cutile', 'other']")) == MARK.format("['cutile', 'other', \"cutile-rs\"]")


def test_a_list_that_passes_through_functions_and_comprehensions_is_found() -> None:
    text = (
        IMPORT
        + "_b = ['cutile']\n_rows = build(_b)\n@pytest.mark.parametrize('backend, n', _rows)\ndef test_op(): 0\n"
    )
    assert GUARD.format("_b") in added(text)
    text = (
        IMPORT + "_b = ['cutile']\n@pytest.mark.parametrize('backend,n', [(b, n) for b in _b for n in (1, 2)])\n"
        "def test_op(): 0\n"
    )
    assert GUARD.format("_b") in added(text)


def test_the_check_is_spelled_as_the_file_spells_it() -> None:
    text = "import minigym\n_b = ['cutile']\nok = minigym.is_backend_available('a')\n" + MARK.format("_b")
    assert 'if minigym.is_backend_available("cutile-rs"):' in added(text)


def test_the_check_is_imported_where_the_file_has_none() -> None:
    text = "import pytest\n\nfrom tests import common\n\n_b = ['cutile']\n" + MARK.format("_b")
    assert IMPORT in added(text)


def test_a_fixture_with_parameters_counts_too() -> None:
    text = IMPORT + "_b = ['cutile']\n@pytest.fixture(params=_b)\ndef backend(request): return request.param\n"
    assert GUARD.format("_b") in added(text)


@pytest.mark.parametrize(
    "text",
    [
        MARK.format("every_backend()"),
        "@pytest.mark.parametrize('backend, n', [('cutile', 1), ('cutile', 2)])\ndef test_op(): 0\n",
    ],
)
def test_a_list_that_is_not_found_is_a_finding_with_its_place(text: str) -> None:
    edit = add_backend(Source("tests/test_x.py", text.encode()), PACKAGE)
    assert edit.data == text.encode()
    (finding,) = edit.findings
    assert (finding.file, finding.line) == ("tests/test_x.py", 1)
    assert finding.advice


def test_the_target_gets_the_rows_of_the_source() -> None:
    text = added(IMPORT + "_b = ['cutile', 'x']\n@pytest.mark.parametrize('n', [1, 2])\n" + MARK.format("_b"))
    tree = Source("t.py", text.encode()).tree
    counts = [
        count_rows(parametrizations(tree.body[-1].decorator_list), scope_of(tree.body, {}, backend), backend)  # type: ignore[attr-defined]
        for backend in ("cutile", "cutile-rs")
    ]
    assert counts == [2, 2]
