"""A lock between processes of one machine that ends with its holder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class FileLock:
    """An advisory lock on a file; not to be shared between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    @property
    def taken(self) -> bool:
        """Whether we hold it."""
        return self._file is not None

    def take(self) -> bool:
        """Take it if it is free; whether we hold it now."""
        if self._file is not None:
            return True
        file = self._path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for it and hold it during a block."""
        with self._path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
