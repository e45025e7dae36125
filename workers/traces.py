"""The trace of an attempt that failed, written from what the ledger and the store keep of it."""

import json
from collections.abc import Mapping
from typing import TypeVar

from containers.box.files import parse_json
from farm.codec import CodecError, encode
from farm.gates import GateReport
from farm.job import Job
from farm.ledger import Ledger
from farm.orders import BoxResult
from farm.report.evidence import GATES, LOG, RESULT, AttemptEvidence, StepError
from farm.report.trace import build_trace
from farm.store import ArtifactStore
from workers.spine import Failed

T = TypeVar("T")

#: End of a log that a trace quotes.
TAIL_CHARACTERS = 4000


def write_trace(ledger: Ledger, store: ArtifactStore, job: Job, failure: Failed, kept: Mapping[str, str]) -> str:
    """Keep the trace of the job's current attempt; its digest. `kept` are artifacts that are not recorded yet."""
    artifacts = {**ledger.artifacts(job.id, attempt=job.attempt), **failure.notes.artifacts, **kept}
    result = _load(store, artifacts.get(RESULT), BoxResult)
    gates = _load(store, artifacts.get(GATES), GateReport)
    error = StepError(
        state=job.state,
        fault=failure.fault,
        message=failure.summary,
        log_tail=_tail(store, artifacts),
        next_step=failure.next_step,
    )
    started = {attempt.number: attempt.started_at for attempt in ledger.attempts(job.id)}
    evidence = AttemptEvidence(
        number=job.attempt,
        result=result,
        gates=gates,
        error=error,
        artifacts=tuple(f"{name} {digest}" for name, digest in sorted(artifacts.items())),
        seconds=job.updated_at - started[job.attempt] if job.attempt in started else None,
    )
    ended = job.evolve(fault=failure.fault, summary=failure.summary)
    trace = build_trace(ledger.run(job.run), ended, (evidence,))
    return store.put(json.dumps(encode(trace), indent=1, sort_keys=True).encode())


def _load(store: ArtifactStore, digest: str | None, kind: type[T]) -> T | None:
    if digest is None:
        return None
    try:
        return parse_json(store.get(digest), kind)
    except CodecError:
        return None


def _tail(store: ArtifactStore, artifacts: Mapping[str, str]) -> str:
    logs = sorted(name for name in artifacts if name.endswith(LOG))
    return store.get(artifacts[logs[-1]]).decode("utf-8", "replace")[-TAIL_CHARACTERS:] if logs else ""
