# SPDX-License-Identifier: MIT
"""Which backend computes an operator."""

from .dispatcher import dispatch
from .dispatcher import register_impl
from .selector import get_available_backends
from .selector import get_current_backend
from .selector import is_backend_available
from .selector import set_backend

__all__ = [
    "dispatch",
    "get_available_backends",
    "get_current_backend",
    "is_backend_available",
    "register_impl",
    "set_backend",
]
