"""How much a short kernel's time depends on where its tensors lie: needs a GPU and torch.

    for s in 1 2 3; do python tests/bench/placements.py $s; done

Prints for each shape and each of two rounds over twelve places the median device time of an addition, nanoseconds,
by its profiler, with the L2 cache written over before each call. Where places matter, each repeats its own time.
"""

import random
import statistics
import sys

import torch
from torch.profiler import ProfilerActivity, profile

SHAPES = ((8, 14336), (256, 2048), (64, 1024, 512))
PADS = (512, 4096, 1 << 18, 1 << 20, 3 << 20, 12 << 20, 34 << 20)
PLACES, ROUNDS, CALLS = 12, 2, 24


def placed(shape: tuple[int, ...], chance: random.Random) -> list[torch.Tensor]:
    """Two operands and a result, behind memory that keeps them from where others lie; it is kept with them."""
    sizes = [chance.choice(PADS) for _ in range(chance.randrange(1, 6))]
    pads = [torch.empty(size, dtype=torch.int8, device="cuda") for size in sizes]
    a, b = torch.randn(shape, device="cuda"), torch.randn(shape, device="cuda")
    return [a, b, torch.empty_like(a), *pads]


def median_ns(tensors: list[torch.Tensor], scratch: torch.Tensor) -> int:
    """Median device time of an addition at this place, nanoseconds."""
    a, b, c = tensors[:3]
    for _ in range(3):
        torch.add(a, b, out=c)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for number in range(CALLS):
            scratch.fill_(number)
            torch.add(a, b, out=c)
        torch.cuda.synchronize()
    events = seen.profiler.kineto_results.events()
    return round(statistics.median(event.duration_ns() for event in events if "add" in event.name().lower()))


def main(seed: int) -> None:
    """Print the table of one process."""
    chance, scratch = random.Random(seed), torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    for shape in SHAPES:
        places = [placed(shape, chance) for _ in range(PLACES)]
        for number in range(ROUNDS):
            times = [median_ns(tensors, scratch) for tensors in places]
            mean = statistics.mean(times)
            spread = 100 * statistics.pstdev(times) / mean
            print(f"{seed} {shape} round {number} {times} mean {mean:.0f} sd {spread:.2f} %", flush=True)
        del places
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(int(sys.argv[1]))
