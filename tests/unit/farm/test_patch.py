import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.changeset import check
from farm.errors import PatchConflict, PatchRefused
from farm.patch import Patch, apply_patch, make_patch, render
from farm.paths import parents
from farm.tree import Entry, Mode, Tree

_NAMES = st.sampled_from(["a", "b", "umläut", "new\nline", "\udcff", '"', "-d", "x.py"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)
_ENTRIES = st.builds(Entry, st.sampled_from([Mode.FILE, Mode.EXECUTABLE]), st.binary(max_size=12))


def _consistent(tree: dict[str, Entry]) -> dict[str, Entry]:
    kept: dict[str, Entry] = {}
    for path in sorted(tree, key=len):
        if not any(parent in kept for parent in parents(path)):
            kept[path] = tree[path]
    return {path: kept[path] for path in kept if not any(path in parents(other) for other in kept)}


_TREES = st.dictionaries(_PATHS, _ENTRIES, max_size=8).map(_consistent)


def _file(data: bytes) -> Entry:
    return Entry(Mode.FILE, data)


@settings(deadline=None)
@given(_TREES, _TREES)
def test_a_patch_takes_any_tree_to_any_other(before: Tree, after: Tree) -> None:
    patch = make_patch(before, after)
    read = Patch.from_bytes(patch.to_bytes())
    assert read == patch
    assert read.digest == make_patch(dict(reversed(before.items())), after).digest
    assert apply_patch(before, read) == after
    assert (patch.changes == ()) == (before == after)
    assert render(patch, before).count("\ndiff ") >= len(patch.changes) - 1


@settings(deadline=None)
@given(_TREES, _TREES, _TREES)
def test_a_patch_applies_wholly_or_not_at_all(before: Tree, after: Tree, other: Tree) -> None:
    patch = make_patch(before, after)
    untouched = dict(other)
    try:
        result = apply_patch(other, patch)
    except PatchConflict:
        assert other == untouched
    else:
        assert {path: result.get(path) for path in patch.paths} == {p: after.get(p) for p in patch.paths}
        rest = other.keys() - set(patch.paths)
        assert {path: result[path] for path in rest} == {path: other[path] for path in rest}


@settings(deadline=None)
@given(_TREES, st.data())
def test_damaged_bytes_are_no_patch(after: Tree, data: st.DataObject) -> None:
    raw = make_patch({}, after).to_bytes()
    at = data.draw(st.integers(0, len(raw) - 1))
    for damaged in (raw[:at], raw + b"x"):
        with pytest.raises(PatchRefused):
            Patch.from_bytes(damaged)


def test_a_conflict_names_path_and_difference() -> None:
    patch = make_patch({"f": _file(b"1")}, {"f": _file(b"2"), "g": _file(b"3")})
    for tree, words in [
        ({"f": _file(b"x")}, "'f': its content is"),
        ({}, "'f': it is not there"),
        ({"f": Entry(Mode.EXECUTABLE, b"1")}, "'f': its mode is 100755"),
        ({"f": _file(b"1"), "g": _file(b"")}, "'g': it is there already"),
        ({"f": _file(b"1"), "g/x": _file(b"")}, "'g': 'g/x' lies below it"),
    ]:
        with pytest.raises(PatchConflict, match=words):
            apply_patch(tree, patch)


def test_an_applied_link_may_not_lead_outside() -> None:
    with pytest.raises(PatchRefused, match="outside"):
        apply_patch({}, make_patch({}, {"l": Entry(Mode.LINK, b"../x")}))
    base = {"l": Entry(Mode.LINK, b"s/d/.."), "s/d/f": _file(b"")}
    changed = {"l": base["l"], "s": Entry(Mode.LINK, b"."), "d": Entry(Mode.LINK, b"s")}
    assert apply_patch(base, make_patch(base, changed | {"d": _file(b"")}))
    up = {"l": Entry(Mode.LINK, b"s/d/../.."), "s/d/f": _file(b"")}
    turned = {"l": up["l"], "s/d": Entry(Mode.LINK, b"..")}
    with pytest.raises(PatchRefused, match="'l': a link leads outside"):
        apply_patch(up, make_patch(up, turned))


def test_a_diff_reads_like_one() -> None:
    before = {"f": _file(b"a\nb\n"), "gone": _file(b"x"), "bin": _file(b"\0"), "run": _file(b"")}
    after = {"f": _file(b"a\nc\r\n"), "bin": _file(b"\xff"), "run": Entry(Mode.EXECUTABLE, b"")}
    text = render(make_patch(before, after), before)
    assert "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\\r\n" in text
    assert "deleted file\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ no newline at the end\n" in text
    assert "diff bin\nbinary: 1 bytes sha256 6e34" in text
    assert "diff run\nmode 100644 -> 100755\n" in text


def test_the_change_set_gives_a_reason_for_each_path() -> None:
    before = {"kept": _file(b"1"), "gone": _file(b""), "run": Entry(Mode.EXECUTABLE, b"1")}
    after = {
        "kept": Entry(Mode.EXECUTABLE, b"1"),
        "run": Entry(Mode.EXECUTABLE, b"2"),
        "link": Entry(Mode.LINK, b"kept"),
        "new": _file(b""),
        "new/../x": _file(b""),
    }
    allowed = ["kept", "gone", "run", "link", "new"]
    found = {v.path: v.reason.split(";")[0] for v in check(make_patch(before, after), allowed)}
    assert found == {
        "kept": "becomes executable",
        "gone": "is deleted",
        "link": "becomes a link",
        "new/../x": "is not in the change set",
    }
    assert check(make_patch(before, before | {"new": _file(b"")}), allowed) == ()
