"""Takes questions of boxes on a Unix socket: `python -m workers.gateway.server SETTINGS.json`.

It alone has the key. It ends when it is told to, or when whoever started it has gone (its input closes): it takes
nothing more, finishes the calls under way and keeps their answers.
"""

import asyncio
import hmac
import logging
import os
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web

from farm import logs
from farm.errors import BrokerUnavailable, ConfigurationError, FarmError
from farm.ledger import Ledger
from farm.logs import Action, context
from farm.settings import Settings, api_key, drop_keys, restore
from farm.store import FolderStore
from workers.gateway import reply as replies
from workers.gateway import request as requests
from workers.gateway.books import Books
from workers.gateway.bucket import RateBucket
from workers.gateway.place import gateway_place
from workers.gateway.probe import PROBE, probe
from workers.gateway.relay import Gone, Relay
from workers.gateway.reply import Reply
from workers.gateway.request import Refusal
from workers.gateway.upstream import Upstream
from workers.gateway.usable import models_of

_log = logging.getLogger(__name__)


class Server:
    """One gateway. Lives in one event loop."""

    def __init__(self, settings: Settings, key: str | None) -> None:
        self._settings = settings
        self._models = models_of(settings)
        self._place = gateway_place(settings.state)
        self._ledger = Ledger(settings.ledger_url)
        self._bucket = RateBucket(settings.broker.url or "", settings.gateway)
        self._upstream = Upstream(settings.gateway, key)
        self._books = Books(
            settings.gateway,
            ledger=self._ledger,
            store=FolderStore(settings.artifacts),
            models=self._models,
            place=self._place,
            key=key,
        )
        self._relay = Relay(settings.gateway, books=self._books, bucket=self._bucket, upstream=self._upstream)
        self._probe_secret = secrets.token_urlsafe(32)
        self._key = key
        self._runner: web.AppRunner | None = None
        self._site: web.UnixSite | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen."""
        _write_secret(self._place.probe_secret, self._probe_secret)
        app = web.Application(client_max_size=self._models.request_bytes)
        app.router.add_get("/health", self._health)
        app.router.add_post("/probe", self._probe)
        app.router.add_route("*", "/{path:.*}", self._messages)
        # A box that goes away is noticed: what was not yet asked for it is dropped.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        self._site = web.UnixSite(self._runner, str(self._place.socket))
        await self._site.start()
        self._place.socket.chmod(0o666)
        self._renewal = asyncio.create_task(self._relay.keep_places())
        _log.info("gateway listens", extra=context(Action.GATEWAY_STARTED, pid=os.getpid()))

    async def stop(self) -> None:
        """Take nothing more, finish what is under way."""
        if self._site is not None:
            await self._site.stop()
        await self._relay.stop()
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
        if self._runner is not None:
            await self._runner.cleanup()
        await self._upstream.close()
        self._bucket.close()
        self._ledger.close()
        _log.info("gateway ends", extra=context(Action.GATEWAY_STOPPED, pid=os.getpid()))

    async def _messages(self, request: web.Request) -> web.Response:
        if request.method != "POST" or request.path_qs != "/v1/messages":
            message = f"only POST /v1/messages is here, not {request.method} {request.path}"
            return _answer(replies.refused(Refusal(404, "not_found_error", message)))
        try:
            return _answer(await self._ask(request))
        except Gone:
            # The gateway stops: the box finds the next one by asking again.
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        except FarmError as error:
            _log.error("%s", error, extra=context(Action.GATEWAY_FAILED))
        except Exception:  # a defect here is no reason for a job to fail; it waits until somebody has looked
            _log.exception("a question could not be handled", extra=context(Action.GATEWAY_FAILED))
        return _answer(replies.park_model("the farm's gateway cannot work now", self._settings.gateway.rest_s))

    async def _ask(self, request: web.Request) -> Reply:
        headers = {name.lower(): value for name, value in request.headers.items()}
        token = requests.credential(headers).token
        who = await asyncio.to_thread(self._books.job_of, token)
        if who is None:
            return replies.unknown_token()
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            most = self._models.request_bytes
            return replies.refused(Refusal(413, "request_too_large", f"a request has at most {most} bytes"))
        asked = requests.read(body, headers, self._models)
        if isinstance(asked, Refusal):
            return replies.refused(asked)
        return await self._relay.ask(asked, who, token)

    async def _health(self, _request: web.Request) -> web.Response:
        said: dict[str, Any] = {"models": [each.id for each in self._models.models.values()]}
        try:
            said |= {"broker": True, **asdict(await asyncio.to_thread(self._bucket.look))}
        except BrokerUnavailable:
            said |= {"broker": False}
        return web.json_response(said)

    async def _probe(self, request: web.Request) -> web.Response:
        given = request.headers.get(PROBE, "")
        if not hmac.compare_digest(given.encode(), self._probe_secret.encode()):
            return _answer(replies.unknown_token())
        return web.json_response(await probe(self._upstream, self._models))


def _answer(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=dict(reply.headers))


def _write_secret(path: Path, secret: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secret)
    draft.replace(path)


async def _serve(settings: Settings, key: str | None) -> None:
    server = Server(settings, key)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # Whoever started this holds the other end; it closes when they die.
    loop.add_reader(sys.stdin.fileno(), stopping.set)
    await server.start()
    await stopping.wait()
    loop.remove_reader(sys.stdin.fileno())
    await server.stop()


def main(argv: list[str]) -> int:
    """Entry point: the path of dumped settings."""
    logs.configure()
    try:
        settings = restore(Path(argv[0]).read_text(encoding="utf-8"))
        key = api_key(settings.gateway)
        drop_keys()
        asyncio.run(_serve(settings, key))
    except ConfigurationError as error:
        _log.error("%s", error, extra=context(Action.GATEWAY_FAILED))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
