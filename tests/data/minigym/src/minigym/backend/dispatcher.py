# SPDX-License-Identifier: MIT
"""Operators by name and backend."""

import functools
import os
import warnings
from typing import Callable

from .selector import get_current_backend

#: operator name -> backend name -> function
_REGISTRY: dict[str, dict[str, Callable]] = {}


def register_impl(name: str, backend: str):
    """Decorator: the function computes operator `name` when `backend` is chosen."""

    def keep(function):
        _REGISTRY.setdefault(name, {})[backend] = function
        return function

    return keep


def backends_of(name: str) -> tuple[str, ...]:
    """Backends that have registered operator `name`."""
    return tuple(_REGISTRY.get(name, ()))


def dispatch(name: str, fallback_backend: str = "pytorch"):
    """Decorator for an interface in ops.py: calls go to the chosen backend's function.

    A backend without one falls back to `fallback_backend` with a warning, or raises
    NotImplementedError when the environment has DISABLE_FALLBACK=1.
    """

    def wrap(interface):
        @functools.wraps(interface)
        def call(*args, **kwargs):
            chosen = kwargs.pop("backend", None) or get_current_backend()
            known = _REGISTRY.get(name, {})
            if chosen in known:
                return known[chosen](*args, **kwargs)
            if os.environ.get("DISABLE_FALLBACK", "0") == "1":
                raise NotImplementedError(f"{name}: backend {chosen!r} has none, and falling back is disabled")
            if fallback_backend in known:
                warnings.warn(f"{name}: backend {chosen!r} has none, using {fallback_backend!r}", stacklevel=2)
                return known[fallback_backend](*args, **kwargs)
            return interface(*args, **kwargs)

        return call

    return wrap
