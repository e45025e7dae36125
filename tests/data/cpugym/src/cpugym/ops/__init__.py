# SPDX-License-Identifier: MIT
"""The operators; importing a backend's package registers what it can compute."""

import warnings

from cpugym.backend import is_backend_available
from cpugym.backend.selector import withdraw_backend

from .ops import add
from .ops import relu
from .ops import scale

if is_backend_available("loops"):
    from . import loops

if is_backend_available("native"):
    try:
        from . import native
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"native is left out: {error}", stacklevel=2)
        withdraw_backend("native")

__all__ = ["add", "relu", "scale"]
