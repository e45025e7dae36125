# SPDX-License-Identifier: MIT
"""Operators of the backend `loops`."""

from . import add
from . import relu
from . import scale

__all__ = ["add", "relu", "scale"]
