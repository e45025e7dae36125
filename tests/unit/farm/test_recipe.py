import shutil
from pathlib import Path

import pytest

from farm.errors import ConfigurationError
from farm.pipeline.stage import ExecutorKind, Stage
from farm.recipe import detect_errors, load_recipe
from farm.recipes import read_table

SHIPPED = Path(__file__).parents[3] / "config" / "recipes" / "cutile-rs"
TEXT = (SHIPPED / "recipe.toml").read_text(encoding="utf-8")


def written(folder: Path, text: str, name: str = "cutile-rs") -> Path:
    recipe = folder / name
    recipe.mkdir()
    (recipe / "recipe.toml").write_text(text, encoding="utf-8")
    shutil.copy(SHIPPED / "routes.toml", recipe)
    return recipe


def test_the_shipped_recipe_has_no_mistakes() -> None:
    assert detect_errors(SHIPPED) == []
    recipe = load_recipe(SHIPPED)
    assert recipe.caps == {Stage.A: 1, Stage.B: 2, Stage.C: 1, Stage.D: 2, Stage.E: 2, Stage.F: 1}
    assert set(recipe.executors.values()) == {ExecutorKind.PROGRAM}


def test_the_table_that_a_box_reads_is_the_one_that_was_checked() -> None:
    assert read_table(TEXT) == load_recipe(SHIPPED).layout


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    text = TEXT
    for old, new in (
        ('source = "cutile"', "sorce = 5"),
        ("A = 1", "A = 0"),
        ("attempts = 2", 'attempts = "two"'),
        ('E = "program"\nF', 'E = "wizard"\nF'),
        ('["correctness"', '["corectness"'),
        ('rs/{op}.py",\n]', 'rs/{operator}.py",\n]'),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    errors = "\n".join(detect_errors(written(tmp_path, text, name="other")))
    for place in (
        "layout.source: Field required",
        "layout.sorce",
        "caps: the cap of stage A is below 1",
        "limits.attempts",
        "executors.E",
        "gates.certifiable.0",
        "layout.implementation: {operator} is unknown",
        "name: the folder is called 'other'",
    ):
        assert place in errors


def test_an_unknown_conversion_is_named(tmp_path: Path) -> None:
    text = TEXT.replace('conversion = "cutile-rs"', 'conversion = "no-such"')
    (error,) = detect_errors(written(tmp_path, text))
    assert "conversion: farm/recipes has no package for 'no-such'" in error


def test_a_missing_stage_is_named(tmp_path: Path) -> None:
    text = TEXT.replace('F = "program"\n', "").replace("B = 2\n", "")
    errors = "\n".join(detect_errors(written(tmp_path, text)))
    assert "executors: no entry for stage F" in errors
    assert "caps: no entry for stage B" in errors


def test_a_change_set_has_to_hold_the_registrations(tmp_path: Path) -> None:
    text = TEXT.replace('    "{package}/ops/cutile_rs/__init__.py",\n', "")
    assert any("change_set: it lacks" in line for line in detect_errors(written(tmp_path, text)))


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no such file"), (b"name = ", "not TOML"), (b"\xff\xfe", "not TOML")],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "recipe.toml").write_bytes(content)
    errors = detect_errors(tmp_path if content is not None else tmp_path / "recipe.toml")
    assert len(errors) == 1
    assert said in errors[0]


def test_loading_a_broken_recipe_raises_with_all_of_it(tmp_path: Path) -> None:
    text = TEXT.replace("A = 1", "A = 0").replace("attempts = 2", "attempts = 0")
    with pytest.raises(ConfigurationError) as raised:
        load_recipe(written(tmp_path, text))
    assert len(str(raised.value).splitlines()) == 2
