"""What is known about a job's attempts when a trace or a report is written."""

from dataclasses import dataclass

from farm.fault import Fault
from farm.gates import GateName, GateReport, GateResult, Ruling
from farm.job import JobState
from farm.orders import BoxResult

#: Names under which an attempt's artifacts are kept.
RESULT = "result.json"  #: farm.orders.BoxResult of the pipeline's box
GATES = "gates.json"  #: farm.gates.GateReport of the gate box
LOG = ".log"  #: ending of the names of logs


@dataclass(frozen=True, kw_only=True)
class StepError:
    """An error that ended a step outside a box."""

    state: JobState  #: the state whose step it was
    fault: Fault
    message: str
    log_tail: str = ""  #: last lines of the box's output, when there was a box
    next_step: str | None = None  #: what a person should do, when the step said it


@dataclass(frozen=True, kw_only=True)
class AttemptEvidence:
    """One attempt: what its boxes said and what ended it."""

    number: int  #: from 1
    result: BoxResult | None = None  #: of the pipeline's box
    gates: GateReport | None = None  #: of the gate box
    error: StepError | None = None
    artifacts: tuple[str, ...] = ()  #: paths or digests of kept files, for a person to open
    seconds: float | None = None  #: wall clock from its start to its end


def gate_results(attempts: tuple[AttemptEvidence, ...]) -> tuple[GateResult, ...]:
    """The last judged attempt's three gates, in order; a gate that nobody ran is NOT_RUN."""
    report = next((a.gates for a in reversed(attempts) if a.gates is not None), None)
    known = {} if report is None else {result.gate: result for result in report.gates}
    return tuple(
        known.get(name) or GateResult(gate=name, ruling=Ruling.NOT_RUN, basis=None, summary="not run")
        for name in GateName
    )
