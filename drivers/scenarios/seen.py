"""What came of a play: from the ledger, the artifact store and the model server."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from containers.box.files import parse_json
from drivers.scenarios.modelserver import Call
from farm.events import Moved
from farm.fault import Fault
from farm.job import Job, JobState, ParkReason
from farm.ledger import Ledger, Usage
from farm.orders import BoxResult, StageRecord
from farm.report.evidence import RESULT
from farm.store import ArtifactStore


@dataclass(frozen=True, kw_only=True)
class SeenJob:
    """One job as it rests."""

    id: str
    op: str
    state: JobState
    fault: Fault | None
    summary: str
    branch: str | None
    attempts: int
    stages: tuple[str, ...]  #: replies in order, as `told` writes them
    parked: tuple[ParkReason, ...]  #: each reason once, in the order of the first time
    transitions: int
    text: str  #: summary, trace and the replies' summaries


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run as it rests."""

    jobs: tuple[SeenJob, ...]
    calls: tuple[Call, ...]  #: what the model server saw
    results: tuple[str, ...]  #: what tools gave to agents
    usage: tuple[Usage, ...]  #: what the ledger says was used
    acts: int  #: how many of the play's acts happened
    files: int | None  #: of the output contract, where a play asks for them
    branches: tuple[str, ...]  #: the farm's branches in the target repo
    boxes: int  #: boxes in which the key was searched, by what the engine says of them
    leaks: tuple[str, ...]  #: where the key was found
    seconds: float

    @property
    def answered(self) -> tuple[Call, ...]:
        """Requests that got an answer, whole or not."""
        return tuple(call for call in self.calls if call.status == 200)


def told(record: StageRecord) -> str:
    """A reply in one line."""
    reply = record.reply
    words = [f"{record.stage.value}-{record.visit}", record.executor.value]
    if record.malformed is None:
        words += [reply.verdict.value, *(word.value for word in (reply.owner, reply.fail_class) if word)]
    else:
        words.append("malformed")
    return " ".join(words + (["contradicted"] if record.contradiction else []))


def look(ledger: Ledger, store: ArtifactStore, job: Job, parked: Sequence[ParkReason]) -> SeenJob:
    """A job, with everything that its attempts left in ledger and store; `parked` was seen while it moved."""
    attempts = ledger.attempts(job.id)
    records = [record for attempt in attempts for record in _records(ledger, store, job, attempt.number)]
    moves = [logged.event for logged in ledger.events(job=job.id) if isinstance(logged.event, Moved)]
    traces = [store.get(attempt.trace).decode("utf-8", "replace") for attempt in attempts if attempt.trace]
    said = [f"{record.reply.summary} {record.malformed or ''} {record.contradiction or ''}" for record in records]
    return SeenJob(
        id=job.id,
        op=job.op,
        state=job.state,
        fault=job.fault if job.state is JobState.FAILED else None,
        summary=job.summary or "",
        branch=job.branch,
        attempts=len(attempts),
        stages=tuple(told(record) for record in records),
        parked=tuple(dict.fromkeys(parked)),
        transitions=len(moves),
        text="\n".join([job.summary or "", *said, *traces]),
    )


def _records(ledger: Ledger, store: ArtifactStore, job: Job, attempt: int) -> Iterator[StageRecord]:
    digest = ledger.artifacts(job.id, attempt=attempt).get(RESULT)
    if digest is not None:
        yield from parse_json(store.get(digest), BoxResult).records


def tool_results(bodies: Sequence[bytes]) -> tuple[str, ...]:
    """What tools gave to agents, each once."""
    found: dict[str, None] = {}
    for body in bodies:
        for message in json.loads(body)["messages"]:
            blocks = message["content"] if isinstance(message["content"], list) else []
            for block in blocks:
                if block.get("type") == "tool_result":
                    found.setdefault(json.dumps(block.get("content"), ensure_ascii=False))
    return tuple(found)


def total(rows: Sequence[Usage]) -> dict[str, int]:
    """Tokens by class and cost of some calls."""
    names = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")
    sums = {name: sum(getattr(row, f"{name}_tokens") for row in rows) for name in names}
    return sums | {"micro_usd": sum(row.cost_micro_usd for row in rows)}
