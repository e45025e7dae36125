"""A worker's service: keeps the Celery worker alive, reconciles, and does an embedded farm's chores.

`python -m workers.service SETTINGS.json` runs it in a process of its own. The Celery worker is its
child and in its process group, so that one signal to the group ends both.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from farm import logs
from farm.errors import FarmError
from farm.ledger import Ledger
from farm.logs import Action, context
from farm.settings import Settings, drop_keys, restore
from workers.app import open_queue
from workers.leases import host_prefix, owner_name
from workers.processes import python_module
from workers.reconciler import Queue, Reconciler

_log = logging.getLogger(__name__)

#: Is called at each look; True ends the service.
Chore = Callable[[], bool]


class Hearing:
    """Tells a deaf worker from a busy one: the same message lies next in the queue while hands are free."""

    def __init__(self, deaf_s: float) -> None:
        self._deaf_s = deaf_s
        self._message: str | None = None
        self._since = 0.0

    def deaf(self, waiting: tuple[str, ...], *, hands_free: bool, now: float) -> bool:
        """Whether the next message has lain there for `deaf_s` seconds although it could be taken."""
        first = waiting[0] if waiting else None
        if first is None or first != self._message or not hands_free:
            self._message, self._since = first, now
            return False
        return now - self._since >= self._deaf_s

    def forget(self) -> None:
        """Begin anew, after a restart."""
        self._message = None


class Service:
    """One machine's worker and reconciler."""

    def __init__(self, settings: Settings, settings_path: Path, *, chores: tuple[Chore, ...] = ()) -> None:
        self._settings = settings
        self._argv = python_module("workers.app", str(settings_path), str(settings_path.with_suffix(".ready")))
        self._chores = chores
        self._ledger = Ledger(settings.ledger_url)
        self._queue: Queue = open_queue(settings)
        self._reconciler = Reconciler(
            self._ledger, self._queue, settings.worker, owner=owner_name(), clock=time.time
        )
        self._hearing = Hearing(settings.worker.deaf_s)
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> None:
        """Serve until a signal or a chore says stop; then let running tasks finish within their grace."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._child = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL)
        _log.info("worker service runs", extra=context(Action.SERVICE_STARTED, pid=os.getpid()))
        try:
            while not self._stopping:
                self._look()
                end = time.monotonic() + self._settings.worker.reconcile_s
                while not self._stopping and time.monotonic() < end:
                    time.sleep(min(0.1, self._settings.worker.reconcile_s))
        finally:
            self._stop_child()
            _log.info("worker service ends", extra=context(Action.SERVICE_STOPPED, pid=os.getpid()))

    def _look(self) -> None:
        try:
            if any(chore() for chore in self._chores):
                self._stopping = True
                return
            self._keep_child()
            self._reconciler.look()
        except (FarmError, OSError) as error:  # a full disk or a missing file passes; the service stays
            _log.warning("%s", error, extra=context(Action.RECONCILE_FAILED))

    def _keep_child(self) -> None:
        if self._child is not None and self._child.poll() is None:
            hands = self._settings.worker.concurrency or os.cpu_count() or 1
            hands_free = self._ledger.live_leases(host_prefix()) < hands
            if not self._hearing.deaf(self._queue.waiting(), hands_free=hands_free, now=time.monotonic()):
                return
            _log.error("the worker takes no messages", extra=context(Action.WORKER_RESTARTED))
            self._child.kill()
            self._child.wait()
        else:
            _log.error("the worker process died", extra=context(Action.WORKER_RESTARTED))
        self._hearing.forget()
        self._child = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL)

    def _stop_child(self) -> None:
        if self._child is None or self._child.poll() is not None:
            return
        self._child.terminate()
        try:
            self._child.wait(self._settings.worker.stop_grace_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True


def main(argv: list[str]) -> int:
    """Entry point: the path of dumped settings."""
    path = Path(argv[0])
    logs.configure()
    drop_keys()
    Service(restore(path.read_text(encoding="utf-8")), path).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
