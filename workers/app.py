"""The Celery app and its queue, made from settings; `python -m workers.app SETTINGS.json` is the worker.

Redis carries ids only and no results. A message that is lost, late or double does no harm: the
ledger says what a job needs, its lease says who may do it.
"""

import logging
import secrets
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import OperationalError
from celery.platforms import SecurityWarning, set_pdeathsig
from celery.signals import setup_logging, worker_ready

from farm import logs
from farm.errors import BrokerUnavailable, ConfigurationError
from farm.job import FINAL, Job
from farm.logs import Action, context
from farm.settings import Settings, drop_keys, restore
from workers.reconciler import REAP, Queue
from workers.redis_link import RedisLink
from workers.runtime import Runtime
from workers.tasks import register, task_name

_log = logging.getLogger(__name__)

#: The one queue.
QUEUE = "tilefarm"


def make_app(settings: Settings) -> Celery:
    """A Celery app without tasks. Raises ConfigurationError when no broker is known."""
    url = settings.broker.url
    if url is None:
        raise ConfigurationError("broker.url is not set and no embedded Redis was started; run `farm up`")
    app = Celery("tilefarm", broker=url, set_as_current=False, backend=None)
    app.conf.update(
        task_default_queue=QUEUE,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_publish_retry=False,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": settings.broker.visibility_timeout_s,
            "socket_connect_timeout": 5.0,
            "socket_keepalive": not url.startswith("redis+socket"),
            "health_check_interval": 10,
        },
    )
    return app


class CeleryQueue:
    """The real queue; see `workers.reconciler.Queue`."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._link = RedisLink(app.conf.broker_url)

    def waiting(self) -> tuple[str, ...]:
        """Ids of the messages that no worker has taken, next one first."""
        return self._link.waiting_ids(QUEUE)

    def enqueue(self, job: Job, after_s: float) -> None:
        """Send the message that advances a job; nothing for a final one."""
        if job.state not in FINAL:
            self._send(task_name(job.state), job.id, (job.id,), after_s)

    def enqueue_reap(self) -> None:
        """Send the message that looks for orphan boxes."""
        self._send(REAP, REAP, (), 0.0)

    def _send(self, task: str, subject: str, args: tuple[str, ...], after_s: float) -> None:
        try:
            self._app.send_task(task, args, task_id=f"{subject}/{secrets.token_hex(4)}", countdown=after_s or None)
        except OperationalError as error:
            raise BrokerUnavailable(f"Redis took no message: {error}") from error


def open_queue(settings: Settings) -> Queue:
    """The queue of the farm that these settings describe."""
    return CeleryQueue(make_app(settings))


def run_worker(settings: Settings, *, ready: Callable[[], None]) -> int:
    """Work until told to stop; the exit code. Blocks; for the worker's own process only."""
    runtime = Runtime(settings)
    app = make_app(settings)
    queue = CeleryQueue(app)

    def follow(job: Job, after_s: float) -> None:
        try:
            queue.enqueue(job, after_s)
        except BrokerUnavailable as error:
            _log.warning("%s", error, extra=context(Action.ENQUEUE_FAILED, job))

    register(app, runtime, follow)

    def announce(**_: Any) -> None:
        ready()

    worker_ready.connect(announce, weak=False)
    setup_logging.connect(_keep_logging, weak=False)
    worker = app.Worker(
        concurrency=settings.worker.concurrency or None,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _keep_logging(**_: Any) -> None:
    """Celery leaves the log alone when somebody answers this signal."""


def main(argv: list[str]) -> int:
    """Entry point: the path of dumped settings, and of a file to touch when ready."""
    settings_path, ready_path = (Path(argument) for argument in argv)
    logs.configure()
    drop_keys()
    # Boxes and mounts need root on many machines; the box's own user is another one.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    set_pdeathsig("SIGTERM")
    return run_worker(restore(settings_path.read_text(encoding="utf-8")), ready=ready_path.touch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
