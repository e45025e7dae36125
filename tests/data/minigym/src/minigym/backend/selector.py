# SPDX-License-Identifier: MIT
"""Which backends work on this machine, and which one is chosen."""

import importlib.util
import os
import shutil


def _has_cutile() -> bool:
    try:
        return importlib.util.find_spec("cuda.tile") is not None
    except ModuleNotFoundError:
        return False


def _has_cutile_rs() -> bool:
    from .cutile_rs import utils

    crate = utils.kernels_crate_dir()
    if crate is None:
        return False
    if utils.autobuild_enabled() and shutil.which("cargo"):
        return True
    return os.path.isfile(utils.library_path(crate))


class _Choice:
    """The set of backends and the one in use."""

    def __init__(self) -> None:
        self.available = {"pytorch"}
        if _has_cutile():
            self.available.add("cutile")
        if _has_cutile_rs():
            self.available.add("cutile-rs")
        wanted = os.environ.get("MINIGYM_BACKEND", "cutile")
        self.current = wanted if wanted in self.available else "pytorch"


_CHOICE = _Choice()


def get_available_backends() -> frozenset[str]:
    return frozenset(_CHOICE.available)


def is_backend_available(backend: str) -> bool:
    return backend in _CHOICE.available


def get_current_backend() -> str:
    return _CHOICE.current


def set_backend(backend: str) -> None:
    """Choose who computes from now on. Raises ValueError when it does not work here."""
    if backend not in _CHOICE.available:
        raise ValueError(f"backend {backend!r} is not one of {sorted(_CHOICE.available)}")
    _CHOICE.current = backend


def withdraw_backend(backend: str) -> None:
    """Take a backend out of the set because its operators could not be imported."""
    _CHOICE.available.discard(backend)
    if _CHOICE.current == backend:
        _CHOICE.current = "pytorch"
