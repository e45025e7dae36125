"""Stage B's program: a cuTile Python kernel, by its source and its traced signatures, as cuTile Rust."""

from farm.recipes.cutile_rs.kernel.translate import Translation, translate

__all__ = ["Translation", "translate"]
