# SPDX-License-Identifier: MIT
"""Build, load and call libcutile_kernels.so, the one library of all cutile-rs operators.

CUTILE_RS_AUTOBUILD=0 switches building off, CUTILE_RS_KERNELS_DIR names another crate folder.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

LIBRARY = "libcutile_kernels.so"
BUILD_LIMIT_S = 900

_OPS_ROOT = Path(__file__).resolve().parents[2] / "ops" / "cutile_rs"
_BOUND: dict[str, tuple] = {}

# The same record as `TensorDesc` in ops/cutile_rs/ffi_util.rs.
_TENSOR_DESC = """
typedef struct {
    uint64_t ptr;
    int32_t ndim;
    int64_t shape[5];
    int64_t strides[5];
    int32_t dtype;
} TensorDesc;
"""
_MAX_DIMS = 5

_DTYPE_CODES = {
    "torch.float32": 0,
    "torch.float16": 1,
    "torch.bfloat16": 2,
    "torch.int32": 3,
    "torch.int64": 4,
    "torch.float8_e5m2": 5,
    "torch.uint8": 6,
    "torch.float8_e4m3fn": 7,
}

_RC_TEXT = {
    -2: "no kernel for this dtype",
    -3: "the launch failed",
    -4: "the device cannot be opened",
    -5: "a tensor is missing",
    -6: "an argument is out of range",
}


def autobuild_enabled() -> bool:
    """Whether a missing or outdated library is built."""
    return os.environ.get("CUTILE_RS_AUTOBUILD", "1").lower() not in {"0", "false", "no"}


def kernels_crate_dir() -> str | None:
    """Folder of the crate, or None when there is none."""
    for folder in (os.environ.get("CUTILE_RS_KERNELS_DIR"), str(_OPS_ROOT / "cutile_kernels")):
        if folder and os.path.isfile(os.path.join(folder, "Cargo.toml")):
            return folder
    return None


def library_path(crate: str) -> str:
    """Where cargo leaves the library."""
    return os.path.join(crate, "target", "release", LIBRARY)


def is_stale(library: str) -> bool:
    """Whether the library is missing or a Rust source or manifest is newer than it."""
    if not os.path.isfile(library):
        return True
    built = os.path.getmtime(library)
    sources = [p for end in ("*.rs", "*.toml") for p in _OPS_ROOT.rglob(end)]
    return any("target" not in p.parts and p.stat().st_mtime > built for p in sources)


def build(crate: str) -> None:
    """Run cargo in the crate folder, one process at a time. Raises RuntimeError with cargo's last lines."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise RuntimeError("cargo is not on PATH: install Rust, or set CUTILE_RS_AUTOBUILD=0 and bring the library")
    with open(os.path.join(crate, ".build.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_stale(library_path(crate)):
            return
        done = subprocess.run(
            [cargo, "build", "--release"], cwd=crate, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"cargo build ended with {done.returncode} in {crate}:\n{done.stderr[-2000:]}")


def bind_kernel_function_cffi(kernel: str, cdef: str):
    """(ffi, lib) for one operator: its C declaration over the shared library, built first if need be."""
    from cffi import FFI

    if kernel not in _BOUND:
        crate = kernels_crate_dir()
        if crate is None:
            raise RuntimeError("the crate cutile_kernels is missing")
        library = library_path(crate)
        if autobuild_enabled() and is_stale(library):
            build(crate)
        if not os.path.isfile(library):
            raise RuntimeError(f"{library} is missing: run `cargo build --release` in {crate}")
        ffi = FFI()
        ffi.cdef(_TENSOR_DESC + cdef)
        _BOUND[kernel] = (ffi, ffi.dlopen(library))
    return _BOUND[kernel]


def make_tensor_desc(ffi, tensor):
    """A `TensorDesc *` that describes the tensor; keep it until the call has returned."""
    if not tensor.is_cuda:
        raise ValueError(f"cutile-rs wants CUDA tensors, got one on {tensor.device}")
    if tensor.dim() > _MAX_DIMS:
        raise ValueError(f"cutile-rs takes up to {_MAX_DIMS} dimensions, got {tensor.dim()}")
    if str(tensor.dtype) not in _DTYPE_CODES:
        raise NotImplementedError(f"cutile-rs has no code for {tensor.dtype}")
    desc = ffi.new("TensorDesc *")
    desc.ptr = tensor.data_ptr()
    desc.ndim = tensor.dim()
    for axis, (extent, stride) in enumerate(zip(tensor.shape, tensor.stride())):
        desc.shape[axis] = int(extent)
        desc.strides[axis] = int(stride)
    desc.dtype = _DTYPE_CODES[str(tensor.dtype)]
    return desc


def check_rc(rc: int, function: str) -> None:
    """Raise RuntimeError unless the library's return code is 0."""
    if rc != 0:
        raise RuntimeError(f"{function}: {_RC_TEXT.get(rc, 'failed')} (rc {rc})")


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n. Raises ValueError for n < 1."""
    if n < 1:
        raise ValueError(f"next_power_of_2 wants a positive number, got {n}")
    return 1 << (n - 1).bit_length()
