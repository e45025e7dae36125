"""The pipeline loop: run a stage, save its record, ask the router, until the route ends."""

import time
from collections.abc import Mapping
from pathlib import Path

from containers.box.executors import Executor
from containers.box.files import append_event, read_json, write_json
from containers.box.io import LocalBoxIO
from farm.fault import Fault, Owner
from farm.orders import BoxOrder, BoxResult, Diagnosis, StageRecord
from farm.pipeline.machine import Malformed, PipelineState, Transition, begin, step
from farm.pipeline.stage import ExecutorKind, Reply, Stage, Verdict
from farm.pipeline.table import End, RouteTable


def run_pipeline(
    order: BoxOrder,
    executors: Mapping[ExecutorKind, Executor],
    table: RouteTable,
    *,
    workspace: Path,
    out: Path,
    toolchain: Path,
) -> BoxResult:
    """Walk the route of one attempt. Stages whose record is in `out` already are not run again."""
    records: list[StageRecord] = []
    state: PipelineState | None = begin(table)
    transition: Transition | None = None
    while state is not None:
        io = LocalBoxIO(workspace=workspace, out=out, toolchain=toolchain, log=_log_path(out, state))
        record, transition = _visit(order, executors, table, state, io)
        records.append(record)
        append_event(out, "stage_done", stage=state.stage, next=record.next, summary=record.reply.summary)
        state = transition.state
    assert transition is not None
    assert transition.end is not None
    return BoxResult(
        complete=transition.end is End.COMPLETE,
        records=tuple(records),
        diagnosis=_diagnosis(transition, records),
    )


def _visit(
    order: BoxOrder,
    executors: Mapping[ExecutorKind, Executor],
    table: RouteTable,
    state: PipelineState,
    io: LocalBoxIO,
) -> tuple[StageRecord, Transition]:
    stage, visit = state.stage, state.visits[state.stage]
    saved = io.out / "stages" / f"{stage.value}-{visit}{'-repair' if state.repaired else ''}.json"
    if saved.exists():
        record = read_json(saved, StageRecord)
        answer: Reply | Malformed = Malformed(reason=record.malformed) if record.malformed else record.reply
        return record, step(table, state, answer)
    append_event(io.out, "stage_started", stage=stage, visit=visit)
    kind = order.executors[stage]
    started = time.monotonic()
    executor = executors.get(kind)
    answer = _no_executor(kind) if executor is None else executor.perform(stage, visit, order, io)
    transition = step(table, state, answer)
    malformed = answer.reason if isinstance(answer, Malformed) else None
    record = StageRecord(
        stage=stage,
        visit=visit,
        executor=kind,
        reply=answer if isinstance(answer, Reply) else _malformed_reply(answer),
        malformed=malformed,
        seconds=time.monotonic() - started,
        next=transition.state.stage.value if transition.state else str(transition.end),
    )
    write_json(saved, record)
    return record, transition


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


def _no_executor(kind: ExecutorKind) -> Reply:
    return Reply(
        verdict=Verdict.BLOCKED,
        owner=Owner.ENV,
        fault=Fault.ENV,
        fail_class=None,
        summary=f"this box offers no {kind.value} executor",
    )


def _malformed_reply(answer: Malformed) -> Reply:
    return Reply(verdict=Verdict.BLOCKED, owner=None, fault=Fault.AGENT, fail_class=None, summary=answer.reason)


def _log_path(out: Path, state: PipelineState) -> Path:
    stage: Stage = state.stage
    return out / "logs" / f"{stage.value}-{state.visits[stage]}.log"
