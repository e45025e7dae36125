"""Folders that a command makes and keeps only if it succeeds.

They are built beside the place where they will belong, on the same disk, and moved there at the end. What a
refused command made goes away again, with every folder above it that was not there before.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from farm.errors import ConfigurationError


class Tentative:
    """New folders of one state folder, by the place where they will lie."""

    def __init__(self, state: Path, *, beside: tuple[Path, ...] = ()) -> None:
        """`beside` are small files of the state folder that are made with it and go with it."""
        self._state = state
        self._beside = beside
        self._new = [path for path in (state, *state.parents) if not path.exists()]
        self._room: Path | None = None
        self._places: dict[Path, Path] = {}

    def at(self, place: Path) -> Path:
        """Where the folder is now."""
        return self._places.get(place, place)

    def begin(self, place: Path) -> Path:
        """Where to build the folder that will lie at `place`. Raises ConfigurationError."""
        if self._room is None:
            try:
                self._state.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigurationError(
                    f"the state folder {self._state} cannot be used: {error.strerror}; set TILEFARM_STATE"
                ) from error
            self._room = Path(tempfile.mkdtemp(prefix="new-", dir=self._state))
        # The name stays: locks and messages are made from it.
        self._places[place] = self._room / str(len(self._places)) / place.name
        return self._places[place]

    def keep(self) -> None:
        """Move everything to its place; what somebody else put there meanwhile stays."""
        for place, now in self._places.items():
            if now.exists():
                with locked(place.with_suffix(".lock")):
                    _move(now, place)
        self._clear()

    def discard(self) -> None:
        """Remove everything, and the state folder too if it was not there and holds nothing else."""
        self._clear()
        if not self._new or not self._state.exists():
            return
        if {path.name for path in self._state.iterdir()} <= {path.name for path in self._beside}:
            for path in self._beside:
                path.unlink(missing_ok=True)
            for folder in self._new:
                try:
                    folder.rmdir()
                except OSError:
                    return

    def _clear(self) -> None:
        self._places.clear()
        if self._room is not None:
            shutil.rmtree(self._room, ignore_errors=True)
            self._room = None


def _move(now: Path, place: Path) -> None:
    try:
        now.rename(place)
    except OSError:
        if not place.exists():
            raise


class Keeps(Protocol):
    """What was fetched for the first time and belongs to no one yet."""

    def keep(self) -> None:
        """Keep it."""

    def discard(self) -> None:
        """Leave nothing of it."""


@contextmanager
def tentatively(made: Keeps) -> Iterator[None]:
    """Keep what was fetched for the first time if the block succeeds, else leave nothing of it."""
    try:
        yield
    except BaseException:
        made.discard()
        raise
    made.keep()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; it is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
