"""Simulated measurements with a known ratio: how often the gate is right.

    python -m tests.unit.farm.measured.simulation 10000 lognormal
    python -m tests.unit.farm.measured.simulation 1000 drifting heavy spiked uneven placed unmoved
    python -m tests.unit.farm.measured.simulation control

print the shares of docs/results/statistics.md. Protocol: 8 ABBA blocks of two calls a slot, doubled up to 32.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from farm.measured.model import Plan
from farm.measured.statistics import Answer, Interval, answer, geomean, t_reach

PLAN = Plan()
MOST = PLAN.blocks * PLAN.times
SLOTS, REPEATS = 4, 2
NOISE = 0.03
#: Log times of calls: draws random numbers of shape (configs, blocks, slots, repeats).
Noise = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]


def lognormal(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """3 % a call."""
    return random.normal(0.0, NOISE, shape)


def drifting(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """3 % a call on a walk of 0.5 % a slot that both sides share, rising 5 % over 32 blocks."""
    walk = np.cumsum(random.normal(0.0, 0.005, shape[:3]).reshape(shape[0], -1), axis=1).reshape(shape[:3])
    rise = np.linspace(0.0, 0.05, shape[1] * SLOTS).reshape(1, shape[1], SLOTS)
    return lognormal(random, shape) + (walk + rise)[..., None]


def heavy(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Student's t with 3 degrees of freedom, scaled to a standard deviation of 3 %."""
    return random.standard_t(3, shape) * NOISE / np.sqrt(3.0)


def spiked(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """3 % a call, and one call in twenty takes half as long again."""
    return lognormal(random, shape) + np.log(1.5) * (random.random(shape) < 0.05)


def placed(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """3 % a call, and 2.5 % for where each side's tensors lie in a block."""
    where = random.normal(0.0, 0.025, (*shape[:2], 2, 1))
    return lognormal(random, shape) + where[:, :, (0, 1, 1, 0)]


def unmoved(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The same where nothing moves between blocks: what the gate does not do."""
    where = random.normal(0.0, 0.025, (shape[0], 1, 2, 1))
    return lognormal(random, shape) + where[:, :, (0, 1, 1, 0)]


def uneven(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Noise of a config's own, 1 to 6 %."""
    own = random.uniform(0.01, 0.06, (shape[0], 1, 1, 1))
    return random.normal(0.0, 1.0, shape) * own


NOISES: dict[str, Noise] = {f.__name__: f for f in (lognormal, drifting, heavy, spiked, placed, uneven)}


def log_ratios(random: np.random.Generator, noise: Noise, ratio: float, configs: int) -> NDArray[np.float64]:
    """Block log ratios of shape (configs, MOST); the target takes 1 / ratio of the reference's time."""
    times = noise(random, (configs, MOST, SLOTS, REPEATS))
    reference = times[:, :, (0, 3)].reshape(configs, MOST, -1)
    target = times[:, :, (1, 2)].reshape(configs, MOST, -1) - np.log(ratio)
    # The median of exponentials of an even number of values is not the exponential of their median.
    return np.log(np.median(np.exp(reference), axis=-1) / np.median(np.exp(target), axis=-1))


def settle(values: NDArray[np.float64]) -> tuple[Answer, int]:
    """The gate's last word on one measurement, and after how many blocks."""
    said, tried = Answer.MORE, PLAN.blocks
    while True:
        said = answer(_t_alone(values[:, :tried]), limit=PLAN.limit, blocks=tried, most=MOST)
        if said in {Answer.PASS, Answer.FAIL}:
            # The whole interval covers the t interval, so that one which is open needs no bootstrap.
            said = answer(geomean(values[:, :tried].tolist()), limit=PLAN.limit, blocks=tried, most=MOST)
        if said is not Answer.MORE:
            return said, tried
        tried *= 2


def _t_alone(values: NDArray[np.float64]) -> Interval:
    middle, reach = float(values.mean()), t_reach(list(values))
    return Interval(math.exp(middle - reach), math.exp(middle), math.exp(middle + reach))


def shares(noise: Noise, ratio: float, configs: int, draws: int, seed: int = 1) -> Counter[Answer]:
    """How often the gate said what."""
    random = np.random.default_rng([seed, configs, round(ratio * 1000)])
    return Counter(settle(log_ratios(random, noise, ratio, configs))[0] for _ in range(draws))


def uneven_controls(sigma: float, configs: int, draws: int) -> float:
    """How often an A/A control of two equal sides is further than 1 % from even at every look."""
    random = np.random.default_rng([2, configs, round(sigma * 1000)])
    lost = 0
    for _ in range(draws):
        values = log_ratios(random, lambda r, shape: r.normal(0.0, sigma, shape), 1.0, configs)
        looks = [abs(np.expm1(values[:, : PLAN.blocks * k].mean())) for k in (1, 2, 4)]
        lost += min(looks) > PLAN.control_within
    return lost / draws


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["control"]:
        print("| noise of a call | configs | control not even |\n|---|---|---|")
        for sigma in (0.01, 0.02, 0.03, 0.05):
            for configs in (1, 8, 30):
                print(f"| {sigma:.0%} | {configs} | {uneven_controls(sigma, configs, 10_000):.2%} |")
        return
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    names = sys.argv[2:] or list(NOISES)
    print("| noise | true ratio | configs | draws | pass | fail | ambiguous |\n|---|---|---|---|---|---|---|")
    for name in names:
        for ratio in (1.0, 0.97, 0.95, 0.93):
            for configs in (1, 8, 30):
                said = shares({**NOISES, "unmoved": unmoved}[name], ratio, configs, draws)
                text = " | ".join(
                    f"{said[kind] / draws:.2%}" for kind in (Answer.PASS, Answer.FAIL, Answer.AMBIGUOUS)
                )
                print(f"| {name} | {ratio} | {configs} | {draws} | {text} |", flush=True)


if __name__ == "__main__":
    main()
