# SPDX-License-Identifier: MIT
"""The operators; importing a backend's package registers what it can compute."""

import warnings

from minigym.backend import is_backend_available
from minigym.backend.selector import withdraw_backend

from . import pytorch
from .ops import add_bias
from .ops import relu
from .ops import scale
from .ops import silu_and_mul

if is_backend_available("cutile"):
    from . import cutile

if is_backend_available("cutile-rs"):
    try:
        from . import cutile_rs
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"cutile-rs is left out: {error}", stacklevel=2)
        withdraw_backend("cutile-rs")

__all__ = ["add_bias", "relu", "scale", "silu_and_mul"]
