"""What the syntax of a target repo says about its operators, without importing it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KernelSite:
    """A kernel function of the source backend."""

    function: str  #: function name
    file: str  #: path in the target repo
    line: int  #: line of its `def`


@dataclass(frozen=True, kw_only=True)
class TestSite:
    """A test function that is parametrised by backend and exercises the op."""

    file: str  #: path in the target repo
    function: str  #: `Class.function` or `function`
    rows: int | None  #: rows per backend when the parametrisation is literal, else None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What keeps an op from being read, and so from being converted."""

    file: str  #: path in the target repo
    line: int  #: from 1
    column: int  #: from 1
    message: str  #: what is wrong there
    advice: str  #: what to do about it

    def __str__(self) -> str:
        """Place, message and advice in one line."""
        return f"{self.file}:{self.line}:{self.column}: {self.message}; {self.advice}"


@dataclass(frozen=True, kw_only=True)
class Op:
    """An operator of the target repo."""

    name: str  #: the op's name, e.g. `silu_and_mul`
    registered: tuple[str, ...]  #: names it is registered under, e.g. `get_swiglu`
    source_files: tuple[str, ...]  #: files of the source implementation
    kernels: tuple[KernelSite, ...]
    tests: tuple[TestSite, ...]
    target_files: tuple[str, ...]  #: files of a landed target implementation; empty: missing
    problems: tuple[Problem, ...] = ()  #: what cannot be read of it; the rest is as far as it can be read

    @property
    def landed(self) -> bool:
        """Whether the repo already has a target implementation."""
        return bool(self.target_files)
