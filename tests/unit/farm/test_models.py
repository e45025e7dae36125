from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.data import config_folder
from farm.errors import ConfigurationError
from farm.models import Tokens, dollars, load_models, micro_usd

SHIPPED = load_models(config_folder() / "models.toml")
COUNTS = st.integers(min_value=0, max_value=500_000)


def test_a_call_costs_the_sum_of_its_classes_rounded_up_to_a_millionth() -> None:
    small = SHIPPED.named("small")
    assert small.cost(Tokens(input=1)) == 1  # 0.1
    assert small.cost(Tokens(input=10, cache_write_5m=8, cache_write_1h=5, cache_read=100, output=2)) == 5
    assert SHIPPED.named("large").cost(Tokens(input=1_000_000, output=1_000_000)) == 24_000_000


def test_a_long_prompt_costs_more_with_all_of_its_tokens() -> None:
    small = SHIPPED.named("small")
    assert small.cost(Tokens(cache_read=100_000, output=1000)) == 1_500
    assert small.cost(Tokens(cache_read=100_001, output=1000)) == 5_001 + 2_500


@given(st.sampled_from(sorted(SHIPPED.models)), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_no_call_costs_more_than_was_reserved_for_it(
    name: str, plain: int, five: int, hour: int, read: int, output: int
) -> None:
    model = SHIPPED.named(name)
    tokens = Tokens(input=plain, cache_write_5m=five, cache_write_1h=hour, cache_read=read, output=output)
    assert model.cost(tokens) <= model.most(prompt_tokens=tokens.prompt, max_tokens=output)


def test_amounts_are_shown_to_the_cent() -> None:
    assert [dollars(n) for n in (0, 4_999, 5_000, 1_035_000, -20_000)] == [
        "$0.00",
        "$0.00",
        "$0.01",
        "$1.04",
        "-$0.02",
    ]
    assert micro_usd(Decimal("0.1")) == 100_000
    with pytest.raises(ConfigurationError):
        micro_usd(Decimal("0.00000001"))


def test_all_mistakes_of_the_table_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        'version = "today"\n[models.a]\nfamily = "f"\nid = "x"\nmax_tokens = 0\nthinking = "hard"\n'
        "prices = {input = 0.0001, cache_write_5m = 1, cache_write_1h = 1, cache_read = 1, output = 1}\n"
    )
    with pytest.raises(ConfigurationError) as caught:
        load_models(file)
    for name in ("version", "max_tokens", "thinking", "prices.input"):
        assert name in str(caught.value)


def test_only_models_of_the_table_have_an_id() -> None:
    assert SHIPPED.by_id("some-other-model") is None
    assert all(SHIPPED.by_id(model.id) is model for model in SHIPPED.models.values())
    with pytest.raises(ConfigurationError, match="large, middle, small"):
        SHIPPED.named("huge")
