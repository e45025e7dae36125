# SPDX-License-Identifier: MIT
"""Which backends work on this machine, and which one is chosen."""

from . import native

_STATE = {"current": "loops"}


def _available():
    names = set()
    try:
        import loop.tile  # noqa: F401

        names.add("loops")
    except ImportError:
        pass
    if native.library_path().is_file():
        names.add("native")
    return names


_AVAILABLE = _available()


def get_available_backends():
    return frozenset(_AVAILABLE)


def is_backend_available(backend):
    return backend in _AVAILABLE


def get_current_backend():
    return _STATE["current"]


def set_backend(backend):
    """Choose who computes from now on. Raises ValueError when it does not work here."""
    if backend not in _AVAILABLE:
        raise ValueError(f"backend {backend!r} is not one of {sorted(_AVAILABLE)}")
    _STATE["current"] = backend


def withdraw_backend(backend):
    """Take a backend out because its operators could not be imported."""
    _AVAILABLE.discard(backend)
