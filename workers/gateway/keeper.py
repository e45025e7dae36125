"""Keeps a gateway alive: starts the server, and again when it dies.

`python -m workers.gateway.keeper SETTINGS.json`. It and the server are the only processes that have the key. When
it dies itself, the server finishes the calls under way and ends.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from farm import logs
from farm.errors import ConfigurationError
from farm.logs import Action, context
from farm.settings import Settings, restore, with_keys
from workers.gateway.place import gateway_place
from workers.processes import python_module, record, recorded

_log = logging.getLogger(__name__)
#: Wait before a server that has died is started again, seconds; doubled while it goes on dying.
AGAIN_S, AGAIN_MOST_S = 0.2, 30.0
#: One that has lived for so long was well, seconds.
WELL_S = 60.0


class Keeper:
    """One gateway of this host."""

    def __init__(self, settings: Settings, settings_path: Path, environ: Mapping[str, str]) -> None:
        """`environ`: of the server, with the key."""
        self._place = gateway_place(settings.state)
        self._argv = python_module("workers.gateway.server", str(settings_path))
        self._environ = environ
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> int:
        """Until a signal says stop, or the settings are wrong; the exit code. Raises ConfigurationError."""
        running = recorded(self._place.process)
        if running is not None and running.pid != os.getpid():
            raise ConfigurationError(
                f"a gateway of this state folder runs already (pid {running.pid}); `farm down`"
            )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        record(self._place.process, os.getpid())
        try:
            return self._keep()
        finally:
            self._place.process.unlink(missing_ok=True)

    def _keep(self) -> int:
        wait_s = AGAIN_S
        while True:
            begun = time.monotonic()
            # The pipe's other end is never written: it closes when we are gone, however that happens.
            self._child = subprocess.Popen(self._argv, stdin=subprocess.PIPE, env=dict(self._environ))
            if self._stopping:
                self._child.terminate()
            code = self._child.wait()
            if self._stopping:
                return 0
            if code == ConfigurationError.exit_code:
                return code
            _log.error("the gateway died", extra=context(Action.GATEWAY_RESTARTED, code=code))
            wait_s = AGAIN_S if time.monotonic() - begun > WELL_S else min(AGAIN_MOST_S, 2 * wait_s)
            end = time.monotonic() + wait_s
            while not self._stopping and time.monotonic() < end:
                time.sleep(0.05)
            if self._stopping:
                return 0

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()


def main(argv: list[str]) -> int:
    """Entry point: the path of dumped settings."""
    logs.configure()
    path = Path(argv[0])
    try:
        return Keeper(restore(path.read_text(encoding="utf-8")), path, with_keys()).run()
    except ConfigurationError as error:
        _log.error("%s", error, extra=context(Action.GATEWAY_FAILED))
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
