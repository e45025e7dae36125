"""What free memory holds before a call: known bytes, so that results nobody wrote are seen."""

import ctypes

import torch

#: Bytes that free memory may hold in the first and in the second attempt, by the kind of device. On a GPU the
#: first is a NaN in every floating type, the second a small number. glibc writes a byte into what it hands out
#: and its complement into what it gets back; it cannot be told to hand out 0xFF.
PATTERNS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "cuda": ((0xFF,), (0xA5,)),
    "cpu": ((0xFE, 0x01), (0xA5, 0x5A)),
}
#: Memory beside and between arguments in the first and in the second attempt: a NaN, then a small number.
BESIDE = (0xFF, 0xA5)

_M_PERTURB = -6  # of glibc's malloc.h
#: Fresh memory filled besides what the allocator already holds: pieces of its small and of its large pool.
_FRESH = (64 << 20, 8 << 20, 8 << 20, *([1 << 20] * 8))


def poison(device: torch.device, attempt: int) -> None:
    """Fill free memory of torch's allocator with the pattern of attempt 0 or 1.

    CUDA: each free block of the caching allocator on this device is taken by a request of exactly its size,
    written and given back; so is some fresh memory. CPU: glibc is told to do it; other C libraries are not filled.
    """
    if device.type == "cuda":
        _fill_blocks(device, PATTERNS["cuda"][attempt][0])
        return
    handed_out = PATTERNS["cpu"][attempt][0]
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_PERTURB, handed_out ^ 0xFF)


def _fill_blocks(device: torch.device, pattern: int) -> None:
    torch.cuda.synchronize(device)
    index = device.index if device.index is not None else torch.cuda.current_device()
    sizes = [
        block["size"]
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == index
        for block in segment["blocks"]
        if block["state"] == "inactive"
    ]
    held = []
    for size in (*sorted(sizes, reverse=True), *_FRESH):
        held.append(torch.empty(size, dtype=torch.uint8, device=device).fill_(pattern))
    del held
    torch.cuda.synchronize(device)
