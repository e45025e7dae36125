"""The source backend."""

import cuda.tile as ct
import torch
from cuda.tile.tune import exhaustive_search


@ct.kernel
def double_kernel(x, y, factor, TILE: ct.Constant[int]):
    block = ct.bid(0)
    tile = ct.load(x, index=(block,), shape=(TILE,))
    ct.store(y, index=(block,), tile=tile * ct.astype(factor, x.dtype))


def _launch(kernel, x, y, factor, tile):
    grid = (ct.cdiv(x.numel(), tile), 1, 1)
    ct.launch(torch.cuda.current_stream(), grid, kernel, (x.view(-1), y.view(-1), factor, tile))
    return y


def double(x):
    return _launch(double_kernel, x, torch.empty_like(x), 2.0, 128)


def tuned(x):
    y = torch.empty_like(x)
    found = exhaustive_search(
        [(96, 1), (64, 1), (128, 2), (256, 4)],
        torch.cuda.current_stream(),
        lambda config: (ct.cdiv(x.numel(), config[0]), 1, 1),
        double_kernel,
        lambda config: (x.view(-1), y.view(-1), 2.0, config[0]),
        lambda config: {"occupancy": config[1]},
    )
    tile, occupancy = found.best.config
    return _launch(double_kernel.replace_hints(occupancy=occupancy), x, y, 2.0, tile)


def peek(x):
    if x.sum().item() > 0:
        return double(x)
    return x


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return double(x)

    @staticmethod
    def backward(ctx, dy):
        return _launch(double_kernel, dy.contiguous(), torch.empty_like(dy), 2.0, 128)


def grad(x):
    return _Double.apply(x)
