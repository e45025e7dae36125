# SPDX-License-Identifier: MIT
"""cuTile Python operators."""

from .add_bias import add_bias
from .relu import relu
from .scale import scale
from .silu_and_mul import silu_and_mul

__all__ = ["add_bias", "relu", "scale", "silu_and_mul"]
