"""Views as rich tables and text. Every state has its word; colour only repeats it."""

from datetime import UTC, datetime
from typing import assert_never

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from farm.gates import Ruling
from farm.job import JobState, WaitsFor
from farm.views import DoctorView, ImportView, JobDetailView, JobView, OpsView, RunView, StatusView, UsageView


def state_style(state: JobState) -> str:
    """The colour of a state."""
    match state:
        case JobState.ACCEPTED:
            return "green"
        case JobState.FAILED | JobState.CANCELLED:
            return "red"
        case JobState.AWAITING_GPU | JobState.PARKED:
            return "yellow"
        case JobState.QUEUED:
            return "dim"
        case JobState.PREPARING | JobState.RUNNING | JobState.CAPTURED | JobState.VERIFYING | JobState.LANDING:
            return "cyan"
    assert_never(state)


def run_table(view: RunView) -> RenderableType:
    """A run: one line of head, one row a job."""
    table = _table("op", "state", "attempt", "commit", "outcome")
    for job in view.jobs:
        table.add_row(
            job.op,
            Text(job.state.value, style=state_style(job.state)),
            f"{job.attempt}/{job.attempts}",
            job.commit[:12] if job.commit else "",
            Text(waiting(job) or job.summary or (job.park_reason.value if job.park_reason else "")),
        )
    head = Text(f"{view.id}  {view.recipe}  {view.repo} at {view.base[:12]}  {view.accept.value}: {_tally(view)}")
    return Group(head, table)


def waiting(job: JobView) -> str:
    """What a job at work waits for, in words; that a queued one waits for its turn, its state says."""
    match job.waits_for:
        case WaitsFor.BOX:
            return "waits for a box"
        case WaitsFor.GPU:
            return "waits until a GPU is free"
        case WaitsFor.TURN | None:
            return ""


def _tally(run: RunView) -> str:
    """Jobs by state, and how many of them wait for a box."""
    words = [f"{number} {state}" for state, number in run.counts.items()]
    idle = sum(job.waits_for is WaitsFor.BOX for job in run.jobs)
    return ", ".join(words) + (f" ({idle} wait for a box)" if idle else "")


def import_table(view: ImportView) -> RenderableType:
    """What the raw records of results say: one row an implementation and kind of machine."""
    table = _table("implementation", "gpu", "correctness", "executed", "geomean", "speedup", "job", "why")
    for row in view.subjects:
        words = [Text(gate.ruling.value, style=_RULED[gate.ruling]) for gate in row.gates]
        speed = "" if row.ratio is None else f"{row.ratio:.3f} [{row.low or 0.0:.3f}, {row.high or 0.0:.3f}]"
        reasons = [f"{gate.gate.value}: {gate.summary}" for gate in row.gates if gate.ruling is not Ruling.PASS]
        state = "" if row.state is None else row.state.value
        commit = f" {row.commit[:12]}" if row.commit else ""
        why = Text("; ".join(reasons))
        table.add_row(row.subject, Text(row.gpu), *words, speed, Text(f"{state}{commit}"), why)
    lines = [f"did not end: {sentence}" for sentence in view.incomplete]
    return Group(table, Text("\n".join([*lines, *view.notes])))


_RULED = {
    Ruling.PASS: "green",
    Ruling.FAIL: "red",
    Ruling.AMBIGUOUS: "yellow",
    Ruling.INFRA: "yellow",
    Ruling.NOT_RUN: "dim",
}


def status_table(view: StatusView) -> RenderableType:
    """The latest runs."""
    if not view.runs:
        return Text("no runs yet: `farm submit --ops all` makes one")
    table = _table("run", "submitted", "repo", "proof", "jobs")
    for run in view.runs:
        table.add_row(run.id, when(run.created_at), escape(run.repo), run.accept.value, _tally(run))
    return table


