"""The corpus: whole, and asking for what the recipes' routes allow."""

import re
from pathlib import Path

import pytest

from drivers.scenarios.play import Play, chosen, corpus, load_play
from drivers.scenarios.repositories import CORPUS, gym, texts
from drivers.scenarios.scenario import facts_of, filled
from farm.errors import ConfigurationError, UsageError
from farm.fault import Owner
from farm.job import JobState
from farm.pipeline.machine import Malformed, begin, step
from farm.pipeline.routes import read_routes
from farm.pipeline.stage import FailClass, Reply, Stage, Verdict
from farm.pipeline.table import End
from farm.recipe import load_recipe
from tests.builders import RECIPES

PLAYS = tuple(corpus())
FACTS = "| stage | B |\n| visit | 1 |\n| attempt | 1 |\n| op | square |\n"


def replies(play: Play) -> list[tuple[Stage, int, Reply | Malformed]]:
    """The replies that a play expects."""
    found = []
    for line in play.expect.stages:
        turn, _, word, *more = line.split()
        stage, visit = turn.split("-")
        answer: Reply | Malformed = Malformed(reason="expected")
        if word != "malformed":
            answer = Reply(
                verdict=Verdict(word),
                owner=next((Owner(each) for each in more if each in set(Owner)), None),
                fault=None,
                fail_class=next((FailClass(each) for each in more if each in set(FailClass)), None),
            )
        found.append((Stage(stage), int(visit), answer))
    return found


def test_names_say_what_a_play_is_and_none_is_there_twice() -> None:
    assert len(PLAYS) >= 20
    assert len({play.what for play in PLAYS}) == len(PLAYS)


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.name)
def test_the_routers_table_leads_along_the_expected_stages(play: Play) -> None:
    folder = RECIPES / play.recipe
    table = read_routes((folder / "routes.toml").read_text(encoding="utf-8"), load_recipe(folder).caps)
    state, ends = begin(table), []
    for stage, visit, answer in replies(play):
        assert state is not None
        assert (state.stage, state.visits[state.stage]) == (stage, visit)
        transition = step(table, state, answer)
        if transition.end is not None:
            ends.append(transition.end)
        state = transition.state or begin(table)
    assert len(ends) == play.expect.attempts
    assert (ends[-1] is End.COMPLETE) == (play.expect.state is JobState.ACCEPTED)


@pytest.mark.parametrize("play", [play for play in PLAYS if play.model], ids=lambda play: play.name)
def test_every_file_and_fact_that_a_play_names_is_there(play: Play) -> None:
    assert play.model is not None
    for visit in play.model.visits:
        for turn in visit.turns:
            filled([turn.text, *(tool.input for tool in turn.tools)], facts_of(FACTS), play.model.folder)


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.name)
def test_edits_find_their_place_and_ops_are_in_the_target_repo(play: Play) -> None:
    tree = gym() if play.recipe == "cutile-rs" else texts(play.texts)
    for path, old, new in play.edits:
        assert tree[path].data.decode().count(old) == 1
        assert old != new
    place = "src/minigym/ops/cutile/{}.py" if play.recipe == "cutile-rs" else "ops/{}.txt"
    assert play.names
    assert all(place.format(op) in tree for op in play.names)


def test_answers_are_used_and_the_wrong_ones_differ_from_the_right_ones_in_a_few_tokens() -> None:
    named = set(
        re.findall(r"\{\{file:answers/([\w.]+)\}\}", "".join(p.read_text() for p in CORPUS.rglob("*.toml")))
    )
    assert named == {path.name for path in (CORPUS / "answers").iterdir()}
    right = (CORPUS / "answers" / "kernel.rs").read_text().splitlines()
    for wrong in ("swapped.rs", "broken.rs"):
        lines = (CORPUS / "answers" / wrong).read_text().splitlines()
        assert len(lines) == len(right)
        assert sum(a != b for a, b in zip(lines, right, strict=True)) == 1


def test_mistakes_of_a_play_are_all_listed(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('what = "x"\nrecipe = "none"\ncolour = 1\n[expect]\nstate = "running"\nstages = []\n')
    with pytest.raises(ConfigurationError, match="3 mistake") as caught:
        load_play(file)
    for name in ("recipe", "colour", "expect"):
        assert name in str(caught.value)


def test_names_that_are_unknown_are_refused_with_those_that_are_there() -> None:
    with pytest.raises(UsageError, match=r"no scenario nonsense; there are .*straight"):
        chosen(("nonsense", "straight"))
    assert [play.name for play in chosen(("straight", "endless"))] == ["straight", "endless"]
    assert all(play.quick for play in chosen((), quick=True))
