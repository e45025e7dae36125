"""Kernels whose promises and types depend on what a launch passes."""

import cuda.tile as ct


@ct.kernel
def single_elements(x, y, TILE: ct.Constant[int]):
    row = ct.bid(0)
    columns = ct.arange(TILE, dtype=ct.int32)
    total = ct.sum(ct.gather(x, (row, columns)).astype(ct.float32))
    old = ct.gather(y, (row, 0)).astype(ct.float32)
    ct.scatter(y, (row, 0), (old + total).astype(y.dtype))


@ct.kernel
def whole_numbers(x, y, TILE: ct.Constant[int]):
    index = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    value = ct.gather(x, index, padding_value=4)
    ct.scatter(y, index, (value * 16 + 8) * 3 - ct.minimum(value, 7) * 24)


@ct.kernel
def copied_tiles(x, y, ROWS: ct.Constant[int], TILE: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (i, j), ct.load(x, (i, j), (ROWS, TILE)))


@ct.kernel
def counted_tiles(x, y, TILE: ct.Constant[int]):
    row = ct.bid(0)
    total = ct.full((1, TILE), 0, dtype=ct.float32)
    for j in range(ct.num_tiles(x, axis=-1, shape=(1, TILE))):
        total += ct.load(x, index=(row, j), shape=(1, TILE), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(y, index=(row,), tile=ct.max(total, axis=1))


@ct.kernel
def padded_rows(x, y, TILE: ct.Constant[int]):
    row = ct.bid(0)
    columns = ct.arange(TILE, dtype=ct.int32)
    value = ct.gather(x, (row, columns), padding_value=-float("inf")).astype(ct.float32)
    power = ct.exp(value - ct.max(value, 0, keepdims=True))
    ct.scatter(y, (row, columns), (power / ct.sum(power, 0, keepdims=True)).astype(y.dtype))


@ct.kernel
def picked_rows(table, index, y, TILE: ct.Constant[int]):
    token = ct.bid(0)
    columns = ct.arange(TILE, dtype=ct.int32)
    row = ct.gather(index, token)
    ct.scatter(y, (token, columns), ct.gather(table, (row, columns)))


@ct.kernel
def chosen_values(x, wanted, y, value: float, TILE: ct.Constant[int]):
    index = ct.bid(0) * TILE + ct.arange(TILE, dtype=ct.int32)
    chosen = ct.where(ct.gather(wanted, index), value, ct.gather(x, index).astype(ct.float32))
    ct.scatter(y, index, chosen.astype(y.dtype))


@ct.kernel
def two_rows(x, y, TILE: ct.Constant[int]):
    row = ct.bid(0)
    upper, lower = ct.load(x, (2 * row, 0), (1, TILE)), ct.load(x, (2 * row + 1, 0), (1, TILE))
    ct.store(y, (row, 0), ct.maximum(upper, lower))
