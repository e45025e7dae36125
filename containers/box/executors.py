"""Who performs a stage in the box. An executor turns an order into an answer and never routes."""

import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from containers.box.files import read_json, write_json
from farm.agents import FILE as AGENTS
from farm.agents import read_agents
from farm.fault import Fault, Owner
from farm.orders import BoxOrder, Parking, StageRecord
from farm.pipeline.handover import unfinished
from farm.pipeline.machine import Malformed
from farm.pipeline.routes import FILE as ROUTES
from farm.pipeline.routes import read_routes
from farm.pipeline.stage import ExecutorKind, Reply, Stage, Verdict
from farm.recipes import BoxIO, Conversion


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One visit of one stage, or the repair of its reply."""

    stage: Stage
    visit: int  #: from 1
    repair: str | None = None  #: what was wrong with the reply that is to be repaired
    before: tuple[StageRecord, ...] = ()  #: of the stages that ran before

    def __str__(self) -> str:
        return f"{self.stage.value}-{self.visit}"


@dataclass(frozen=True, kw_only=True)
class Performed:
    """What a turn came to, and what it took."""

    answer: Reply | Malformed | Parking
    by: ExecutorKind  #: who gave the answer
    program: Reply | None = None  #: what the program said before an agent took over
    calls: int = 0  #: model calls of the visit so far
    tokens: int = 0  #: tokens read and written by them
    contradiction: str | None = None  #: what was claimed against the validators that we ran


class Executor(Protocol):
    """Performs one visit of one stage."""

    def perform(self, turn: Turn, order: BoxOrder, io: BoxIO) -> Performed:
        """Do the stage's work in the workspace and say how it went."""


class ProgramExecutor:
    """Runs the conversion's own program for the stage."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion

    def perform(self, turn: Turn, order: BoxOrder, io: BoxIO) -> Performed:
        """The program's reply; a crash of the program is the environment's failure, with its traceback."""
        return Performed(answer=self.reply(turn.stage, turn.visit, order, io), by=ExecutorKind.PROGRAM)

    def reply(self, stage: Stage, visit: int, order: BoxOrder, io: BoxIO) -> Reply:
        """What the program of the stage says."""
        program = self._conversion.program(stage)
        if program is None:
            return Reply(
                verdict=Verdict.BLOCKED,
                owner=Owner.ENV,
                fault=Fault.UNSUPPORTED,
                fail_class=None,
                summary=f"no program for stage {stage.value} in {order.recipe}; choose another executor",
            )
        if visit > 1:  # no fault of its own: the diagnosis is that of the visit before
            return Reply(
                verdict=Verdict.BLOCKED,
                owner=Owner.ENV,
                fault=None,
                fail_class=None,
                summary=f"the program for stage {stage.value} would give the same answer again",
            )
        try:
            return program(order, io)
        except Exception as error:  # the box's last line: a bug of ours must end in a trace
            io.log(traceback.format_exc())
            return Reply(
                verdict=Verdict.BLOCKED,
                owner=Owner.ENV,
                fault=Fault.INFRA,
                fail_class=None,
                summary=f"the program of stage {stage.value} crashed: {type(error).__name__}: {error}",
            )


@dataclass(frozen=True, kw_only=True)
class ScriptedStep:
    """What a scripted executor does at one visit of one stage."""

    stage: Stage
    visit: int
    reply: Reply | None  #: None: the reply is malformed
    files: dict[str, str]  #: written into the workspace, path to text
    delete: tuple[str, ...] = ()  #: paths removed from the workspace
    sleep_s: float = 0.0  #: waits first


@dataclass(frozen=True, kw_only=True)
class Script:
    """script.json: the steps of a scripted executor."""

    steps: tuple[ScriptedStep, ...]


class ScriptedExecutor:
    """Answers from a file: the seam that agents use, without an agent."""

    def __init__(self, path: Path) -> None:
        self._steps = {(s.stage, s.visit): s for s in read_json(path, Script).steps}

    def perform(self, turn: Turn, order: BoxOrder, io: BoxIO) -> Performed:
        """The script's reply, after its files were written."""
        return Performed(answer=self._reply(turn, io), by=ExecutorKind.SCRIPTED)

    def _reply(self, turn: Turn, io: BoxIO) -> Reply | Malformed:
        step = self._steps.get((turn.stage, turn.visit))
        if step is None:
            return Malformed(reason=f"the script says nothing for visit {turn.visit} of {turn.stage.value}")
        time.sleep(step.sleep_s)
        for name, text in step.files.items():
            path = io.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in step.delete:
            (io.workspace / name).unlink()
        return step.reply or Malformed(reason="scripted")


class AutoExecutor:
    """The program first, and the agent where the program leaves something to do."""

    def __init__(self, program: ProgramExecutor, agent: Executor) -> None:
        self._program = program
        self._agent = agent

    def perform(self, turn: Turn, order: BoxOrder, io: BoxIO) -> Performed:
        """The program's reply where that is final, else the agent's; a later visit is the agent's at once."""
        if turn.visit > 1:
            return self._agent.perform(turn, order, io)
        # Kept, so that a box that is killed while the agent works does not let the program write over it.
        saved = io.out / "stages" / f"{turn}-program.json"
        if not saved.exists():
            write_json(saved, self._program.reply(turn.stage, turn.visit, order, io))
        reply = read_json(saved, Reply)
        if not unfinished(turn.stage, reply):
            return Performed(answer=reply, by=ExecutorKind.PROGRAM)
        write_json(finding_path(io.out, turn), reply)
        return replace(self._agent.perform(turn, order, io), program=reply)


def finding_path(out: Path, turn: Turn) -> Path:
    """Where an agent finds what the visit's program, or another agent, said."""
    return out / "findings" / f"{turn}.json"


def executors(order: BoxOrder, conversion: Conversion, recipe: Path) -> dict[ExecutorKind, Executor]:
    """The executors that this box offers, by kind; `recipe` is the recipe's folder."""
    program = ProgramExecutor(conversion)
    offered: dict[ExecutorKind, Executor] = {ExecutorKind.PROGRAM: program}
    if order.script is not None:
        offered[ExecutorKind.SCRIPTED] = ScriptedExecutor(Path(order.script))
    # Without agents, what may be an agent's is the program's alone.
    offered[ExecutorKind.AUTO] = program
    if order.agents is not None:
        # Only here: boxes without agents do without the SDK, which takes a second to load.
        from containers.box.agent.executor import AgentExecutor

        roles = read_agents((recipe / AGENTS).read_text(encoding="utf-8"))
        table = read_routes((recipe / ROUTES).read_text(encoding="utf-8"), order.caps)
        agent = AgentExecutor(conversion, recipe, roles, table.verdicts, order.agents)
        offered[ExecutorKind.AGENT] = agent
        offered[ExecutorKind.AUTO] = AutoExecutor(program, agent)
    return offered
