import json

import pytest

from farm.codec import decode, encode
from farm.hiding import Bare
from farm.leak import Leak, LeakKind, LeakReport, LeakScan, report
from farm.shingles import Fingerprinter, words
from farm.tree import Entry, Mode, Tree

_BOILERPLATE = "\n".join(
    f"fn check_{name}(desc: &TensorDesc, code: i32) -> Result<{name}, Failure> {{ desc.expect(code, {n})?; }}"
    for n, name in enumerate(["Half", "Single", "Double", "Brain", "Eight", "Four", "Wide", "Narrow"])
)


def _kernel(op: str) -> str:
    lines = [
        f"let {op}_{name} = load_{name}(&input, [row, column], padding::{op}).{name}_cast(acc_{n}) * {n}.5;"
        for n, name in enumerate(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"])
    ]
    body = "\n    ".join(lines)
    return f"{_BOILERPLATE}\n#[entry]\npub fn {op}_kernel(input: &Tensor) {{\n    {body}\n}}\n"


def _tree(**texts: str) -> dict[str, Entry]:
    return {name.replace("__", "."): Entry(Mode.FILE, text.encode()) for name, text in texts.items()}


#: Three visible implementations share the boilerplate of the hidden one.
_VISIBLE = _tree(
    add__rs=_kernel("add"),
    mul__rs=_kernel("mul"),
    div__rs=_kernel("div"),
    relu__py="def relu(x):\n    return launch(x)\n",
    mod__rs="mod add;\nmod mul;\nmod div;\n",
)


def _bare(tree: Tree, siblings: tuple[str, ...] = ()) -> Bare:
    hidden = _tree(relu__rs=_kernel("relu"), mod__rs="mod add;\nmod mul;\nmod div;\nmod relu;\n")
    return Bare(
        tree=tree, withheld=(), hidden=hidden, symbols=("farm_relu_export", "relu_kernel"), siblings=siblings
    )


def _scan(tree: Tree, siblings: tuple[str, ...] = ()) -> LeakReport:
    bare = _bare(tree, siblings)
    scan = LeakScan()
    leaks, mentions = scan.workspace(scan.answer(bare, tree, ()), tree)
    return report(bare, leaks, mentions, ())


def _found(result: LeakReport) -> set[tuple[LeakKind, str]]:
    return {(leak.kind, leak.path) for leak in result.findings}


def test_a_bare_base_with_shared_boilerplate_is_clean() -> None:
    result = _scan(_VISIBLE)
    assert result == LeakReport(
        findings=(), siblings=(), mentions=(), places=(), hidden_sha256=result.hidden_sha256
    )
    assert result.clean


def test_a_copy_under_another_name_is_found() -> None:
    result = _scan(_VISIBLE | _tree(notes__txt=_kernel("relu")))
    assert not result.clean
    assert _found(result) == {
        (LeakKind.SAME_BYTES, "notes.txt"),
        (LeakKind.TEXT, "notes.txt"),
        (LeakKind.NAME, "notes.txt"),
    }
    assert "workspace: notes.txt gives away relu" in result.summary


def test_a_reformatted_part_in_another_ops_file_is_found() -> None:
    part = " ".join(_kernel("relu").split("{\n    ")[-1].split()[:80]).replace(" ", "\n\t")
    tree = _VISIBLE | _tree(add__rs=_kernel("add") + "/*" + part + "*/")
    assert _found(_scan(tree)) == {(LeakKind.TEXT, "add.rs")}


def test_copies_in_many_files_do_not_make_each_other_boilerplate() -> None:
    copies = {f"copy{n}.md": Entry(Mode.FILE, f"{n}\n{_kernel('relu')}".encode()) for n in range(5)}
    found = _found(_scan(_VISIBLE | copies))
    assert {(LeakKind.TEXT, path) for path in copies} <= found


def test_a_definition_is_a_leak_and_a_name_the_base_uses_is_a_mention() -> None:
    called = _scan(_VISIBLE | _tree(table__py="KERNELS = ['relu_kernel']\n"))
    assert called.clean
    assert [(leak.path, leak.hidden) for leak in called.mentions] == [("table.py", "relu_kernel")]
    defined = _scan(_VISIBLE | _tree(extra__rs='extern "C" fn farm_relu_export() {}\n'))
    assert _found(defined) == {(LeakKind.NAME, "extra.rs")}


def test_a_longer_name_is_another_name() -> None:
    result = _scan(_VISIBLE | _tree(extra__rs="fn leaky_relu_kernel() {}\nfn relu_kernel2() {}\n"))
    assert result.clean
    assert result.mentions == ()


def test_a_built_library_in_the_tree_is_found() -> None:
    library = {"lib.so": Entry(Mode.FILE, b"\x7fELF\0\0junkfarm_relu_exportmore\0")}
    assert _found(_scan(_VISIBLE | library)) == {(LeakKind.NAME, "lib.so")}


def test_a_declared_sibling_is_reported_and_not_refused() -> None:
    tree = _VISIBLE | _tree(prelu__rs=_kernel("relu").replace("relu_kernel", "prelu_kernel"))
    assert _found(_scan(tree)) == {(LeakKind.TEXT, "prelu.rs")}
    result = _scan(tree, siblings=("prelu.rs",))
    assert result.clean
    assert [leak.path for leak in result.siblings] == ["prelu.rs"]


def test_what_was_converted_from_the_source_is_no_secret() -> None:
    body = _kernel("relu").split("{\n    ")[-1]
    part = body[: len(body) // 2]
    tree = _VISIBLE | _tree(source__py=part)
    assert _found(_scan(tree)) == {(LeakKind.TEXT, "source.py")}
    bare, scan = _bare(tree), LeakScan()
    assert scan.workspace(scan.answer(bare, tree, ["source.py"]), tree)[0] == ()
    whole = _VISIBLE | _tree(source__py=_kernel("relu").replace("fn ", "def "))
    (leak,) = scan.workspace(scan.answer(_bare(whole), whole, ["source.py"]), whole)[0]
    assert leak.kind is LeakKind.TEXT


def test_only_the_removed_lines_of_an_edited_file_are_hidden() -> None:
    rows = [
        f'    pytest.param("case_{n}", shape=({n}, 128), dtype=torch.float{n}, marks=slow),' for n in range(30)
    ]
    kept, removed = "\n".join(rows[:15]), "\n".join(rows[15:])
    tree = _VISIBLE | _tree(test_relu__py=kept, other__py=kept)
    bare = Bare(
        tree=tree,
        withheld=(),
        hidden=_tree(test_relu__py=f"{kept}\n{removed}"),
        symbols=(),
        siblings=(),
    )
    scan = LeakScan()
    answer = scan.answer(bare, tree, ())
    assert scan.workspace(answer, tree) == ((), ())
    planted = tree | _tree(other__py=removed)
    (leak,), _ = scan.workspace(scan.answer(bare, planted, ()), planted)
    assert (leak.kind, leak.path, leak.hidden) == (LeakKind.TEXT, "other.py", "test_relu.py")


def test_an_empty_hidden_file_gives_nothing_away() -> None:
    bare = Bare(tree=_VISIBLE, withheld=(), hidden={"__init__.py": Entry(Mode.FILE, b"")}, symbols=(), siblings=())
    tree = _VISIBLE | {"other/__init__.py": Entry(Mode.FILE, b"")}
    scan = LeakScan()
    assert scan.workspace(scan.answer(bare, tree, ()), tree) == ((), ())


def test_a_report_survives_json() -> None:
    result = _scan(_VISIBLE | _tree(notes__txt=_kernel("relu")))
    assert decode(LeakReport, json.loads(json.dumps(encode(result)))) == result


def test_runs_ignore_layout_and_choose_the_same_anchors_everywhere() -> None:
    text = _kernel("relu").encode()
    one, two = Fingerprinter(), Fingerprinter()
    two.runs(b"something else entirely " * 50)
    assert one.runs(text) == two.runs(b"   ".join(text.split()))
    assert one.runs(text) <= two.runs(b"prefix( " + text + b" suffix")
    assert len(one.runs(text)) > 40
    assert one.runs(b"too short") == frozenset()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"fn relu_kernel(", b"relu_kernel"),
        (b"\0_ZN14cutile_kernels4relu11relu_kernel17h0123456789abcdefE\0", b"relu_kernel"),
        (b"\0_RNvNtCs1234_7mycrate4relu11relu_kernel\0", b"relu_kernel"),
        (b"\0\x01farm_relu_export\0", b"farm_relu_export"),
    ],
)
def test_names_are_found_in_text_and_in_mangled_symbols(data: bytes, name: bytes) -> None:
    assert name in words(data)


def test_leaks_have_a_fixed_order() -> None:
    leaks = [
        Leak(kind=LeakKind.TEXT, place="b", path="x", hidden="h", detail=""),
        Leak(kind=LeakKind.NAME, place="b", path="x", hidden="h", detail=""),
        Leak(kind=LeakKind.NAME, place="a", path="y", hidden="h", detail=""),
    ]
    assert report(_bare(_VISIBLE), leaks, (), ()) == report(_bare(_VISIBLE), reversed(leaks), (), ())
