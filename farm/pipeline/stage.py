"""Stages, verdicts and replies: the words in which a pipeline's parts talk to its router."""

from dataclasses import dataclass
from enum import StrEnum

from farm.fault import Fault, Owner


class Stage(StrEnum):
    """A stage of the pipeline."""

    A = "A"  #: analyse
    B = "B"  #: kernel
    C = "C"  #: compare IR; changes no code
    D = "D"  #: host code; owns correctness
    E = "E"  #: verify; measures, does not tune
    F = "F"  #: residual performance; changes no code


class Verdict(StrEnum):
    """A stage's one-word outcome. Which stage may say which is in `machine.VERDICTS`."""

    PASS = "PASS"  #: A: analysed; C: the IR is the same
    PASS_WITH_NOTES = "PASS_WITH_NOTES"  #: C: the same but for noted, harmless differences
    FAIL_FIXABLE = "FAIL_FIXABLE"  #: failed, and something can be done about it
    FAIL_COMPILE = "FAIL_COMPILE"  #: B: the kernel does not compile
    FAIL_COMPILER_BUG = "FAIL_COMPILER_BUG"  #: C: a compiler is at fault
    FAIL = "FAIL"  #: D: a row or a launch is wrong
    BLOCKED = "BLOCKED"  #: cannot go on
    COMPILED = "COMPILED"  #: B: compiles and compares
    ALL_PASS = "ALL_PASS"  #: D: every row passes
    DEFERRED = "DEFERRED"  #: D, E: done as far as no GPU allows
    DONE = "DONE"  #: E: measured and at par
    INVESTIGATE = "INVESTIGATE"  #: E: measured and not at par
    FIXABLE = "FIXABLE"  #: F: the gap has a cause that can be removed
    ALIGNED = "ALIGNED"  #: F: nothing left to remove


class FailClass(StrEnum):
    """What kind of shortfall E found."""

    SHAPES = "shapes"  #: slow in some shapes
    LARGE = "large"  #: structural, slow everywhere


class ExecutorKind(StrEnum):
    """Who performs a stage."""

    PROGRAM = "program"  #: deterministic code
    AGENT = "agent"  #: a language model under rules
    AUTO = "auto"  #: the program first; the agent where that leaves something to do
    SCRIPTED = "scripted"  #: answers from a file, for tests


@dataclass(frozen=True, kw_only=True)
class ValidatorExit:
    """What one validator said when the orchestrator ran it."""

    name: str
    exit_code: int
    message: str  #: last line or first error


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One error or observation with its place."""

    file: str | None  #: path in the workspace or artifact folder
    line: int | None  #: from 1
    column: int | None  #: from 1
    construct: str | None  #: the source text concerned
    message: str  #: what is wrong
    advice: str | None  #: what to write or do instead


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a stage's executor hands to the router."""

    verdict: Verdict
    owner: Owner | None  #: needed for every failure
    fault: Fault | None  #: what a diagnosed end is charged to
    fail_class: FailClass | None  #: for E: INVESTIGATE
    findings: tuple[Finding, ...] = ()
    validators: tuple[ValidatorExit, ...] = ()
    artifacts: tuple[str, ...] = ()  #: paths under the artifact folder that this stage wrote
    summary: str = ""  #: one sentence
