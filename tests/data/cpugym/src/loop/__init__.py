# SPDX-License-Identifier: MIT
"""Loops over CPU tensors: the language of the backend `loops`."""
