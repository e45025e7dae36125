"""Whose a device symbol is: the candidate's, declared, the source's own, or the framework's. Pure."""

import re
from collections import Counter
from collections.abc import Mapping

from farm.measured.model import MEMCPY, MEMSET, Settings

#: How kernels of torch and of the libraries that it calls are named: C++ names, mangled or not, and cuBLAS' own.
_FRAMEWORK = re.compile(
    r"_Z[N\d]|void |nvjet|cutlass|cublas|cudnn|fmha|(sm\d+|ampere|hopper|volta|turing)_|gemv|splitK"
)
#: Kernels of torch that fill or copy: as a memset and a memcpy they compute nothing.
_FILL_OR_COPY = re.compile(r"FillFunctor|direct_copy_kernel|fill_kernel|CatArrayBatchedCopy")


def entries_in(kernels: Mapping[str, int], settings: Settings) -> tuple[str, ...]:
    """The candidate's entries among what ran, in order of name."""
    return tuple(sorted(set(kernels) & set(settings.entries)))


def is_source(symbol: str, settings: Settings) -> bool:
    """Whether a symbol, seen where the source ran, is a kernel of the source itself.

    By the source kernels' names, with which their symbols begin; where no names are given, everything that
    is not named as the framework names its kernels.
    """
    if symbol in settings.entries or symbol in settings.declared or symbol.startswith((MEMCPY, MEMSET)):
        return False
    if not settings.source_kernels:
        return _FRAMEWORK.match(symbol) is None
    bare = symbol.lstrip("_")
    return any(bare.startswith(name.lstrip("_")) for name in settings.source_kernels) and not symbol.startswith(
        "_ZN"
    )


def is_framework(symbol: str) -> bool:
    """Whether a symbol is named as torch and its libraries name theirs, or is a copy or memset."""
    return symbol.startswith((MEMCPY, MEMSET)) or _FRAMEWORK.match(symbol) is not None


def foreign(target: Mapping[str, int], source: Mapping[str, int], settings: Settings) -> str | None:
    """What the target launched without right, or None: both are device symbols with counts of the same work.

    Allowed are the candidate's entries, copies and memsets, declared symbols, and the framework's kernels as
    often as beside the source. Filling and copying is allowed oftener.
    """
    for symbol, count in sorted(target.items()):
        if symbol in settings.entries or symbol in settings.declared or symbol.startswith((MEMCPY, MEMSET)):
            continue
        if symbol in source and is_source(symbol, settings):
            return f"the source's own kernel {symbol}"
        if symbol not in source:
            return f"{symbol}, which is no entry of the candidate and does not run beside the source"
        if count > source[symbol] and _FILL_OR_COPY.search(symbol) is None:
            return f"{symbol} {count} times, beside the source it runs {source[symbol]} times"
    return None


def most(kernels: list["Counter[str]"]) -> "Counter[str]":
    """The largest count of each symbol over several pieces of the same work."""
    largest: Counter[str] = Counter()
    for counted in kernels:
        largest |= counted
    return largest
