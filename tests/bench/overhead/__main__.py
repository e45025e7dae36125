"""The farm's cost of a job that does nothing, against a shell script: `python -m tests.bench.overhead [PAIRS]`.

Pairs of one job and one run of the script, in turn, on the same repo, engine, image and box program. The
farm's job has two boxes (pipeline and gate), a leak scan, a capture and a ledger; the script has one box.
"""

import os
import statistics
import sys

from tests.bench.overhead.scene import scene

PAIRS = 7
#: What a job may take: this often the script's time, and this much on top, seconds.
FACTOR, EXTRA_S = 1.5, 0.5


def main(pairs: int) -> int:
    """0 if the median job keeps to the limit."""
    farm, script = [], []
    with scene(os.environ) as made:
        made.farm_s(), made.script_s()  # neither counts: images, indexes and caches fill
        for number in range(pairs):
            farm.append(made.farm_s())
            script.append(made.script_s())
            print(f"{number + 1:2}: farm {farm[-1]:.2f} s, script {script[-1]:.2f} s", flush=True)
    ours, theirs = statistics.median(farm), statistics.median(script)
    limit = FACTOR * theirs + EXTRA_S
    good = ours <= limit
    print(
        f"{pairs} pairs: farm {ours:.2f} s, script {theirs:.2f} s, ratio {ours / theirs:.2f}; "
        f"limit {FACTOR} x script + {EXTRA_S} s = {limit:.2f} s: {'pass' if good else 'FAIL'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS))
