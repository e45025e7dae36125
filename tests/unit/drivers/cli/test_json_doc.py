from pathlib import Path

from drivers.cli.json_doc import markdown

PAGE = Path(__file__).parents[4] / "docs" / "cli-json.md"


def test_the_page_is_what_the_dataclasses_say() -> None:
    assert PAGE.read_text() == markdown(), "run: python -m drivers.cli.json_doc > docs/cli-json.md"


def test_every_value_of_an_enum_has_its_meaning() -> None:
    bare = [line for line in markdown().splitlines() if line.startswith("| `") and line.endswith("` |  |")]
    assert bare == []
