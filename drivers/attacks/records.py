"""Records as a GPU machine's runner writes them for an honest candidate, and what is ruled on them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from drivers.attacks.model import Refusal, Verdict, Where
from farm.codec import encode
from farm.gates import Ruling
from farm.measured.model import Settings
from farm.measured.process import RULES
from farm.measured.reading import read_records
from farm.measured.records import (
    Collected,
    ConfigFact,
    DeviceEvent,
    Outcome,
    Phase,
    Probe,
    ProbeKind,
    Record,
    ResultFact,
    RowRun,
    TimedCall,
)
from farm.measured.ruling import rule

SUBJECT = "judge.relu"
#: Device symbols: the candidate's entry, the source's own kernel, kernels of torch and of cuBLAS.
ENTRY, SOURCE = "relu_kernel_entry", "relu_kernel_b1024"
TORCH, LIBRARY = "_ZN2at6native29vectorized_elementwise_kernelE", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT"
KEYS = ("test_op[size=64]", "test_op[size=1024]")
CONFIGS = ("test_perf[n=4194304]", "test_perf[n=16777216]")
#: Bytes that each config's call reads and writes at least; the calls take 20 microseconds and more.
BYTES = {CONFIGS[0]: 33_554_432, CONFIGS[1]: 134_217_728}
TIME_NS = {CONFIGS[0]: 12_000, CONFIGS[1]: 40_000}
SETTINGS = Settings(
    subject=SUBJECT,
    op="relu",
    patch_sha256="a" * 64,
    gpu="NVIDIA H200",
    toolchain={},
    entries=(ENTRY,),
    source_kernels=("relu_kernel",),
)
_RESULT = ResultFact(shape=(8, 128), stride=(128, 1), dtype="float16", requires_grad=True)
_NULLS = ("zeros", "mean", "input", "last")

Change = Callable[[Record], Record | None]


def honest() -> list[Record]:
    """Everything that the parts record of an honest candidate."""
    clean = {rule.fact: "" for rule in RULES}
    found: list[Record] = [
        Collected(subject=SUBJECT, phase=phase, keys=KEYS, uncollected=(), process=clean)
        for phase in (Phase.SOURCE, Phase.TARGET)
    ]
    for key in KEYS:
        found += [_row(key, Phase.SOURCE), _row(key, Phase.TARGET)]
        found += [_row(key, phase, failed=True) for phase in (Phase.STUB, Phase.HOLLOW)]
        found += [replace(_row(key, Phase.NULL, failed=True), null=null) for null in _NULLS]
    found.append(_PROBE)
    for config in CONFIGS:
        found.append(
            ConfigFact(subject=SUBJECT, config=config, origin="perf row", bytes_least=BYTES[config], problem=None)
        )
        found += [
            _call(config, block, slot, repeat, control=control)
            for control in (False, True)
            for block in range(8)
            for slot in range(4)
            for repeat in range(2)
        ]
    return found


def judged(change: Change, records: Sequence[Record] | None = None) -> Verdict:
    """Rule on the honest records with each changed; those that become None are left out.

    They go through the text that a runner writes and `farm import` reads.
    """
    changed = [new for record in (honest() if records is None else records) if (new := change(record)) is not None]
    lines = [json.dumps({"record": type(record).__name__, **encode(record)}) for record in changed]
    measured = rule(read_records(lines), SETTINGS)
    refusals = tuple(
        Refusal(where=Where(result.gate.value), ruling=result.ruling, reason=result.summary)
        for result in measured.gates
        if result.ruling is not Ruling.PASS
    )
    return Verdict(refusals=refusals, seconds=0.0)


def of_target(change: Callable[[TimedCall], TimedCall]) -> Change:
    """A change of the candidate's timed calls."""

    def changed(record: Record) -> Record:
        mine = isinstance(record, TimedCall) and not (record.reference or record.control)
        return change(record) if mine and isinstance(record, TimedCall) else record

    return changed


def event(symbol: str, *, start_ns: int = 1_000_000, ns: int = 1000, stream: int = 7) -> DeviceEvent:
    """One device record."""
    return DeviceEvent(symbol=symbol, start_ns=start_ns, end_ns=start_ns + ns, stream=stream, correlation=1)


def _row(key: str, phase: Phase, *, failed: bool = False) -> RowRun:
    of_source = phase in (Phase.SOURCE, Phase.NULL)
    return RowRun(
        subject=SUBJECT,
        phase=phase,
        key=key,
        node=f"tests/ops/test_relu.py::{key}",
        outcome=Outcome.FAILED if failed else Outcome.PASSED,
        reason="AssertionError: Tensor-likes are not close!" if failed else None,
        seconds=0.1,
        calls=0 if of_source else 1,
        kernels={TORCH: 1, SOURCE if of_source else ENTRY: 1},
        results=(_RESULT,),
        backwards=1,
    )


_PROBE = Probe(
    subject=SUBJECT,
    key=KEYS[0],
    kind=ProbeKind.SEED,
    name="seed 1",
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


def _call(config: str, block: int, slot: int, repeat: int, *, control: bool) -> TimedCall:
    reference = slot in (0, 3)
    symbol = SOURCE if reference or control else ENTRY
    # Some hundredths of noise, the same in each run.
    noise = (block * 7 + slot * 3 + repeat * 5) % 11 - 5
    return TimedCall(
        subject=SUBJECT,
        config=config,
        control=control,
        block=block,
        slot=slot,
        repeat=repeat,
        reference=reference,
        events=(event(symbol, ns=TIME_NS[config] + noise * TIME_NS[config] // 1000),),
        lost=0,
        late=0,
        wall_ns=90_000,
        same_output=True,
        sm_clock_mhz=1980,
        throttle=0,
    )
