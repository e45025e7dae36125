"""analysis.json: what stage A found out about an op by running its own tests without a GPU.

The same records describe the candidate: its rows and launches are recorded the same way.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ArrayArg:
    """A tensor that a launch received."""

    name: str  #: the kernel's parameter name
    dtype: str  #: `f32 f16 bf16 i32 i64 i8 u8 bool f8e5m2 f8e4m3fn ...`
    shape: tuple[int, ...]  #: extents, elements
    strides: tuple[int, ...]  #: strides, elements
    address: int  #: synthetic device address of element 0, bytes; equal for both backends' same tensor
    kind: Literal["array"] = "array"


@dataclass(frozen=True, kw_only=True)
class ScalarArg:
    """A scalar that stays a runtime argument."""

    name: str
    dtype: str  #: `i32 i64 f32 f64 bool`
    value: int | float | bool
    kind: Literal["scalar"] = "scalar"


@dataclass(frozen=True, kw_only=True)
class ConstantArg:
    """An argument that the kernel is specialised on (ct.Constant)."""

    name: str
    value: int | float | bool | str | None
    kind: Literal["constant"] = "constant"


Arg = ArrayArg | ScalarArg | ConstantArg


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel launch of the source backend."""

    kernel: str  #: `KernelSource.name`
    signature: str  #: `Signature.id`
    grid: tuple[int, int, int]  #: blocks
    args: tuple[Arg, ...]  #: in the order of the kernel's parameters
    backward: bool = False  #: made while autograd went backward


@dataclass(frozen=True, kw_only=True)
class HostStep:
    """A tensor operation of the host code, or the test's look at a tensor that the host code made."""

    after: int  #: launches of the row before it
    what: str  #: operation with its plain arguments, e.g. `aten.cat.default(-1)`; `read` for the test's look
    tensors: tuple[ArrayArg, ...]  #: what it works on and what it makes, in order
    backward: bool = False  #: done by, or reading what was made by, autograd's way backward


#: A host step that stands for a decision on a tensor's value: the way not taken is not in the trace.
BRANCH = "branch on a value, taken as true"
#: Reason of a candidate's row that failed since it made no launch, though it ran to its end.
NO_LAUNCH = "the row ended without a launch"


class RowStatus(StrEnum):
    """What became of a test row."""

    TRACED = "traced"  #: ran up to its final comparison, launches recorded
    SKIPPED = "skipped"  #: skipped by the test itself
    FAILED = "failed"  #: ended before its final comparison; `reason` says why


@dataclass(frozen=True, kw_only=True)
class Row:
    """One test case of one backend."""

    key: str  #: node id without the backend parameter: equal for source and target
    node: str  #: full pytest node id
    status: RowStatus
    reason: str | None  #: for skipped and failed rows
    launches: tuple[Launch, ...]
    steps: tuple[HostStep, ...] = ()


@dataclass(frozen=True, kw_only=True)
class KernelSource:
    """A kernel function of the source backend."""

    name: str  #: `module.function`, unique in the op
    function: str  #: function name
    file: str  #: path in the target repo
    line: int  #: line of its `def`
    parameters: tuple[str, ...]  #: in order


@dataclass(frozen=True, kw_only=True)
class Signature:
    """One distinct specialisation: kernel, argument types and facts, constants, hints."""

    id: str  #: short digest
    kernel: str  #: `KernelSource.name`
    args: tuple[Arg, ...]  #: of the first launch that had it (addresses, extents are examples)
    hints: dict[str, int | None]  #: `num_ctas`, `occupancy`, `opt_level`, ... as given to the kernel
    tuned: bool  #: from a tuner's space, not launched by a row
    ir: str  #: Tile IR text with locations, path under the artifact folder
    bytecode: str  #: Tile IR bytecode, path under the artifact folder
    sha256: str  #: of the bytecode


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The whole of analysis.json."""

    op: str
    source: str  #: backend name, e.g. `cutile`
    target: str  #: backend name, e.g. `cutile-rs`
    gpu: str  #: e.g. `sm_90`
    tests: tuple[str, ...]  #: test files, paths in the target repo
    source_files: tuple[str, ...]  #: files that implement the op in the source backend
    rows: tuple[Row, ...]  #: of the source backend, every collected one
    kernels: tuple[KernelSource, ...]
    signatures: tuple[Signature, ...]
    void: bool  #: the op has no rows: nothing can be proven about it
    versions: dict[str, str]  #: of the toolchain's parts
    schema: int = 1

    @property
    def traced(self) -> int:
        """Rows that ran up to their final comparison."""
        return sum(row.status is RowStatus.TRACED for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class CandidateLaunch:
    """One launch that the real host code made, as the stand-in driver saw it."""

    entry: str  #: symbol given to cuModuleGetFunction
    grid: tuple[int, int, int]  #: blocks
    params: tuple[int, ...]  #: raw values, zero-extended to 64 bit, in the order of the entry's arguments
    ir: str  #: Tile IR text of the loaded module, path under the artifact folder
    sha256: str  #: of the module's bytecode


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """One test case of the target backend."""

    key: str
    node: str
    status: RowStatus
    reason: str | None
    launches: tuple[CandidateLaunch, ...]
    steps: tuple[HostStep, ...] = ()
