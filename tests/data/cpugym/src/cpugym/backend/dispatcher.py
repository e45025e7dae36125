# SPDX-License-Identifier: MIT
"""Operators by name and backend."""

import functools
import os
import warnings

from .selector import get_current_backend

#: operator name -> backend name -> function
_REGISTRY = {}


def register_impl(name, backend):
    """Decorator: the function computes operator `name` when `backend` is chosen."""

    def keep(function):
        _REGISTRY.setdefault(name, {})[backend] = function
        return function

    return keep


def dispatch(name, fallback_backend="loops"):
    """Decorator for an interface: calls go to the chosen backend's function, or fall back with a warning.

    With DISABLE_FALLBACK=1 in the environment they raise NotImplementedError instead.
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
            warnings.warn(f"{name}: backend {chosen!r} has none, using {fallback_backend!r}", stacklevel=2)
            return known[fallback_backend](*args, **kwargs)

        return call

    return wrap
