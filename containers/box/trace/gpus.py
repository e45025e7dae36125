"""The GPUs that a trace can pretend to run on."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What host code asks a GPU about."""

    name: str
    major: int
    minor: int
    sms: int  #: streaming multiprocessors
    memory_bytes: int
    shared_bytes: int  #: shared memory that one block can have
    l2_bytes: int


_GIB = 1 << 30

GPUS = {
    gpu_code: Gpu(
        name=name,
        major=int(gpu_code[3:-1]),
        minor=int(gpu_code[-1]),
        sms=sms,
        memory_bytes=memory_gib * _GIB,
        shared_bytes=shared,
        l2_bytes=l2_mib << 20,
    )
    for gpu_code, name, sms, memory_gib, shared, l2_mib in (
        ("sm_80", "A100", 108, 80, 166912, 40),
        ("sm_86", "A40", 84, 48, 101376, 6),
        ("sm_89", "L40S", 142, 48, 101376, 96),
        ("sm_90", "H200", 132, 141, 232448, 60),
        ("sm_100", "B200", 148, 180, 232448, 126),
        ("sm_103", "B300", 148, 270, 232448, 126),
        ("sm_110", "Thor", 20, 128, 232448, 32),
        ("sm_120", "RTX PRO 6000", 188, 96, 101376, 128),
        ("sm_121", "GB10", 48, 128, 101376, 24),
    )
}
