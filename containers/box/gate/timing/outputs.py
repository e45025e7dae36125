"""What a call gave back: plain tensors with memory, and a fingerprint of each. Functions are kept from before."""

from typing import Any

import torch

from containers.box.gate.timing.tensors import leaves

#: Elements reduced at once, and the length of the fixed vectors.
_CHUNK = (1 << 21) - 3
_VECTORS = 3
_TENSOR, _PARAMETER = torch.Tensor, torch.nn.Parameter
_detach, _reshape, _to, _matmul, _isfinite, _where, _zeros, _stack = (
    torch.Tensor.detach,
    torch.Tensor.reshape,
    torch.Tensor.to,
    torch.matmul,
    torch.isfinite,
    torch.where,
    torch.zeros,
    torch.stack,
)
_sum, _numel, _data_ptr, _tolist = torch.Tensor.sum, torch.Tensor.numel, torch.Tensor.data_ptr, torch.Tensor.tolist
_no_grad, _cat, _empty = torch.no_grad, torch.cat, torch.empty


class Outputs:
    """Checks and reduces results on one device."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._vectors: torch.Tensor | None = None

    def tensors(self, result: Any) -> tuple[list[torch.Tensor], str | None]:
        """The results that are plain tensors on the device, and what is wrong with the others."""
        found = []
        for position, leaf in enumerate(leaves(result)):
            kind = type(leaf)
            if kind is not _TENSOR and kind is not _PARAMETER:
                if isinstance(leaf, _TENSOR):
                    return [], f"result {position} is a {kind.__module__}.{kind.__qualname__}, no plain tensor"
                continue
            if leaf.device.type != self._device:
                continue
            needed = 1 + sum((e - 1) * s for e, s in zip(leaf.shape, leaf.stride(), strict=True))
            held = leaf.untyped_storage().nbytes() // leaf.dtype.itemsize - leaf.storage_offset()
            if _numel(leaf) and (not _data_ptr(leaf) or needed > held):
                return [], f"result {position} has no memory for its {_numel(leaf)} elements"
            found.append(leaf)
        return found, None

    def fingerprint(self, name: str, tensor: torch.Tensor) -> dict[str, Any]:
        """As `same.Fingerprint`, for the parent."""
        with _no_grad():
            flat = _reshape(_detach(tensor), (-1,))
            if flat.dtype.is_complex:
                flat = _reshape(torch.view_as_real(flat), (-1,))
            if flat.dtype.itemsize == 1 and flat.dtype.is_floating_point:
                flat = _to(flat, torch.float32)
            vectors = self._fixed(flat.device)
            total = _zeros(_VECTORS + 2, dtype=torch.float64, device=flat.device)
            for start in range(0, _numel(flat), _CHUNK):
                values = _to(flat[start : start + _CHUNK], torch.float64)
                finite = _isfinite(values)
                values = _where(finite, values, 0.0)
                dots = _matmul(vectors[:, : _numel(values)], values)
                rest = _stack((_matmul(values, values), _sum(_to(~finite, torch.float64))))
                total += _cat((dots, rest))
            numbers = _tolist(total)
        return {
            "name": name,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "dots": numbers[:_VECTORS],
            "squares": numbers[_VECTORS],
            "special": int(numbers[_VECTORS + 1]),
        }

    def _fixed(self, device: torch.device) -> torch.Tensor:
        if self._vectors is None:
            generator = torch.Generator(device="cpu").manual_seed(20261130)
            self._vectors = _to(torch.randn(_VECTORS, _CHUNK, generator=generator), device, torch.float64)
        return self._vectors


def poison(sizes_bytes: list[int], device: str) -> None:
    """Fill the blocks that the next results will get with NaN bits: allocate their sizes, write, free."""
    held = [_empty(count, dtype=torch.uint8, device=device).fill_(0xFF) for count in sizes_bytes if count]
    del held
