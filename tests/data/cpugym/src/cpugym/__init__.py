# SPDX-License-Identifier: MIT
"""Operators with interchangeable backends, on CPU tensors."""

from .backend import get_available_backends
from .backend import is_backend_available
from .backend import set_backend

from . import ops  # isort: skip  (backends have to be known before the operators register)

__all__ = ["get_available_backends", "is_backend_available", "ops", "set_backend"]
