"""Which GPUs a host has, and how a box is given one; a host is folders and programs that a test writes."""

from pathlib import Path

import pytest

from farm.settings import Gpu, GpuAccess
from workers.devices import Device, HostDevices, device_files, parse_listed

LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-11111111-aaaa-bbbb-cccc-222222222222)
  MIG 1g.18gb     Device  0: (UUID: MIG-33333333-aaaa-bbbb-cccc-222222222222)
GPU 1: NVIDIA L4 (UUID: GPU-44444444-aaaa-bbbb-cccc-222222222222)
"""
FIRST = Device("0", "GPU-11111111-aaaa-bbbb-cccc-222222222222", "NVIDIA H200")
SECOND = Device("1", "GPU-44444444-aaaa-bbbb-cccc-222222222222", "NVIDIA L4")


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The nvidia-smi that PATH leads to; without its file `listed` it fails."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntest "$1" = -L && exec cat {tmp_path}/listed\nexit 9\n')
    program.chmod(0o755)
    (tmp_path / "listed").write_text(LISTED)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path / "listed"


def test_what_nvidia_smi_lists_is_taken_and_parts_of_a_device_are_not() -> None:
    assert parse_listed(LISTED) == (FIRST, SECOND)
    assert parse_listed("No devices were found\n") == ()


def test_auto_means_all_a_list_means_those_and_an_empty_one_none(listing: Path) -> None:
    assert HostDevices(Gpu()).all() == (FIRST, SECOND)
    assert HostDevices(Gpu(devices=("1", "7"))).all() == (SECOND, Device("7"))
    assert HostDevices(Gpu(devices=())).all() == ()


def test_a_host_without_nvidia_smi_has_none(listing: Path) -> None:
    listing.unlink()
    assert HostDevices(Gpu()).all() == ()


def test_a_pretended_device_needs_a_name_of_its_own(listing: Path) -> None:
    assert HostDevices(Gpu(access=GpuAccess.NONE)).all() == ()
    assert HostDevices(Gpu(access=GpuAccess.NONE, devices=("0",))).all() == (Device("0"),)


def test_a_probe_that_fails_hangs_or_is_not_there_means_that_the_device_is_lost(tmp_path: Path) -> None:
    def alive(*probe: str) -> bool:
        return HostDevices(Gpu(probe=probe, probe_limit_s=0.3)).alive(Device("3"))

    assert alive("test", "3", "=")
    assert not alive("test", "4", "=")
    assert not alive("sleep", "20")
    assert not alive(str(tmp_path / "nothing"))


def test_a_devices_files_are_found_by_its_minor_number(tmp_path: Path) -> None:
    dev, proc = tmp_path / "dev", tmp_path / "proc"
    folder = proc / "driver/nvidia/gpus/0000:0f:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(
        f"Model: \t\t NVIDIA H200\nGPU UUID: \t {FIRST.uuid}\nDevice Minor: \t 5\n"
    )
    dev.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia5", "nvidiactl", "nvidia-uvm"):
        (dev / name).touch()
    names = [str(dev / name) for name in ("nvidia5", "nvidiactl", "nvidia-uvm")]
    assert device_files(FIRST, dev=dev, proc=proc) == tuple(names)
    assert device_files(SECOND, dev=dev, proc=proc)[0] == str(dev / "nvidia1")


def test_a_box_with_its_own_image_asks_the_engine_and_one_with_the_hosts_usr_has_device_files() -> None:
    asked, words = HostDevices(Gpu()).given(FIRST, own_image=True)
    assert (asked.request, asked.nodes) == ((FIRST.uuid,), ())
    assert "NVIDIA H200 0" in words
    files, _ = HostDevices(Gpu()).given(FIRST, own_image=False)
    assert files.request == ()
    assert HostDevices(Gpu(access=GpuAccess.REQUEST)).given(FIRST, own_image=False)[0].request == (FIRST.uuid,)
    nothing, said = HostDevices(Gpu(access=GpuAccess.NONE)).given(FIRST, own_image=True)
    assert nothing.request == nothing.nodes == ()
    assert said.startswith("none:")
