import json

import pytest

from drivers.scenarios import wire
from drivers.scenarios.scenario import Turn
from drivers.scenarios.tokens import Counted
from workers.gateway.outcome import Heard, Next, Strain, classify
from workers.gateway.stream import Reading

COUNTED = Counted(input=1, write_5m=0, write_1h=0, read=0)
WHOLE = b"".join(wire.events(wire.answer(Turn(text="hello"), number=1, model="m", counted=COUNTED, max_tokens=9)))


def stream(data: bytes, problem: str | None = None) -> Heard:
    reading = Reading()
    reading.feed(data)
    return Heard(status=200, body=data, reading=reading, problem=problem)


def error(status: int, kind: str = "some_error", message: str = "no", **headers: str) -> Heard:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return Heard(status=status, body=body, headers={name.replace("_", "-"): v for name, v in headers.items()})


@pytest.mark.parametrize(
    ("heard", "further", "strain"),
    [
        (stream(WHOLE), Next.KEEP, Strain.FINE),
        (stream(WHOLE, "cut"), Next.AGAIN, Strain.BROKEN),
        (stream(WHOLE[:-5]), Next.AGAIN, Strain.BROKEN),
        (stream(b"<html>please log in</html>"), Next.AGAIN, Strain.BROKEN),
        (stream(WHOLE[:200] + b"\n\n" + wire.error_event("overloaded_error")), Next.AGAIN, Strain.OVERLOADED),
        (stream(wire.error_event("rate_limit_error")), Next.AGAIN, Strain.LIMITED),
        (stream(wire.error_event("api_error")), Next.AGAIN, Strain.BROKEN),
        (stream(wire.error_event("invalid_request_error")), Next.REFUSE, Strain.FINE),
        (Heard(status=None, problem="cut"), Next.AGAIN, Strain.BROKEN),
        (error(400), Next.REFUSE, Strain.FINE),
        (error(400, message="Your credit balance is too low"), Next.PARK, Strain.NONE),
        (error(401), Next.PARK, Strain.NONE),
        (error(402), Next.PARK, Strain.NONE),
        (error(403), Next.REFUSE, Strain.FINE),
        (error(404), Next.REFUSE, Strain.FINE),
        (Heard(status=404, body=b"<h1>not found</h1>"), Next.AGAIN, Strain.BROKEN),
        (Heard(status=302), Next.AGAIN, Strain.BROKEN),
        (error(408), Next.AGAIN, Strain.BROKEN),
        (error(413), Next.REFUSE, Strain.FINE),
        (error(413, x_should_retry="true"), Next.AGAIN, Strain.BROKEN),
        (error(429), Next.AGAIN, Strain.LIMITED),
        (Heard(status=429, body=b"slow down"), Next.AGAIN, Strain.LIMITED),
        (error(429, x_should_retry="false"), Next.PARK, Strain.LIMITED),
        (error(500), Next.AGAIN, Strain.BROKEN),
        (error(503), Next.AGAIN, Strain.OVERLOADED),
        (error(529), Next.AGAIN, Strain.OVERLOADED),
    ],
)
def test_what_follows_from_a_try(heard: Heard, further: Next, strain: Strain) -> None:
    found = classify(heard)
    assert (found.next, found.strain) == (further, strain)
    assert bool(found.why) == (further is not Next.KEEP)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3.0), ("0.5", 0.5), ("-1", None), ("Tue, 1 Dec", None), ("1e9", 86_400.0), ("nan", None)],
)
def test_retry_after_is_believed_in_reason(text: str, seconds: float | None) -> None:
    assert classify(error(429, retry_after=text)).retry_after_s == seconds
