"""Who performs a stage in the box. An executor turns an order into a reply and never routes."""

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from containers.box.files import read_json
from farm.fault import Fault, Owner
from farm.orders import BoxOrder
from farm.pipeline.machine import Malformed
from farm.pipeline.stage import ExecutorKind, Reply, Stage, Verdict
from farm.recipes import BoxIO, Conversion


class Executor(Protocol):
    """Performs one visit of one stage."""

    def perform(self, stage: Stage, visit: int, order: BoxOrder, io: BoxIO) -> Reply | Malformed:
        """Do the stage's work in the workspace and say how it went."""


class ProgramExecutor:
    """Runs the conversion's own program for the stage."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion

    def perform(self, stage: Stage, visit: int, order: BoxOrder, io: BoxIO) -> Reply | Malformed:
        """The program's reply; a crash of the program is the environment's failure, with its traceback."""
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

    def perform(self, stage: Stage, visit: int, order: BoxOrder, io: BoxIO) -> Reply | Malformed:
        """The script's reply, after its files were written."""
        step = self._steps.get((stage, visit))
        if step is None:
            return Malformed(reason=f"the script says nothing for visit {visit} of {stage.value}")
        time.sleep(step.sleep_s)
        for name, text in step.files.items():
            path = io.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name in step.delete:
            (io.workspace / name).unlink()
        return step.reply or Malformed(reason="scripted")


def executors(order: BoxOrder, conversion: Conversion) -> dict[ExecutorKind, Executor]:
    """The executors that this box offers, by kind."""
    offered: dict[ExecutorKind, Executor] = {ExecutorKind.PROGRAM: ProgramExecutor(conversion)}
    if order.script is not None:
        offered[ExecutorKind.SCRIPTED] = ScriptedExecutor(Path(order.script))
    return offered
