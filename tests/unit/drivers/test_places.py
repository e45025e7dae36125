import os
import stat

import pytest

from drivers.places import places
from farm.errors import ConfigurationError
from workers.sockets import SOCKET_PATH_BYTES


def test_a_short_state_folder_holds_its_own_socket(tmp_path):
    where = places(tmp_path / "s")
    assert where.socket == tmp_path / "s/run/redis.sock"
    assert where.broker_url == f"redis+socket://{where.socket}"
    assert stat.S_IMODE((tmp_path / "s/run").stat().st_mode) == 0o700


@pytest.fixture
def deep(tmp_path):
    folder = tmp_path / ("d" * 60) / ("e" * 60)
    folder.mkdir(parents=True)
    return folder


def test_a_path_too_long_for_a_socket_is_replaced_by_a_short_private_one(deep, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    where = places(deep)
    assert len(os.fsencode(where.socket)) <= SOCKET_PATH_BYTES
    assert stat.S_IMODE(where.socket.parent.stat().st_mode) == 0o700
    assert places(deep).socket == where.socket
    other = deep.with_name("f" * 60)
    assert places(other).socket != where.socket


def test_a_folder_that_others_can_enter_is_not_used(deep, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    first = places(deep).socket.parent
    first.chmod(0o755)
    second = places(deep).socket.parent
    assert second != first
    second.rmdir()


def test_a_link_in_the_place_of_the_folder_is_not_followed(deep, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = places(deep).socket.parent
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    second = places(deep).socket.parent
    assert second != folder
    second.rmdir()


def test_a_state_folder_that_cannot_be_made_is_a_configuration_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="TILEFARM_STATE"):
        places(tmp_path / "file")
