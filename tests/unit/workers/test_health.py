from pathlib import Path

from farm.settings import Broker, Limits, Settings
from workers.health import broker_finding, findings, ledger_finding, space_finding


def settings(state: Path, **more) -> Settings:
    broker = Broker(url=f"redis+socket://{state}/none.sock")
    return Settings(**{"state": state, "toolchain": state, "broker": broker, **more})


def test_a_writable_state_folder_is_healthy_and_a_missing_broker_is_not(tmp_path):
    found = {finding.name: finding.ok for finding in findings(settings(tmp_path, limits=Limits(min_free_bytes=1)))}
    assert found == {"broker": False, "ledger": True, "space": True}
    assert "correct broker.url" in broker_finding(settings(tmp_path)).message


def test_a_full_disk_says_how_much_is_missing(tmp_path):
    finding = space_finding(settings(tmp_path, limits=Limits(min_free_bytes=1 << 60)))
    assert not finding.ok
    assert "free some space" in finding.message


def test_a_state_folder_that_is_a_file_is_found(tmp_path):
    (tmp_path / "state").write_text("")
    wrong = settings(tmp_path / "state")
    assert not ledger_finding(wrong).ok
    assert "TILEFARM_STATE" in space_finding(wrong).message
