"""The pipeline loop: run a stage, save its record, ask the router, until the route ends."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from containers.box.executors import Executor, Performed, Turn, finding_path
from containers.box.files import append_event, read_json, write_json
from containers.box.io import LocalBoxIO
from farm.fault import Fault, Owner
from farm.orders import BoxOrder, BoxResult, Diagnosis, Parking, StageRecord
from farm.pipeline.machine import Malformed, PipelineState, Transition, begin, step
from farm.pipeline.stage import ExecutorKind, Finding, Reply, Stage, Verdict
from farm.pipeline.table import End, RouteTable
from farm.recipes import Conversion


def run_pipeline(
    order: BoxOrder,
    executors: Mapping[ExecutorKind, Executor],
    table: RouteTable,
    conversion: Conversion,
    *,
    workspace: Path,
    out: Path,
    toolchain: Path,
) -> BoxResult:
    """Walk the route of one attempt. Stages whose record is in `out` already are not run again."""
    records: list[StageRecord] = []
    state: PipelineState | None = begin(table)
    transition: Transition | None = None
    io = LocalBoxIO(workspace=workspace, out=out, toolchain=toolchain, log=out / "logs" / "pipeline.log")
    while state is not None:
        io = LocalBoxIO(workspace=workspace, out=out, toolchain=toolchain, log=_log_path(out, state))
        visited = _visit(order, executors, table, state, records, io)
        if isinstance(visited, Parking):
            append_event(out, "parked", stage=state.stage, reason=visited.reason, summary=visited.summary)
            return BoxResult(complete=False, records=tuple(records), diagnosis=None, parked=visited)
        record, transition = visited
        records.append(record)
        append_event(out, "stage_done", stage=state.stage, next=record.next, summary=record.reply.summary)
        state = transition.state
    assert transition is not None
    assert transition.end is not None
    diagnosis = _diagnosis(transition, records) or _owed(conversion.contract(order, io, tuple(records)))
    return BoxResult(complete=diagnosis is None, records=tuple(records), diagnosis=diagnosis)


def _visit(
    order: BoxOrder,
    executors: Mapping[ExecutorKind, Executor],
    table: RouteTable,
    state: PipelineState,
    records: Sequence[StageRecord],
    io: LocalBoxIO,
) -> tuple[StageRecord, Transition] | Parking:
    repair = records[-1].malformed if state.repaired else None
    turn = Turn(stage=state.stage, visit=state.visits[state.stage], repair=repair, before=tuple(records))
    saved = io.out / "stages" / f"{turn}{'-repair' if state.repaired else ''}.json"
    if saved.exists():
        record = read_json(saved, StageRecord)
        known: Reply | Malformed = Malformed(reason=record.malformed) if record.malformed else record.reply
        return record, step(table, state, known)
    append_event(io.out, "stage_started", stage=turn.stage, visit=turn.visit)
    kind = order.executors[turn.stage]
    started = time.monotonic()
    executor = executors.get(kind)
    done = _no_executor(kind) if executor is None else executor.perform(turn, order, io)
    answer = done.answer
    if isinstance(answer, Parking):
        return answer
    if done.contradiction is not None:
        append_event(io.out, "claim_contradicted", stage=turn.stage, visit=turn.visit, summary=done.contradiction)
    transition = step(table, state, answer)
    malformed = _unread(state, transition, answer)
    record = StageRecord(
        stage=turn.stage,
        visit=turn.visit,
        executor=done.by,
        reply=answer if isinstance(answer, Reply) else _malformed_reply(answer),
        malformed=malformed,
        seconds=time.monotonic() - started,
        next=transition.state.stage.value if transition.state else str(transition.end),
        program=done.program,
        calls=done.calls,
        tokens=done.tokens,
        contradiction=done.contradiction,
    )
    write_json(finding_path(io.out, turn), record.reply)
    write_json(saved, record)
    return record, transition


def _unread(state: PipelineState, transition: Transition, answer: Reply | Malformed) -> str | None:
    """Why the reply could not be read, whoever found it: what reads it, or the router."""
    if isinstance(answer, Malformed):
        return answer.reason
    asked_again = transition.state is not None and transition.state.repaired and not state.repaired
    return transition.reason if asked_again else None


def _owed(missing: Sequence[Finding]) -> Diagnosis | None:
    """What a route that reached its end without what it owes comes to."""
    if not missing:
        return None
    first = missing[0]
    return Diagnosis(
        stage=None,
        fault=Fault.AGENT,
        summary=f"the route is complete, and {len(missing)} of its files are not as they must be: {first.message}",
        next_step=first.advice or f"see {first.file or 'the findings'}; the stage that owes it left it out",
    )


def _diagnosis(transition: Transition, records: list[StageRecord]) -> Diagnosis | None:
    if transition.end is End.COMPLETE:
        return None
    # The stage that failed, not the one that looked at the failure afterwards, carries the fault.
    failed = next((r for r in reversed(records) if r.reply.fault is not None), records[-1])
    reply = failed.reply
    advice = next((f.advice for f in reply.findings if f.advice), None)
    return Diagnosis(
        stage=failed.stage,
        fault=reply.fault or _fault_of(reply.owner),
        summary=reply.summary or transition.reason,
        next_step=advice
        or f"read `farm logs` of the job, {failed.stage.value}-{failed.visit}; {transition.reason}",
    )


def _fault_of(owner: Owner | None) -> Fault:
    match owner:
        case Owner.ENV:
            return Fault.ENV
        case Owner.KERNEL:
            return Fault.KERNEL
        case Owner.HOST | None:
            return Fault.AGENT


def _no_executor(kind: ExecutorKind) -> Performed:
    reply = Reply(
        verdict=Verdict.BLOCKED,
        owner=Owner.ENV,
        fault=Fault.ENV,
        fail_class=None,
        summary=f"this box offers no {kind.value} executor",
    )
    return Performed(answer=reply, by=kind)


def _malformed_reply(answer: Malformed) -> Reply:
    return Reply(verdict=Verdict.BLOCKED, owner=None, fault=Fault.AGENT, fail_class=None, summary=answer.reason)


def _log_path(out: Path, state: PipelineState) -> Path:
    stage: Stage = state.stage
    return out / "logs" / f"{stage.value}-{state.visits[stage]}.log"
