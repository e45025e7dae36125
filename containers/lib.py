"""The packages `farm` and `containers` as a box gets them: a folder named by its content, made once.

Only Python files travel: native sources, images and the toolchain's lock are of no use inside.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from containers.toolchain.parts import key_of, publish

PACKAGES = ("farm", "containers")


def lib_folder(store: Path, source: Path | None = None) -> Path:
    """`store/<key>` holding both packages; `source` is the folder that has them, by default our own."""
    origin = source or Path(__file__).resolve().parent.parent
    files = tuple(_files(origin))
    key = key_of(part for name in files for part in (str(name).encode(), (origin / name).read_bytes()))

    def make(folder: Path) -> None:
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin / name, folder / name)

    return publish(store / key, make)


def _files(origin: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((origin / package).rglob("*.py")):
            inside = path.relative_to(origin)
            if not {"native", "_data", "target"}.intersection(inside.parts):
                yield inside
