"""The stand-in driver and its compiler, built from their sources and called as programs call the real ones."""

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from containers.toolchain import Toolchain

pytestmark = pytest.mark.toolchain
SOURCES = Path(__file__).parents[3] / "containers/native/standin"
MODULE = b"\nentry scale 8 4 8 1\nentry none\nend\nBYTECODE"


@pytest.fixture(scope="module")
def built(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("standin")
    shutil.copytree(SOURCES, folder / "source")
    subprocess.run(
        ["make", "-s", "-C", folder / "source", "install", f"PREFIX={folder}"],
        env={"PATH": os.environ["PATH"], "CUDA_TOOLKIT_PATH": str(toolchain.cuda)},
        check=True,
    )
    return folder


@pytest.fixture
def driver(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    monkeypatch.setenv("TILEFARM_STANDIN_DIR", str(tmp_path))
    library = ctypes.CDLL(str(built / "lib/libcuda.so.1"))
    assert library.cuInit(0) == 0
    return library


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "driver.jsonl").read_text().splitlines()]


def loaded(driver: ctypes.CDLL, tmp_path: Path) -> ctypes.c_void_p:
    total = len(b"tilefarm-module ") + 10 + len(MODULE)
    (tmp_path / "a.cubin").write_bytes(b"tilefarm-module %010d" % total + MODULE)
    module = ctypes.c_void_p()
    assert driver.cuModuleLoad(ctypes.byref(module), os.fsencode(tmp_path / "a.cubin")) == 0
    return module


def test_a_launch_is_recorded_with_exact_values(driver: ctypes.CDLL, tmp_path: Path) -> None:
    function = ctypes.c_void_p()
    assert driver.cuModuleGetFunction(ctypes.byref(function), loaded(driver, tmp_path), b"scale") == 0
    values = [ctypes.c_uint64(2**63 + 5), ctypes.c_int32(-1), ctypes.c_double(1.0), ctypes.c_uint8(1)]
    params = (ctypes.c_void_p * 4)(*[ctypes.addressof(value) for value in values])
    before = driver.standin_launches()
    assert driver.cuLaunchKernel(function, 3, 2, 1, 1, 1, 1, 0, None, params, None) == 0
    assert driver.standin_launches() == before + 1
    launch = events(tmp_path)[-1]
    assert (launch["entry"], launch["grid"]) == ("scale", [3, 2, 1])
    assert launch["params"] == [2**63 + 5, 0xFFFFFFFF, 0x3FF0000000000000, 1]
    assert (tmp_path / f"module-{launch['module']}.tileirbc").read_bytes() == b"BYTECODE"


def test_an_entry_that_the_module_lacks_is_refused(driver: ctypes.CDLL, tmp_path: Path) -> None:
    function = ctypes.c_void_p()
    assert driver.cuModuleGetFunction(ctypes.byref(function), loaded(driver, tmp_path), b"scal") != 0
    assert events(tmp_path)[-1]["event"] == "refused"


def test_a_module_of_another_compiler_is_refused(driver: ctypes.CDLL, tmp_path: Path) -> None:
    (tmp_path / "b.cubin").write_bytes(b"\x7fELF and so on")
    assert driver.cuModuleLoad(ctypes.byref(ctypes.c_void_p()), os.fsencode(tmp_path / "b.cubin")) != 0
    assert "tileiras-passthrough" in events(tmp_path)[-1]["reason"]


def test_a_function_that_is_missing_fails_with_its_name(driver: ctypes.CDLL, tmp_path: Path) -> None:
    assert driver.cuGraphCreate(None, 0) == 801
    assert events(tmp_path) == [{"event": "missing", "function": "cuGraphCreate"}]


def test_tensors_of_a_recording_are_not_memory(driver: ctypes.CDLL, tmp_path: Path) -> None:
    assert driver.cuMemcpyDtoH_v2(ctypes.create_string_buffer(8), ctypes.c_uint64(1 << 60), 8) == 801
    assert events(tmp_path)[-1]["function"] == "memcpy of a tensor"


def test_without_a_folder_to_record_in_there_is_no_device(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEFARM_STANDIN_DIR", raising=False)
    assert ctypes.CDLL(str(built / "lib/libcuda.so.1")).cuInit(0) == 100


def test_the_passthrough_wants_tile_ir(built: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"no bytecode")
    done = subprocess.run(
        [built / "bin/tileiras-passthrough", "--gpu-name", "sm_90", "-o", tmp_path / "out", tmp_path / "in"],
        env={"TILEFARM_TILEIRDISASM": str(toolchain.cuda / "bin/tileirdisasm")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "tileirdisasm failed on" in done.stderr
    assert not (tmp_path / "out").exists()
