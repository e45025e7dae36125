import pytest

from farm.errors import ConfigurationError
from farm.job import FINAL, JobState
from workers.scripted import build_spine, way
from workers.spine import named


def test_a_factory_is_found_by_its_name():
    assert named("workers.scripted:build_spine") is build_spine


@pytest.mark.parametrize(
    "path", ["", "workers.scripted", "no.such:thing", "workers.scripted:nothing", "workers.scripted:_ASIDE"]
)
def test_a_wrong_name_is_a_configuration_error(path):
    with pytest.raises(ConfigurationError, match=r"farm\.toml"):
        named(path)


@pytest.mark.parametrize("state", [s for s in JobState if s not in FINAL])
def test_every_state_has_a_way_to_acceptance(state):
    assert way(state, JobState.ACCEPTED)[-1] is JobState.ACCEPTED
