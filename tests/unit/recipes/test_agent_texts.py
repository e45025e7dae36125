"""What agents are told: complete, rendered without a gap, about validators, verdicts and files that there are."""

import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from farm.agents import CUT, LAST, REPAIR, START, SYSTEM, AgentRole, problems, read_agents
from farm.models import load_models
from farm.pipeline.routes import parse_routes
from farm.pipeline.stage import Stage
from farm.pipeline.table import GOOD
from farm.recipes import Conversion, load, read_table
from farm.tileir.difference import DifferenceKind

CONFIG = Path(__file__).parents[3] / "config"
RECIPES = ("cutile-rs", "plain-copy")
CAPS = dict.fromkeys(Stage, 1)
#: Commands of the box that texts may name beside the stages' validators.
CONTRACT = "contract"

pytestmark = pytest.mark.parametrize("recipe", RECIPES)


def folder(recipe: str) -> Path:
    return CONFIG / "recipes" / recipe


def agents(recipe: str) -> dict[Stage, AgentRole]:
    return dict(read_agents((folder(recipe) / "agents.toml").read_text(encoding="utf-8")))


def conversion(recipe: str) -> Conversion:
    name = recipe  # both are called as their conversion
    return load(name, read_table((folder(recipe) / "recipe.toml").read_text(encoding="utf-8")))


def role(recipe: str, stage: Stage) -> str:
    return (folder(recipe) / agents(recipe)[stage].role).read_text(encoding="utf-8")


def texts(recipe: str) -> Iterator[Path]:
    for part in ("agents", "references"):
        yield from sorted((folder(recipe) / part).rglob("*.md"))


def table_rows(text: str) -> list[list[str]]:
    """The rows of a role's table of verdicts."""
    body = text[text.index("| verdict |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def test_every_stage_has_an_agent_whose_files_are_there_and_whose_model_may_be_asked(recipe: str) -> None:
    assert tuple(problems(folder(recipe))) == ()
    assert set(agents(recipe)) == set(Stage)
    models = load_models(CONFIG / "models.toml")
    for agent in agents(recipe).values():
        assert models.named(agent.model).family == "claude"


def test_every_text_is_named_in_agents_toml_or_linked_from_one_that_is(recipe: str) -> None:
    named = {folder(recipe) / file for agent in agents(recipe).values() for file in (agent.role, *agent.read)}
    reached: set[Path] = set()
    while named - reached:
        for text in named - reached:
            reached.add(text)
            named |= linked(folder(recipe), text)
    assert set(texts(recipe)) <= reached


def linked(root: Path, text: Path) -> set[Path]:
    """Other texts that one points to, as a link or by its path; a link that leads nowhere fails the test."""
    body = text.read_text(encoding="utf-8")
    found = {(text.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+\.md)\)", body)}
    assert all(path.is_file() for path in found), (text, found)
    names = re.findall(r"`(?:references/examples/)?(\w+\.md)`", body)
    return found | {path for path in root.rglob("*.md") if path.name in names and path.parent.name == "examples"}


@pytest.mark.parametrize("stage", Stage)
def test_a_role_has_each_verdict_of_its_stage_and_no_other(recipe: str, stage: Stage) -> None:
    routes, wrong = parse_routes((folder(recipe) / "routes.toml").read_text(encoding="utf-8"), CAPS)
    assert routes is not None
    assert not wrong
    rows = table_rows(role(recipe, stage))
    assert {row[0] for row in rows} == {verdict.value for verdict in routes.verdicts[stage]}


@pytest.mark.parametrize("stage", Stage)
def test_a_role_names_an_owner_for_failures_and_for_nothing_else(recipe: str, stage: Stage) -> None:
    good = {verdict.value for verdict in GOOD}
    for verdict, when, owner in table_rows(role(recipe, stage)):
        if verdict in good:
            assert "class" in owner or not owner, (verdict, owner)
        elif when != "never":
            assert set(re.split(r", ?", owner)) <= {"host", "kernel", "env"}, (verdict, owner)


@pytest.mark.parametrize("stage", Stage)
def test_a_role_names_exactly_the_validators_of_its_stage(recipe: str, stage: Stage) -> None:
    (line,) = re.findall(r"^Validators: (.*)$", role(recipe, stage), re.MULTILINE)
    expected = [validator.name for validator in conversion(recipe).validators(stage)]
    assert re.findall(r"`([a-z-]+)`", line) == expected or (line == "none." and not expected)


def test_every_command_that_a_text_names_is_one(recipe: str) -> None:
    known = {v.name for stage in Stage for v in conversion(recipe).validators(stage)} | {CONTRACT, "NAME"}
    for path in texts(recipe):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"containers\.box\.validate ([A-Za-z-]+)", text)) <= known, path
        assert set(re.findall(r"containers\.box\.program (\w+)", text)) <= {*Stage, "STAGE"}, path


@pytest.mark.parametrize("stage", Stage)
def test_prompts_render_without_a_gap_and_paste_nothing_that_can_be_read(recipe: str, stage: Stage) -> None:
    render = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder(recipe)), undefined=jinja2.StrictUndefined, autoescape=False
    )
    agent = agents(recipe)[stage]
    system = render.get_template(SYSTEM).render(source="s", target="t", workspace="/work", out="/out")
    facts = (("stage", stage.value), ("visit", 1), ("attempt", 1), ("op", "blend"), ("verdicts", "A, B"))
    start = render.get_template(START).render(facts=facts, read=[agent.role, *agent.read])
    others = [
        render.get_template(REPAIR).render(reason="it has no VERDICT"),
        render.get_template(CUT).render(max_tokens=1000),
        render.get_template(LAST).render(reason="2 calls are left"),
    ]
    for text in (system, start, *others):
        assert text.strip()
        assert "{{" not in text
        assert "{%" not in text
    assert f"| stage | {stage.value} |" in start
    assert [line[2:] for line in start.splitlines() if line.startswith("- ")] == [agent.role, *agent.read]
    assert len(start) < 1000
    assert len(system) < 2500


def test_a_prompt_without_one_of_its_facts_is_an_error(recipe: str) -> None:
    render = jinja2.Environment(loader=jinja2.FileSystemLoader(folder(recipe)), undefined=jinja2.StrictUndefined)
    with pytest.raises(jinja2.UndefinedError, match="out"):
        render.get_template(SYSTEM).render(source="s", target="t", workspace="/work")


def test_the_text_on_differences_knows_every_kind_of_them(recipe: str) -> None:
    text = folder(recipe) / "references" / "ir.md"
    if not text.exists():
        return
    rows = [line.split("|")[1] for line in text.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert {kind for row in rows for kind in re.findall(r"`([a-z ]+)`", row)} == set(DifferenceKind)
