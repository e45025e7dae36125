"""Log lines: JSON with an `action` and the job's context, or text on a terminal."""

import json
import logging
import sys
import time
from enum import StrEnum
from typing import Any, TextIO

from farm.job import Job


class Action(StrEnum):
    """What a log line reports; lines can be matched on it."""

    STEP_SKIPPED = "step_skipped"  #: a message met a live lease, a final job or a wait
    STEP_TAKEN = "step_taken"  #: a step ended and was written
    STEP_FAILED = "step_failed"  #: a step failed
    FENCE_STALE = "fence_stale"  #: a step's result was refused, another worker has the job
    ENQUEUE_FAILED = "enqueue_failed"  #: Redis did not take a message; the reconciler will send it
    LISTENER_FAILED = "listener_failed"  #: a listener raised; the job is not concerned
    HEARTBEAT_FAILED = "heartbeat_failed"  #: a lease could not be renewed this time
    RECONCILED = "reconciled"  #: jobs were enqueued that had stood still
    RECONCILE_FAILED = "reconcile_failed"  #: the reconciler could not look this time
    REAPED = "reaped"  #: orphan boxes were removed
    CLEANUP_FAILED = "cleanup_failed"  #: something could not be removed this time; reaping will find it
    SERVICE_STARTED = "service_started"  #: a worker service began
    SERVICE_STOPPED = "service_stopped"  #: a worker service ended
    WORKER_RESTARTED = "worker_restarted"  #: the worker process had died or was deaf
    BROKER_RESTARTED = "broker_restarted"  #: the embedded Redis had died
    GATEWAY_STARTED = "gateway_started"  #: the gateway takes questions
    GATEWAY_STOPPED = "gateway_stopped"  #: the gateway ends
    GATEWAY_RESTARTED = "gateway_restarted"  #: the gateway had died
    GATEWAY_FAILED = "gateway_failed"  #: the gateway could not do its part; the box is told to come back
    MODEL_ASKED = "model_asked"  #: a try to get an answer from the model API ended
    MODEL_PARKED = "model_parked"  #: a question got no answer, its job is to be parked


def context(action: Action, job: Job | None = None, /, **more: Any) -> dict[str, Any]:
    """The `extra` of a log line."""
    return {"action": action.value, "farm": {**(job.log_context() if job else {}), **more}}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "at": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "action": getattr(record, "action", None),
            **getattr(record, "farm", {}),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def configure(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send the process's log to a stream, stderr by default. For entry points only."""
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    if target.isatty():
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    else:
        handler.setFormatter(JsonFormatter())
    logging.getLogger("celery").setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
