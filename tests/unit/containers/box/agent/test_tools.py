"""The tools of agents: what they do, where they may not go, and what a killed box does not do twice."""

from pathlib import Path
from typing import Any

import pytest

from containers.box.agent.conversation import Answer, Conversation, Said
from containers.box.agent.tools import TOOLS, Tools


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    for name in ("work", "out", "recipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "recipe" / "role.md").write_text("the role\n")
    return Tools(
        workspace=tmp_path / "work", out=tmp_path / "out", recipe=tmp_path / "recipe", toolchain=Path("/tool")
    )


def do(tools: Tools, name: str, **given: Any) -> tuple[str, bool]:
    return tools.do(name, given, 20.0)


def test_a_file_is_written_read_by_lines_edited_and_searched(tools: Tools, tmp_path: Path) -> None:
    assert do(tools, "write", path="a/b.txt", content="one\ntwo\nthree\n")[1] is False
    assert do(tools, "read", path="a/b.txt", first=2, last=2) == ("two\n", False)
    assert do(tools, "edit", path="a/b.txt", old="two", new="zwei")[1] is False
    assert do(tools, "search", pattern="z.ei") == (f"{tmp_path}/work/a/b.txt:2: zwei", False)
    assert do(tools, "read", path=str(tmp_path / "recipe" / "role.md")) == ("the role\n", False)


@pytest.mark.parametrize("path", ["/nowhere/new.md", "../new.md", "../recipe/new.md", "link/new.md"])
def test_nothing_is_written_outside_of_workspace_and_artifacts(tools: Tools, tmp_path: Path, path: str) -> None:
    (tmp_path / "work" / "link").symlink_to(tmp_path / "recipe")
    text, failed = do(tools, "write", path=path, content="x")
    assert failed
    assert "is outside of" in text
    assert list(tmp_path.rglob("new.md")) == []


def test_an_edit_of_a_text_that_stands_twice_or_never_changes_nothing(tools: Tools, tmp_path: Path) -> None:
    do(tools, "write", path="a", content="x x")
    assert do(tools, "edit", path="a", old="x", new="y")[0].startswith("edit: the old text stands 2 times")
    assert do(tools, "edit", path="a", old="", new="y")[1]
    assert (tmp_path / "work" / "a").read_text() == "x x"


def test_calls_that_make_no_sense_are_answered_in_words(tools: Tools) -> None:
    assert do(tools, "read") == ("read needs 'path'", True)
    assert do(tools, "fly") == ("there is no tool fly", True)
    assert do(tools, "search", pattern="(")[1]
    assert {tool["name"] for tool in TOOLS} == {"bash", "read", "write", "edit", "search"}


def test_results_come_in_order_and_are_not_made_again_by_the_next_box(tools: Tools, tmp_path: Path) -> None:
    def conversation() -> Conversation:
        return Conversation(tmp_path / "talk")

    calls = [
        {
            "type": "tool_use",
            "id": f"t{n}",
            "name": "bash",
            "input": {"command": f"sleep 0.{3 - n}; echo {n} >> log"},
        }
        for n in range(3)
    ]
    first = conversation()
    first.add(Said(content=[{"type": "text", "text": "begin"}]))
    answer = Answer(content=calls, stop_reason="tool_use", tokens=1, seconds=0.1)
    first.add(answer)
    results = tools.act(first, answer, 20.0)
    assert [result["tool_use_id"] for result in results] == ["t0", "t1", "t2"]
    again = conversation()
    assert again.unfollowed == answer
    assert tools.act(again, answer, 20.0) == results
    assert sorted((tmp_path / "work" / "log").read_text().split()) == ["0", "1", "2"]
