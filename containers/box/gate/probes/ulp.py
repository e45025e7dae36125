"""Units in the last place: how far two numbers of an output's type are apart."""

import torch

#: Of float32's or float64's eps: an element is not held to finer units than this times its row's median.
SMALL = 2.0**-2
#: The same, of float32's eps, for coarser types, whose sums are made in float32.
SMALL_FOR_COARSE = 2.0**3
#: Elements that a last axis has at least for its median to say something.
ROW = 8


def spacing(magnitude: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance between neighbouring numbers of `dtype` at `magnitude` (float64, not negative, finite).

    For a floating type with eps = 2^-p: 2^(floor(log2 m) - p), not below the smallest subnormal, and above the
    largest number that of its binade. For integers and bool: 1. Both from IEEE 754's definition of a binade.
    """
    if not dtype.is_floating_point:
        return torch.ones_like(magnitude)
    info = torch.finfo(dtype)
    _, exponent = torch.frexp(magnitude.clamp(min=info.smallest_normal, max=info.max))
    return _power_of_two(exponent - 1) * info.eps


def unit(oracle: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The unit in which errors against `oracle` (float64, any shape) are counted.

    `spacing` at the oracle's magnitude, but not below a floor that goes by m, the median magnitude of the finite
    elements along the last axis (of all elements, where that axis is shorter than ROW): eps x SMALL x m for
    float32 and float64, and for coarser types 2^-23 x SMALL_FOR_COARSE x m, which leaves float16 its own spacing
    down to m / 1000 and bfloat16 to m / 8000.
    The floor is for sums: where terms cancel, the result is small, and its error is that of the terms.
    """
    magnitude = torch.where(oracle.isfinite(), oracle.abs(), 0.0)
    own = spacing(magnitude, dtype)
    if not dtype.is_floating_point or oracle.dim() == 0 or oracle.numel() == 0:
        return own
    single = torch.finfo(torch.float32).eps
    eps = torch.finfo(dtype).eps
    floor = eps * SMALL if eps <= single else single * SMALL_FOR_COARSE
    finite = torch.where(oracle.isfinite(), oracle.abs(), torch.nan)
    median = finite.nanmedian() if oracle.shape[-1] < ROW else finite.nanmedian(dim=-1, keepdim=True).values
    median = median.nan_to_num(0.0)
    return torch.maximum(own, median * floor)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """The values in float64: exact, but for integers beyond 2^53. A complex tensor gets an axis of 2."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.float32)
    return tensor.to(torch.float64)


def _power_of_two(exponent: torch.Tensor) -> torch.Tensor:
    """2^exponent in float64, exactly, for normal results: made of its bits, since exp2 may round."""
    return ((exponent.to(torch.int64) + 1023) << 52).view(torch.float64)
