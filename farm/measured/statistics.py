"""The geomean over frozen configs and its 95 % interval, from block log ratios. Pure.

A block is the unit that is independent of others: its log ratio is log(median reference time / median target
time). A config's estimate is the mean of its blocks, the geomean is exp of the mean over configs. Configs are
fixed, not sampled, so only blocks vary: with C configs, n_c blocks and block variance s_c^2 the variance of
the mean is sum(s_c^2 / n_c) / C^2.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farm.measured.student import t_quantile

CONFIDENCE = 0.95
DRAWS = 10_000
_SEED = 20261130


class Interval(NamedTuple):
    """A ratio (above 1: the target is faster) with its 95 % interval."""

    low: float
    ratio: float
    high: float


class Answer(StrEnum):
    """What an interval says about the limit."""

    PASS = "pass"  #: the whole interval reaches the limit
    FAIL = "fail"  #: the whole interval is below it
    MORE = "more"  #: open, and more blocks may be measured
    AMBIGUOUS = "ambiguous"  #: open, and no more blocks may be measured


def answer(interval: Interval, *, limit: float, blocks: int, most: int) -> Answer:
    """What follows after `blocks` blocks a config of at most `most`."""
    if interval.low >= limit:
        return Answer.PASS
    if interval.high < limit:
        return Answer.FAIL
    return Answer.MORE if blocks < most else Answer.AMBIGUOUS


def geomean(samples: Sequence[Sequence[float]]) -> Interval:
    """Geomean over configs, each the block log ratios of one config, with its interval.

    The interval covers both the t interval and the bootstrap interval: with few blocks the bootstrap is too
    narrow, with skewed ones the t interval is off to a side. Raises ValueError when there is no config, a
    config has fewer than two blocks, or a value is not finite: nothing follows from those.
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not arrays or any(array.size < 2 or not np.isfinite(array).all() for array in arrays):
        raise ValueError("a geomean needs at least one config and two finite blocks in each")
    mean = float(np.mean([array.mean() for array in arrays]))
    reach = t_reach(arrays)
    low, high = bootstrap(arrays)
    return Interval(math.exp(min(mean - reach, low)), math.exp(mean), math.exp(max(mean + reach, high)))


def t_reach(samples: Sequence[NDArray[np.float64]]) -> float:
    """Half width of the t interval of the mean over configs, in log units.

    Degrees of freedom by Welch (1947) and Satterthwaite (1946): with v_c = s_c^2 / n_c,
    (sum v_c)^2 / sum(v_c^2 / (n_c - 1)); for one config that is n - 1. Zero where no block differs.
    """
    shares = [float(sample.var(ddof=1)) / sample.size for sample in samples]
    total = sum(shares)
    if total == 0.0:
        return 0.0
    # Shares of the total, since squares of tiny variances underflow.
    freedom = 1.0 / sum((v / total) ** 2 / (s.size - 1) for v, s in zip(shares, samples, strict=True))
    return t_quantile((1 + CONFIDENCE) / 2, freedom) * math.sqrt(total) / len(samples)


def bootstrap(samples: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Percentile interval of the mean over configs, blocks drawn again within each config, in log units."""
    means = np.zeros(DRAWS)
    for index, sample in enumerate(samples):
        means += _weights(index, sample.size) @ sample
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means / len(samples), [tail, 1 - tail])
    return float(low), float(high)


@lru_cache(maxsize=128)
def _weights(index: int, blocks: int) -> NDArray[np.float64]:
    """How much each block counts in each draw, for the config at a position: shape (DRAWS, blocks), rows sum to 1.

    Positions draw independently. The draws do not depend on the measurement, so that it can be recomputed.
    """
    random = np.random.default_rng([_SEED, index, blocks])
    drawn = random.integers(0, blocks, size=(DRAWS, blocks)) + np.arange(DRAWS)[:, None] * blocks
    counts = np.bincount(drawn.ravel(), minlength=DRAWS * blocks).reshape(DRAWS, blocks)
    return counts / blocks
