"""One try to get an answer from the model API. The only place where the key is sent."""

import asyncio
import secrets
import time

import aiohttp

from farm.settings import Gateway
from workers.gateway.outcome import Heard
from workers.gateway.stream import Reading

#: Longest that a connection may take, seconds.
CONNECT_S = 30.0
#: Largest answer that is read, bytes.
LARGEST = 64 << 20
_KEPT_HEADERS = ("request-id", "retry-after", "x-should-retry", "content-type")


class Upstream:
    """The API behind one URL. Made and closed in an event loop."""

    def __init__(self, settings: Gateway, key: str | None) -> None:
        self._url = f"{settings.url.rstrip('/')}/v1/messages"
        self._key = key
        self._settings = settings
        limits = aiohttp.ClientTimeout(
            total=settings.call_limit_s,
            sock_connect=CONNECT_S,
            sock_read=settings.silence_s,
            ceil_threshold=3600.0,
        )
        # Bytes stay as they come: nothing is decompressed, no other address is followed with the key.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=limits, auto_decompress=False, trust_env=True
        )

    async def call(self, body: bytes, version: str, *, bearer: bool) -> Heard:
        """What comes back; every failure is in it, none is raised."""
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "anthropic-version": version,
            "content-type": "application/json",
            "user-agent": "tilefarm",
        }
        if self._key is not None:
            headers |= {"authorization": f"Bearer {self._key}"} if bearer else {"x-api-key": self._key}
        begun = time.monotonic()
        got = bytearray()
        reading = Reading()
        status: int | None = None
        said: dict[str, str] = {}
        problem: str | None = None
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
                said = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
                async for piece in response.content.iter_any():
                    got += piece
                    if status == 200:
                        reading.feed(piece)
                    if len(got) > LARGEST:
                        problem = f"the answer is longer than {LARGEST >> 20} MiB"
                        break
        except TimeoutError:
            waited = time.monotonic() - begun
            if waited >= self._settings.call_limit_s:
                problem = f"the answer was not whole after {self._settings.call_limit_s:g} s"
            else:
                problem = f"the API said nothing for {self._settings.silence_s:g} s"
        except (aiohttp.ClientError, ConnectionError, OSError) as error:
            problem = f"the connection broke: {type(error).__name__}" if status else _unreachable(error)
        if status is not None and status != 200 and problem is not None:
            status = None
        said.setdefault("request-id", f"farm-{secrets.token_hex(12)}")
        data = bytes(got)
        if self._key is not None and self._key.encode() in data:
            # An API never says it; something between could, and boxes are not to read it.
            data, status, problem = b"", None, "the answer held the farm's key and was thrown away"
        return Heard(
            status=status,
            headers=said,
            body=data,
            reading=reading if status == 200 else None,
            problem=problem,
            seconds=time.monotonic() - begun,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await asyncio.sleep(0)


def _unreachable(error: BaseException) -> str:
    below = getattr(error, "os_error", None)
    reason = below.strerror if isinstance(below, OSError) and below.strerror else type(error).__name__
    return f"the API cannot be reached: {reason}"
