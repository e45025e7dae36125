"""config/models.toml: which models may be asked, what they take and what they cost. Money is exact.

A price of one dollar per million tokens is one millionth of a dollar per token. Prices have up to three decimals,
so a call's cost is whole billionths of a dollar; it is rounded up to a millionth.
"""

import tomllib
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from farm.errors import ConfigurationError

#: Millionths in a dollar.
MICRO = 1_000_000
#: Billionths of a dollar in a millionth.
_NANO = 1_000


class Thinking(StrEnum):
    """How a model is told how deep to think."""

    NONE = "none"  #: not at all
    BUDGET = "budget"  #: by a number of tokens
    EFFORT = "effort"  #: by a word


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Tokens(_Part):
    """Tokens of a call by class."""

    input: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All that was read."""
        return self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read


class Prices(_Part):
    """US dollars per million tokens by class."""

    input: Decimal = Field(ge=0)
    cache_write_5m: Decimal = Field(ge=0)
    cache_write_1h: Decimal = Field(ge=0)
    cache_read: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)

    @field_validator("*", mode="after")
    @classmethod
    def _whole(cls, value: Decimal) -> Decimal:
        if value * _NANO != int(value * _NANO):
            raise ValueError("a price has at most three decimals")
        return value

    def cost(self, tokens: Tokens) -> int:
        """Millionths of a dollar, rounded up."""
        total = (
            self.input * tokens.input
            + self.cache_write_5m * tokens.cache_write_5m
            + self.cache_write_1h * tokens.cache_write_1h
            + self.cache_read * tokens.cache_read
            + self.output * tokens.output
        )
        return _up(total)

    @property
    def dearest_input(self) -> Decimal:
        """Most that a token of a prompt may cost, whatever its class."""
        return max(self.input, self.cache_write_5m, self.cache_write_1h, self.cache_read)


class Long(_Part):
    """What a call with a long prompt costs, with all of its tokens."""

    above_tokens: int = Field(gt=0)
    prices: Prices


class Model(_Part):
    """One model."""

    family: str
    """Whose model it is."""
    id: str
    """As it is sent to the API."""
    max_tokens: int = Field(gt=0)
    """Most that one reply may be asked for, tokens; thinking counts."""
    thinking: Thinking
    """How it is told how deep to think."""
    efforts: tuple[str, ...] = ()
    """The words that it takes for it."""
    prices: Prices
    long: Long | None = None
    """Other prices for long prompts."""

    @model_validator(mode="after")
    def _words(self) -> "Model":
        if (self.thinking is Thinking.EFFORT) != bool(self.efforts):
            raise ValueError('`efforts` belongs to thinking = "effort"')
        return self

    def cost(self, tokens: Tokens) -> int:
        """What a call costs, millionths of a dollar, rounded up."""
        long = self.long is not None and tokens.prompt > self.long.above_tokens
        prices = self.long.prices if self.long is not None and long else self.prices
        return prices.cost(tokens)

    def most(self, *, prompt_tokens: int, max_tokens: int) -> int:
        """Most that a call may cost with at most so many tokens, millionths of a dollar."""
        tables = [self.prices]
        if self.long is not None and prompt_tokens > self.long.above_tokens:
            tables.append(self.long.prices)
        return max(_up(table.dearest_input * prompt_tokens + table.output * max_tokens) for table in tables)


class ModelTable(_Part):
    """All models by name."""

    version: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    """Day of the prices."""
    request_bytes: int = Field(default=8 << 20, gt=0)
    """Largest request that a box may send, bytes."""
    models: dict[str, Model] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_id(self) -> "ModelTable":
        ids = [model.id for model in self.models.values()]
        if len(set(ids)) != len(ids):
            raise ValueError("two models have the same id")
        return self

    def named(self, name: str) -> Model:
        """The model that recipes call so. Raises ConfigurationError."""
        if name not in self.models:
            raise ConfigurationError(f"models.toml has no model {name!r}; it has {', '.join(self.models)}")
        return self.models[name]

    def by_id(self, model_id: str) -> Model | None:
        """The model that the API calls so, or None when it may not be asked."""
        return next((model for model in self.models.values() if model.id == model_id), None)


def load_models(path: Path) -> ModelTable:
    """The models in a file. Raises ConfigurationError that lists every mistake."""
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        return ModelTable.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        lines = [f"  {'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in found]
        raise ConfigurationError("\n".join([f"{len(lines)} mistake(s) in {path}:", *lines])) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _up(micro: Decimal) -> int:
    """Millionths, rounded up. Exact: prices have three decimals, so this is whole billionths."""
    return -(-int(micro * _NANO) // _NANO)


def micro_usd(usd: Decimal) -> int:
    """Dollars as millionths. Raises ConfigurationError for a fraction of one."""
    micro = usd * MICRO
    if micro != int(micro):
        raise ConfigurationError(f"{usd} dollars are no whole number of millionths")
    return int(micro)


def dollars(micro: int) -> str:
    """An amount to the cent, rounded half up: `$1.04`."""
    cents = (abs(micro) + 5_000) // 10_000
    return f"{'-' if micro < 0 and cents else ''}${cents // 100}.{cents % 100:02d}"
