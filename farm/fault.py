"""Whose part failed, and what a failure costs."""

from enum import StrEnum


class Owner(StrEnum):
    """Whose part failed, in a stage's reply. A failure without an owner stops the run."""

    HOST = "host"  #: the host code: wrapper, ffi.rs, registration, test parameter
    KERNEL = "kernel"  #: the device code: kernel.rs
    ENV = "env"  #: the machine or the toolchain


class Fault(StrEnum):
    """What a failed attempt is charged to; decides whether and how it is tried again."""

    AGENT = "agent"  #: an executor did not do its part; uses up an attempt
    KERNEL = "kernel"  #: the produced code is wrong; uses up an attempt
    DSL_LIMIT = "dsl_limit"  #: the target language version cannot say it; final at once
    COMPILER_BUG = "compiler_bug"  #: a compiler crashed or miscompiled; final at once
    UNSUPPORTED = "unsupported"  #: the program has no rule for a construct; final at once
    INTEGRITY = "integrity"  #: a leak, an attack or a forbidden change; final at once
    HANG = "hang"  #: no progress within the limit; retried within its own cap
    ENV = "env"  #: toolchain or machine; retried within its own cap
    INFRA = "infra"  #: engine, disk, broker, git; retried within its own cap
    BUDGET = "budget"  #: no money or tokens left; parks


#: Faults that use up one of the job's attempts.
USES_ATTEMPT = frozenset({Fault.AGENT, Fault.KERNEL})
#: Faults that end the job at once.
FINAL_AT_ONCE = frozenset({Fault.DSL_LIMIT, Fault.COMPILER_BUG, Fault.UNSUPPORTED, Fault.INTEGRITY})
#: Faults that are retried without using an attempt, within `Limits.transient_retries`.
TRANSIENT = frozenset({Fault.HANG, Fault.ENV, Fault.INFRA})
