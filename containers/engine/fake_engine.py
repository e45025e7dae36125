"""An engine in memory, with a program in place of the process: all of `Engine`, and the ways it can fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from containers.engine import BoxSpec, BoxStatus
from farm.errors import EngineUnavailable


@dataclass(frozen=True, kw_only=True)
class FakeExit:
    """How a fake box ends."""

    exit_code: int = 0
    oom_killed: bool = False
    log: str = ""


class _Box(NamedTuple):
    """One box of a FakeEngine."""

    spec: BoxSpec  #: what it was made from
    status: BoxStatus  #: as `inspect` says
    log: str  #: all of its output


#: What a fake box does when it starts, on the host's folders of its mounts; None leaves it running.
FakeProgram = Callable[[BoxSpec], FakeExit | None]


def runs_on(_: BoxSpec) -> FakeExit | None:
    """The program that does not end by itself."""
    return None


class FakeEngine:
    """An `Engine` for tests of what stands above engines.

    `program` runs inside `ensure`, once for a box; boxes that it leaves running end by `finish`.
    While `down` is set, every method raises EngineUnavailable; `lose_answers` lets the next calls of
    `ensure` act and then raise it, as an engine does whose answer was lost.
    """

    def __init__(self, program: FakeProgram = runs_on, *, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.down = False
        self.lose_answers = 0
        self.started: list[str] = []  #: names, in the order of their starts
        self._program = program
        self._clock = clock
        self._boxes: dict[str, _Box] = {}

    def ensure(self, spec: BoxSpec) -> BoxStatus:
        """Start the box, or adopt the one that has its name."""
        self._answer()
        box = self._boxes.get(spec.name)
        if box is None:
            self._start(spec)
        elif any(box.status.labels.get(key) != value for key, value in spec.labels.items()):
            raise EngineUnavailable(f"a container {spec.name} with other labels is in the way")
        if self.lose_answers:
            self.lose_answers -= 1
            raise EngineUnavailable("the engine's answer was lost")
        return self._boxes[spec.name].status

    def inspect(self, name: str) -> BoxStatus | None:
        """Its status, or None."""
        self._answer()
        box = self._boxes.get(name)
        return box.status if box else None

    def remove(self, name: str, *, grace_s: float) -> None:
        """Forget it."""
        self._answer()
        self._boxes.pop(name, None)

    def list(self, labels: Mapping[str, str]) -> tuple[BoxStatus, ...]:
        """Boxes that carry these labels, by name."""
        self._answer()
        wanted = labels.items()
        return tuple(box.status for _, box in sorted(self._boxes.items()) if wanted <= box.status.labels.items())

    def logs(self, name: str, *, tail: int) -> str:
        """The last lines of its output."""
        self._answer()
        box = self._boxes.get(name)
        return "".join(box.log.splitlines(keepends=True)[-tail:]) if box else ""

    def finish(self, name: str, how: FakeExit) -> None:
        """Let a running box end, as if from inside."""
        box = self._boxes[name]
        status = replace(box.status, running=False, exit_code=how.exit_code, oom_killed=how.oom_killed)
        self._boxes[name] = box._replace(status=status, log=box.log + how.log)

    def spec(self, name: str) -> BoxSpec:
        """What the box was made from."""
        return self._boxes[name].spec

    def _start(self, spec: BoxSpec) -> None:
        status = BoxStatus(
            name=spec.name,
            running=True,
            exit_code=None,
            oom_killed=False,
            started_at=self._clock(),
            labels=dict(spec.labels),
        )
        self._boxes[spec.name] = _Box(spec=spec, status=status, log="")
        self.started.append(spec.name)
        ended = self._program(spec)
        if ended is not None:
            self.finish(spec.name, ended)

    def _answer(self) -> None:
        if self.down:
            raise EngineUnavailable
