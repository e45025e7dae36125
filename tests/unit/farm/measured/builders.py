"""Records of an honest run, to spoil one at a time."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from farm.measured.model import Settings
from farm.measured.process import RULES
from farm.measured.records import (
    Collected,
    ConfigFact,
    DeviceEvent,
    Outcome,
    Phase,
    Probe,
    ProbeKind,
    ResultFact,
    RowRun,
    TimedCall,
)
from farm.measured.ruling import Record

SUBJECT = "judge.relu"
ENTRY, OWN, TORCH = "relu_kernel_entry", "relu_kernel_cutile_f16", "_ZN2at6native18elementwise_kernelE"
KEYS = ("test_op[size=8]", "test_op[size=64]")
CONFIGS = ("n=1024", "n=4096")
SETTINGS = Settings(
    subject=SUBJECT,
    op="relu",
    patch_sha256="a" * 64,
    gpu="NVIDIA H200",
    toolchain={"tileiras": "13.5.37"},
    entries=(ENTRY,),
    source_kernels=("relu_kernel_cutile",),
)
FACT = ResultFact(shape=(8, 8), stride=(8, 1), dtype="float16", requires_grad=True)
CLEAN = {rule.fact: "" for rule in RULES} | {"os_threads": "19"}


def row(key: str, phase: Phase, outcome: Outcome = Outcome.PASSED, **changes: object) -> RowRun:
    kernels = {TORCH: 2, (OWN if phase in {Phase.SOURCE, Phase.NULL} else ENTRY): 1}
    whole = RowRun(
        subject=SUBJECT,
        phase=phase,
        key=key,
        node=f"tests/test_relu.py::{key}",
        outcome=outcome,
        reason=None if outcome is Outcome.PASSED else "AssertionError: not close",
        seconds=0.1,
        calls=1 if phase is Phase.TARGET else 0,
        kernels=kernels,
        results=(FACT,),
        backwards=1,
    )
    return replace(whole, **changes)


def collected(phase: Phase, keys: Sequence[str] = KEYS, **changes: object) -> Collected:
    whole = Collected(subject=SUBJECT, phase=phase, keys=tuple(keys), uncollected=(), process=CLEAN)
    return replace(whole, **changes)


def probe(**changes: object) -> Probe:
    whole = Probe(
        subject=SUBJECT,
        key=KEYS[0],
        kind=ProbeKind.EDGE,
        name="nan",
        source_raised=None,
        target_raised=None,
        source_error_ulp=0.5,
        target_error_ulp=0.5,
        unequal_special=0,
        unequal_facts=None,
        poisoned=0,
        inputs_changed=(),
        source_repeats=True,
        target_repeats=True,
    )
    return replace(whole, **changes)


def fact(config: str, **changes: object) -> ConfigFact:
    whole = ConfigFact(subject=SUBJECT, config=config, origin="perf row", bytes_least=4096, problem=None)
    return replace(whole, **changes)


def call(config: str = CONFIGS[0], *, time_ns: int = 10_000, **changes: object) -> TimedCall:
    reference = bool(changes.get("reference") or changes.get("control"))
    symbol = OWN if reference else ENTRY
    start = 1_000_000
    whole = TimedCall(
        subject=SUBJECT,
        config=config,
        control=False,
        block=0,
        slot=0,
        repeat=0,
        reference=True,
        events=(DeviceEvent(symbol=symbol, start_ns=start, end_ns=start + time_ns, stream=7, correlation=1),),
        lost=0,
        late=0,
        wall_ns=50_000,
        same_output=True,
        sm_clock_mhz=1980,
        throttle=0,
    )
    return replace(whole, **changes)


def timed(
    config: str,
    *,
    ratio: float = 1.0,
    blocks: range = range(8),
    control: bool = False,
    noise: float = 0.005,
    seed: int = 0,
) -> list[TimedCall]:
    """Blocks of a config; the target takes 1 / ratio of the reference's time."""
    draw = random.Random(f"{config} {control} {blocks} {seed}")
    return [
        call(
            config,
            control=control,
            block=block,
            slot=slot,
            repeat=repeat,
            reference=slot in {0, 3},
            time_ns=round(100_000 * draw.lognormvariate(0, noise) / (1 if slot in {0, 3} else ratio)),
        )
        for block in blocks
        for slot in range(4)
        for repeat in range(2)
    ]


def timing(ratio: float = 1.0, configs: Sequence[str] = CONFIGS, **more: object) -> list[Record]:
    records: list[Record] = []
    for config in configs:
        records += [fact(config), *timed(config, ratio=ratio, **more), *timed(config, control=True)]
    return records


def rows() -> list[Record]:
    records: list[Record] = [collected(Phase.SOURCE), collected(Phase.TARGET)]
    for key in KEYS:
        records += [row(key, Phase.SOURCE), row(key, Phase.TARGET), row(key, Phase.STUB, Outcome.FAILED)]
        records += [row(key, Phase.NULL, Outcome.FAILED, null=null) for null in ("zeros", "mean", "input", "last")]
    return records


def honest() -> list[Record]:
    """Everything, and all of it right."""
    return [*rows(), probe(), *timing()]


def changed(records: Sequence[Record], where: Callable[[Record], bool], **changes: object) -> list[Record]:
    """The records with some fields of some of them changed; at least one must be met."""
    met = [where(record) for record in records]
    assert any(met)
    return [replace(r, **changes) if hit else r for r, hit in zip(records, met, strict=True)]


def is_row(phase: Phase, key: str | None = KEYS[0], null: str | None = None) -> Callable[[Record], bool]:
    def met(record: Record) -> bool:
        return (
            isinstance(record, RowRun)
            and record.phase is phase
            and key in {None, record.key}
            and null in {None, record.null}
        )

    return met


def is_call(*, reference: bool, control: bool = False, block: int | None = None) -> Callable[[Record], bool]:
    def met(record: Record) -> bool:
        return (
            isinstance(record, TimedCall)
            and record.reference is reference
            and record.control is control
            and record.config == CONFIGS[0]
            and block in {None, record.block}
        )

    return met
