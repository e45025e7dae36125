"""What says that a box's program lives. It needs nothing else of the farm: the gates take it to other machines."""

import threading
from contextlib import suppress
from pathlib import Path

HEARTBEAT_PERIOD_S = 2.0


class Heartbeat:
    """Touches a file while the box program lives; workers read its age."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._path.touch()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_PERIOD_S):
            with suppress(OSError):  # a full disk shows where something is written that counts
                self._path.touch()
