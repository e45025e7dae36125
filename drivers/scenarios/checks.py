"""What is wrong with what came of a play. Pure; what holds for every play is asked of every play."""

from collections import Counter
from collections.abc import Iterator

from drivers.scenarios.modelserver import Call
from drivers.scenarios.play import Expect, Play
from drivers.scenarios.seen import Seen, SeenJob
from farm.job import JobState
from farm.ledger import Usage
from farm.models import ModelTable, Tokens

#: Statuses by which a server says that it is asked too much.
TOO_MUCH = frozenset({429, 529})


def problems(play: Play, seen: Seen, *, prices: ModelTable, key_sha256: str) -> tuple[str, ...]:
    """Everything that is not as it must be, in sentences."""
    return (
        *_run(play, seen),
        *(problem for job in seen.jobs for problem in _job(play.expect, job, seen)),
        *_money(seen, prices),
        *_secrets(seen, key_sha256),
        *_landed(seen),
        *(f"a tool said {word!r}" for word in play.expect.never if any(word in text for text in seen.results)),
    )


def _run(play: Play, seen: Seen) -> Iterator[str]:
    expect = play.expect
    if sorted(job.op for job in seen.jobs) != sorted(play.names):
        yield f"jobs of {', '.join(job.op for job in seen.jobs)} instead of {', '.join(play.names)}"
    if seen.acts != len(play.acts):
        yield f"{seen.acts} of {len(play.acts)} acts happened"
    if seen.files != expect.files:
        yield f"the box left {seen.files} files of the output contract instead of {expect.files}"
    if play.model is None and seen.calls:
        yield f"{len(seen.calls)} requests, and nobody was to be asked"
    whole = [call for call in seen.answered if call.fault is None]
    twice = [body for body, times in Counter(call.sha256 for call in whole).items() if times > 1]
    if twice:
        yield f"{len(twice)} questions were paid for more than once"
    broken = len(seen.answered) - len(whole)
    if broken != expect.broken:
        yield f"{broken} answers broke off instead of {expect.broken}"
    refused = sum(call.status in TOO_MUCH for call in seen.calls)
    if refused > expect.refused_share_most * len(seen.calls):
        most = f"{expect.refused_share_most:.0%}"
        yield f"{refused} of {len(seen.calls)} requests were refused; at most {most} may be"
    strange = [call for call in seen.calls if call.status in range(400, 500) and call.status not in TOO_MUCH]
    if strange:
        yield f"the server refused request {strange[0].number} with {strange[0].status}: {strange[0].said}"


def _job(expect: Expect, job: SeenJob, seen: Seen) -> Iterator[str]:
    if (job.state, job.fault) != (expect.state, expect.fault):
        wanted = f"{expect.state} {expect.fault or ''}".strip()
        yield f"{job.op} is {job.state} {job.fault or ''} instead of {wanted}: {job.summary}"
    if job.attempts != expect.attempts:
        yield f"{job.op} made {job.attempts} attempts instead of {expect.attempts}"
    if job.stages != expect.stages:
        yield f"{job.op} went {' > '.join(job.stages)} instead of {' > '.join(expect.stages)}"
    if job.parked != expect.parked:
        yield f"{job.op} was parked for {', '.join(job.parked) or 'nothing'} instead of {', '.join(expect.parked)}"
    calls = sum(row.job == job.id and row.whole for row in seen.usage)
    if expect.calls is not None and calls != expect.calls:
        yield f"{job.op} took {calls} answers instead of {expect.calls}"
    if expect.calls_most is not None and calls > expect.calls_most:
        yield f"{job.op} took {calls} answers, more than {expect.calls_most}"
    if expect.says not in job.text:
        yield f"{job.op} says nothing of {expect.says!r}: {job.text[:400]}"


def _money(seen: Seen, prices: ModelTable) -> Iterator[str]:
    """The ledger has what the server reported, call by call, and charges what the price table says."""
    reported = {f"req_{call.number:06d}": call for call in seen.answered}
    rows = {row.request: row for row in seen.usage}
    if unknown := sorted(set(rows) - set(reported)):
        yield f"the ledger has {', '.join(unknown[:3])}, which the server never answered"
    for request, call in reported.items():
        row = rows.get(request)
        if row is None and call.fault is None:
            yield f"answer {request} is not in the ledger"
        if row is None:
            continue
        if row.whole and tokens(row) != as_reported(call):
            yield f"{request}: the ledger has {tokens(row)}, the server reported {as_reported(call)}"
        if row.whole != (call.fault is None):
            yield f"{request}: whole says {row.whole}, the server {call.fault or 'sent it to its end'}"
        model = prices.by_id(row.model)
        if model is None or row.cost_micro_usd != model.cost(tokens(row)):
            yield f"{request} costs {row.cost_micro_usd} millionths in the ledger, not what {row.model} costs"


def tokens(row: Usage) -> Tokens:
    """A ledger row's tokens."""
    return Tokens(
        input=row.input_tokens,
        cache_write_5m=row.cache_write_5m_tokens,
        cache_write_1h=row.cache_write_1h_tokens,
        cache_read=row.cache_read_tokens,
        output=row.output_tokens,
    )


def as_reported(call: Call) -> Tokens:
    """What the server said that an answer used."""
    written = call.usage["cache_creation"]
    return Tokens(
        input=call.usage["input_tokens"],
        cache_write_5m=written["ephemeral_5m_input_tokens"],
        cache_write_1h=written["ephemeral_1h_input_tokens"],
        cache_read=call.usage["cache_read_input_tokens"],
        output=call.usage["output_tokens"],
    )


def _secrets(seen: Seen, key_sha256: str) -> Iterator[str]:
    if not seen.boxes:
        yield "no box was there to be searched for the key"
    for place in seen.leaks:
        yield f"the key is in {place}"
    if any(call.key_in_body for call in seen.calls):
        yield "the key is in a request's body"
    if any(call.key_sha256 != key_sha256 for call in seen.calls):
        yield "a request came without the gateway's key"


def _landed(seen: Seen) -> Iterator[str]:
    landed = {job.branch for job in seen.jobs if job.state is JobState.ACCEPTED}
    if set(seen.branches) != landed:
        yield f"branches {', '.join(seen.branches) or 'none'} were pushed, {len(landed)} jobs accepted"
