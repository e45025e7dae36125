import os
from pathlib import Path

from farm.settings import Gateway, Settings
from workers import processes
from workers.gateway.place import gateway_place
from workers.gateway.usable import gateway_problem, key_problem


def settings(state: Path, **gateway: object) -> Settings:
    return Settings(state=state, toolchain=state, gateway=Gateway.model_validate(gateway))


def test_the_default_api_needs_a_key_and_ones_own_does_not(tmp_path: Path) -> None:
    assert "ANTHROPIC_API_KEY" in (key_problem(Gateway(), {}) or "")
    assert key_problem(Gateway(), {"ANTHROPIC_API_KEY": "k"}) is None
    (tmp_path / "key").write_text("k\n")
    assert key_problem(Gateway(key_file=tmp_path / "key"), {}) is None
    assert key_problem(Gateway(url="http://localhost:1"), {}) is None


def test_boxes_can_ask_while_a_gateway_runs(tmp_path: Path) -> None:
    assert "no gateway runs" in (gateway_problem(settings(tmp_path)) or "")
    processes.record(gateway_place(tmp_path).process, os.getpid())
    assert gateway_problem(settings(tmp_path)) is None


def test_a_dead_gateway_comes_back_only_where_its_key_is_in_a_file(tmp_path: Path) -> None:
    gateway_place(tmp_path).settings.write_text("{}")
    assert "key went with it" in (gateway_problem(settings(tmp_path)) or "")
    assert gateway_problem(settings(tmp_path, url="http://localhost:1")) is None
