"""Time to read and compare a pair of Tile IR texts: `python -m tests.bench.tileir FOLDER`.

FOLDER holds `NAME-reference.mlir` beside `NAME-candidate.mlir`, or the same with a dot. Prints
milliseconds of processor time: the median of the pairs, the slowest, and the one with the most lines.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from farm.tileir import compare, parse

ROUNDS = 5
#: What a pair may take, ms: the median, and the largest kernel.
MEDIAN_MS = 50.0
LARGEST_MS = 1000.0


def pairs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, reference and candidate text of each pair."""
    for reference in sorted(folder.glob("*reference.mlir")):
        candidate = reference.with_name(reference.name.replace("reference", "candidate"))
        yield reference.name, reference.read_text(), candidate.read_text()


def measure(reference: str, candidate: str) -> float:
    """The least time of a few rounds, ms."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        compare(parse(reference), parse(candidate))
        times.append((time.process_time() - start) * 1e3)
    return min(times)


def main(folder: Path) -> int:
    """0 if the median and the largest are within their limits."""
    found = [(measure(ours, theirs), name, ours.count("\n")) for name, ours, theirs in pairs(folder)]
    if not found:
        print(f"no pairs in {folder}")
        return 2
    median = statistics.median(time_ms for time_ms, _, _ in found)
    slowest = max(found)
    largest = max(found, key=lambda item: item[2])
    print(f"{len(found)} pairs: median {median:.1f} ms (limit {MEDIAN_MS:.0f})")
    print(
        f"slowest {slowest[1]} {slowest[0]:.1f} ms; largest {largest[1]}, {largest[2]} lines, {largest[0]:.1f} ms"
    )
    return 0 if median <= MEDIAN_MS and slowest[0] <= LARGEST_MS else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
