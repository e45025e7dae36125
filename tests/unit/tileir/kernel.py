"""Small kernels as Tile IR text, for tests that look at one thing."""

HEAD = "entry @k(%p: tile<ptr<f32>>, %q: tile<ptr<f32>>, %n: tile<i32>, %m: tile<i32>, %c: tile<i1>) {\n"
_PREFIX = """\
  %t = make_token : token
  %bx, %by, %bz = get_tile_block_id : tile<i32>
  %io = iota : tile<8xi32>
  %pr = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
  %pb = broadcast %pr : tile<1xptr<f32>> -> tile<8xptr<f32>>
  %qr = reshape %q : tile<ptr<f32>> -> tile<1xptr<f32>>
  %qb = broadcast %qr : tile<1xptr<f32>> -> tile<8xptr<f32>>
"""
_INTEGER = """\
  %o = offset %p, %v : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
  %st = store_ptr_tko weak %o, %zero token=%t : tile<ptr<f32>>, tile<f32> -> token
"""
_TILE = """\
  %o = offset %pb, %v : tile<8xptr<f32>>, tile<8xi32> -> tile<8xptr<f32>>
  %st = store_ptr_tko weak %o, %zeros token=%t : tile<8xptr<f32>>, tile<8xf32> -> token
"""
_CONSTANTS = """\
  %zero = constant <f32: 0.000000e+00> : tile<f32>
  %zeros = constant <f32: 0.000000e+00> : tile<8xf32>
"""


def kernel(body: str) -> str:
    """A kernel with pointers %p %q, integers %n %m, a bool %c, block ids, a token %t, tiles %io %pb %qb."""
    return HEAD + _PREFIX + _CONSTANTS + body.strip("\n") + "\n  return\n}\n"


def scalar(body: str) -> str:
    """A kernel that stores at %p + %v, where the body defines %v: tile<i32>."""
    return kernel(body.strip("\n") + "\n" + _INTEGER)


def tile(body: str) -> str:
    """A kernel that stores at %pb + %v, where the body defines %v: tile<8xi32>."""
    return kernel(body.strip("\n") + "\n" + _TILE)


def value(body: str) -> str:
    """A kernel that stores %v, where the body defines %v: tile<8xf32>."""
    store = "  %st = store_ptr_tko weak %pb, %v token=%t : tile<8xptr<f32>>, tile<8xf32> -> token\n"
    return kernel(body.strip("\n") + "\n" + store)
