"""Student's t distribution, for intervals over few blocks. Standard library alone."""

import math
from statistics import NormalDist

_TINY = 1e-300
_CLOSE = 1e-14


def t_quantile(probability: float, freedom: float) -> float:
    """The value that Student's t with `freedom` (> 0, need not be whole) degrees exceeds with 1 - probability.

    Newton's method on the distribution function from the normal quantile. The function is concave above zero
    and the normal quantile lies below the root, so every step stays below it and none overshoots.
    Raises ValueError for a probability outside (0, 1) or freedom not above zero.
    """
    if not 0.0 < probability < 1.0 or not freedom > 0.0:
        raise ValueError(f"no quantile for probability {probability} with {freedom} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    value = NormalDist().inv_cdf(probability)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    for _ in range(200):
        density = scale * (1 + value * value / freedom) ** (-(freedom + 1) / 2)
        step = (probability - t_below(value, freedom)) / density
        value += step
        if abs(step) <= _CLOSE * max(1.0, abs(value)):
            break
    return value


def t_below(value: float, freedom: float) -> float:
    """Probability that Student's t is at most `value`: 1 - I(v / (v + t^2); v / 2, 1 / 2) / 2 for t >= 0."""
    tail = 0.5 * _beta_share(freedom / 2, 0.5, freedom / (freedom + value * value))
    return 1.0 - tail if value >= 0 else tail


def _beta_share(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I(x; a, b), for x in [0, 1] (DLMF 8.17)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction DLMF 8.17.22, evaluated from the front by Lentz' method."""
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away(1.0 + term * d)
            c = _away(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
