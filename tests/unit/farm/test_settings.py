import tomllib
from pathlib import Path

import pytest

from farm.errors import ConfigurationError
from farm.settings import Settings, dump, load, restore, runtime_home

ROOT = Path(__file__).parents[3]


def env(tmp_path, **more):
    return {"HOME": str(tmp_path), **more}


def test_without_anything_set_the_folders_are_the_users_own(tmp_path):
    settings = load(env(tmp_path))
    assert settings.state == tmp_path / ".local/state/tilefarm"
    assert settings.toolchain == tmp_path / ".local/share/tilefarm/toolchain/current"
    assert settings.ledger_url == f"sqlite:///{settings.state}/ledger.db"
    assert settings.artifacts == settings.state / "artifacts"


def test_xdg_folders_are_honoured(tmp_path):
    settings = load(env(tmp_path, XDG_STATE_HOME="/s", XDG_DATA_HOME="/d", XDG_CONFIG_HOME="/c"))
    assert (settings.state, settings.toolchain) == (
        Path("/s/tilefarm"),
        Path("/d/tilefarm/toolchain/current"),
    )
    assert runtime_home({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7")
    assert runtime_home({}) is None


def test_the_shipped_file_states_every_default(tmp_path):
    shipped = ROOT / "config/farm.toml"
    assert load(env(tmp_path), file=shipped) == load(env(tmp_path))
    told = tomllib.loads(shipped.read_text())
    text = shipped.read_text()
    for name, section in Settings.model_fields.items():
        fields = getattr(section.annotation, "model_fields", {})
        assert name in told or f"# {name} = " in text
        for field in fields:
            assert field in told[name] or f"# {field} = " in text, f"{name}.{field}"


def test_variables_win_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "farm.toml"
    file.write_text('state = "/from-file"\n[worker]\nlease_s = 7\nreconcile_s = 1\n')
    settings = load(
        env(
            tmp_path,
            TILEFARM_CONFIG=str(file),
            TILEFARM_WORKER__LEASE_S="9",
            TILEFARM_BROKER__URL="redis://x",
        )
    )
    assert (settings.state, settings.worker.lease_s, settings.worker.reconcile_s) == (
        Path("/from-file"),
        9.0,
        1.0,
    )
    assert settings.broker.url == "redis://x"


def test_the_users_own_file_is_found(tmp_path):
    folder = tmp_path / ".config/tilefarm"
    folder.mkdir(parents=True)
    (folder / "farm.toml").write_text("[embedded]\nidle_minutes = 3\n")
    assert load(env(tmp_path)).embedded.idle_minutes == 3


def test_all_mistakes_are_listed_at_once(tmp_path):
    file = tmp_path / "farm.toml"
    file.write_text('sate = "x"\n[worker]\nlease_s = -1\nspin = "y"\n')
    with pytest.raises(ConfigurationError) as caught:
        load(env(tmp_path, TILEFARM_LIMITS__LOST_LEASES="many"), file=file)
    message = str(caught.value)
    assert message.startswith("4 mistake(s)")
    for place in ("sate", "worker.lease_s", "worker.spin", "limits.lost_leases"):
        assert f"  {place}: " in message


@pytest.mark.parametrize("text", ["[worker", "worker = 3\n[worker]\n"])
def test_a_file_that_is_no_toml_is_named(tmp_path, text):
    file = tmp_path / "farm.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"farm\.toml"):
        load(env(tmp_path), file=file)


def test_a_file_that_was_named_must_exist(tmp_path):
    with pytest.raises(ConfigurationError, match="TILEFARM_CONFIG"):
        load(env(tmp_path, TILEFARM_CONFIG=str(tmp_path / "none.toml")))


def test_a_misspelt_variable_is_a_mistake_and_a_foreign_one_is_none_of_ours(tmp_path):
    with pytest.raises(ConfigurationError, match=r"worker\.leas_s"):
        load(env(tmp_path, TILEFARM_WORKER__LEAS_S="1"))
    load(env(tmp_path, TILEFARM_SHARED="/x", OTHER_STATE="/y"))


def test_a_place_that_is_a_section_and_a_value_is_a_mistake(tmp_path):
    with pytest.raises(ConfigurationError):
        load(env(tmp_path, TILEFARM_WORKER="x", TILEFARM_WORKER__LEASE_S="1"))


def test_relative_and_home_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(env(tmp_path, TILEFARM_STATE="here")).state == tmp_path / "here"


def test_dumped_settings_come_back_as_they_were(tmp_path):
    settings = load(env(tmp_path, TILEFARM_WORKER__LISTENERS="a:b,c:d", TILEFARM_WORKER__LEASE_S="3"))
    assert settings.worker.listeners == ("a:b", "c:d")
    assert restore(dump(settings)) == settings
    with pytest.raises(ConfigurationError):
        restore("{}")


def test_the_architecture_may_stand_in_place_of_the_gpu_table(tmp_path):
    file = tmp_path / "farm.toml"
    file.write_text('gpu = "sm_100"\n')
    assert load(env(tmp_path), file=file).gpu.arch == "sm_100"
    assert load(env(tmp_path, TILEFARM_GPU="sm_120")).gpu.arch == "sm_120"


def test_devices_are_a_word_a_list_or_none(tmp_path):
    file = tmp_path / "farm.toml"
    for text, devices in (('"auto"', ("auto",)), ('["0", "3"]', ("0", "3")), ("[]", ())):
        file.write_text(f"[gpu]\ndevices = {text}\n")
        assert load(env(tmp_path), file=file).gpu.devices == devices
    assert load(env(tmp_path, TILEFARM_GPU__DEVICES="0,1")).gpu.devices == ("0", "1")
    assert load(env(tmp_path, TILEFARM_GPU__PROBE="probe --device")).gpu.probe == ("probe", "--device")
