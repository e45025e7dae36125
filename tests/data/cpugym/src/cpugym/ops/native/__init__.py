# SPDX-License-Identifier: MIT
"""Operators of the backend `native`; importing a module registers its operator."""

from cpugym.backend import is_backend_available

if is_backend_available("native"):
    from . import add  # noqa: F401
    from . import relu  # noqa: F401
    from . import scale  # noqa: F401
