from pathlib import Path

import pytest

from drivers.requests import look_command, repo_from_here, select_ops
from farm.errors import UnknownOp, UsageError
from farm.op import Op


def op(name: str, *, landed: bool = False) -> Op:
    files = (f"{name}.rs",) if landed else ()
    return Op(name=name, registered=(name,), source_files=(), kernels=(), tests=(), target_files=files)


INVENTORY = (op("add_bias"), op("relu"), op("silu_and_mul", landed=True))


def names(wanted: str) -> list[str]:
    return [o.name for o in select_ops(wanted, INVENTORY)]


def test_all_and_missing_are_sets_of_the_inventory() -> None:
    assert names("all") == ["add_bias", "relu", "silu_and_mul"]
    assert names("missing") == ["add_bias", "relu"]


def test_a_list_keeps_the_inventorys_order_and_drops_repetitions() -> None:
    assert names("relu, add_bias,relu") == ["add_bias", "relu"]


def test_every_unknown_op_is_named_with_close_names() -> None:
    with pytest.raises(UnknownOp, match=r"'rleu', did you mean relu\?.*'wave'") as caught:
        names("rleu,wave,relu")
    assert "farm ops" in str(caught.value)


@pytest.mark.parametrize("nothing", ["", " ", ","])
def test_an_empty_list_is_a_mistake(nothing: str) -> None:
    with pytest.raises(UsageError, match="names no op"):
        names(nothing)


def test_a_commit_is_shown_from_a_path_or_fetched_from_a_url() -> None:
    assert look_command("/repos/x", "farm/r/relu") == "git -C /repos/x show farm/r/relu"
    for url in ("https://host/x.git", "git@host:x.git"):
        assert look_command(url, "farm/r/relu") == f"git fetch {url} farm/r/relu && git show FETCH_HEAD"


def test_a_path_is_stored_as_it_is_meant_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert repo_from_here(".") == str(tmp_path.resolve())
    assert repo_from_here("../x") == str(tmp_path.resolve().parent / "x")


@pytest.mark.parametrize("name", ["builtin:minigym", "https://host/x.git", "git@host:x.git", "file:///x"])
def test_urls_and_built_in_repos_are_stored_as_written(name: str) -> None:
    assert repo_from_here(name) == name
