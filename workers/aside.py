"""Cleaning up beside the steps: what no later step waits for, and what `reap` finds where it was cut short."""

import logging
import threading
from collections.abc import Callable

from farm.errors import FarmError
from farm.logs import Action, context

_log = logging.getLogger(__name__)


def aside(what: Callable[[], object]) -> threading.Thread:
    """Do it in a thread of its own, which the end of the process waits for; a FarmError is logged."""
    thread = threading.Thread(target=_do, args=(what,), name="aside")
    thread.start()
    return thread


def _do(what: Callable[[], object]) -> None:
    try:
        what()
    except FarmError as error:
        _log.warning("%s", error, extra=context(Action.CLEANUP_FAILED))
