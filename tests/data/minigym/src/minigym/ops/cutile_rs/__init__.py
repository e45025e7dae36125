# SPDX-License-Identifier: MIT
"""cuTile Rust operators; importing a module registers its operator."""

from minigym.backend import is_backend_available

if is_backend_available("cutile-rs"):
    from . import silu_and_mul  # noqa: F401