def usage_table(view: UsageView) -> RenderableType:
    """What model calls used and cost: a row an op and agent, then the agents', then all."""
    from farm.models import dollars  # loads pydantic, which most commands do without

    if not view.total.calls:
        return Text("no model was asked")
    table = _table("op", "agent", "calls", "input", "write 5m", "write 1h", "cache read", "output", "cost")
    for row in (*view.rows, *view.stages, view.total):
        name = row.op or ("all ops" if row.stage else "all")
        calls = f"{row.calls} ({row.broken} broken)" if row.broken else str(row.calls)
        tokens = (
            row.input_tokens,
            row.cache_write_5m_tokens,
            row.cache_write_1h_tokens,
            row.cache_read_tokens,
            row.output_tokens,
        )
        table.add_row(name, row.stage, calls, *[f"{count:,}" for count in tokens], dollars(row.cost_micro_usd))
    each = (
        "no op is accepted"
        if view.accepted_micro_usd is None
        else f"{view.accepted} ops accepted, {dollars(view.accepted_micro_usd)} each"
    )
    budget = "" if view.budget_micro_usd is None else f", of a budget of {dollars(view.budget_micro_usd)}"
    return Group(table, Text(f"{dollars(view.total.cost_micro_usd)}{budget}; {each}"))


def ops_table(view: OpsView) -> RenderableType:
    """The ops of a target repo."""
    table = _table("op", "kernels", "rows", "landed", "source")
    for op in view.ops:
        rows = ("computed" if op.rows is None else str(op.rows)) if op.tests else "none"
        table.add_row(
            op.name,
            str(len(op.kernels)),
            "unreadable" if op.problems else rows,
            "yes" if op.landed else "",
            Text(", ".join(dict.fromkeys(kernel.file for kernel in op.kernels) or op.source_files)),
        )
    landed = sum(op.landed for op in view.ops)
    head = Text(f"{view.repo} at {view.base[:12]}: {len(view.ops)} ops, {landed} landed ({view.recipe})")
    broken = [Text(f"{op.name} cannot be read: {problem}") for op in view.ops for problem in op.problems]
    return Group(head, table, *broken)


def job_text(view: JobDetailView) -> RenderableType:
    """Everything that is shown about one job."""
    job = view.job
    facts = Table.grid(padding=(0, 2))
    facts.add_row("state", Text(job.state.value, style=state_style(job.state)))
    facts.add_row("attempt", f"{job.attempt} of {job.attempts}")
    outcome = waiting(job) or job.summary
    for name, value in (("outcome", outcome), ("commit", job.commit), ("branch", job.branch)):
        if value:
            facts.add_row(name, Text(value))
    if view.rows_expected is not None:
        facts.add_row("rows", f"{view.rows_collected} collected of {view.rows_expected} expected")
    if view.signatures_total is not None:
        facts.add_row("Tile IR", f"{view.signatures_same} of {view.signatures_total} signatures the same")
    gates = _table("gate", "ruling", "basis", "")
    for gate in view.gates:
        basis = gate.basis.value if gate.basis else ""
        gates.add_row(gate.gate.value, gate.ruling.value.replace("_", " "), basis, Text(gate.summary))
    history = _table("time", "what happened", "")
    for event in view.events:
        history.add_row(when(event.at), event.action, Text(event.detail))
    kept = Text("\n".join(f"kept: {name}" for name in view.artifacts))
    return Group(Text(job.id, style="bold"), facts, gates, history, kept)


def doctor_table(view: DoctorView) -> RenderableType:
    """The checks; what to do stands under what was found."""
    table = _table("", "check", "found")
    marks = {"ok": ("ok", "green"), "warning": ("note", "yellow"), "error": ("ERROR", "red")}
    for check in view.checks:
        word, style = marks[check.level]
        text = check.detail if check.next_step is None else f"{check.detail}\n{check.next_step}"
        table.add_row(Text(word, style=style), check.name, Text(text))
    return table


def when(seconds: float) -> str:
    """A time, UTC, to the second."""
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name in {"op", "state", "run", "check"})
    return table
