"""What an agent is told: the recipe's templates, filled in. A name that is missing is an error."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from farm.errors import ConfigurationError


class Prompts:
    """The templates of a recipe's folder."""

    def __init__(self, recipe: Path) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(recipe),
            undefined=StrictUndefined,
            autoescape=False,
            keep_trailing_newline=False,
        )

    def text(self, name: str, **values: Any) -> str:
        """A template's text. Raises ConfigurationError naming the template."""
        try:
            return self._environment.get_template(name).render(**values).strip()
        except TemplateError as error:
            raise ConfigurationError(f"{name}: {type(error).__name__}: {error}") from error
