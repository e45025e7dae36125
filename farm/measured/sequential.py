"""How much more must be timed: asked by the process that times, with the rules that decide in the end."""

from collections.abc import Sequence
from dataclasses import dataclass

from farm.gates import Ruling
from farm.measured.calls import call_findings
from farm.measured.geomean import standing
from farm.measured.model import Plan
from farm.measured.records import TimedCall
from farm.measured.statistics import Answer


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What to time next. Nothing, and the measuring is over."""

    blocks: int  #: ABBA blocks to add to each config
    control: int  #: blocks of the A/A control to add to each config that has one
    reason: str

    @property
    def done(self) -> bool:
        """Whether nothing more is wanted."""
        return self.blocks == self.control == 0


class Sequential:
    """Collects the calls of one subject and says after each stage what is wanted.

    while not (ask := sequential.ask()).done: time ask.blocks and ask.control, add() each call

    Stages double: 8, 16, 32 blocks. Throttled blocks count as tried. The caller stops on its own limit of time;
    what was measured by then is ruled on.
    """

    def __init__(self, configs: Sequence[str], plan: Plan | None = None) -> None:
        """`configs` is the frozen list, without second references and without what could not be set up."""
        self._configs = tuple(configs)
        self._plan = plan or Plan()
        self._calls: list[TimedCall] = []

    def add(self, call: TimedCall) -> None:
        """Take one call into account. Calls of a second reference do not belong here."""
        self._calls.append(call)

    def ask(self) -> Ask:
        """What to time next."""
        if not self._configs:
            return Ask(blocks=0, control=0, reason="no config")
        plan, most = self._plan, self._plan.blocks * self._plan.times
        now = standing(self._calls, self._configs, plan)
        first = Ask(
            blocks=max(0, plan.blocks - now.least),
            control=max(0, plan.blocks - now.control_least),
            reason=f"the first {plan.blocks} blocks",
        )
        if not first.done:
            return first
        cheat = next((f for f in call_findings(self._calls) if f.ruling is Ruling.FAIL), None)
        if cheat is not None:
            return Ask(blocks=0, control=0, reason=cheat.reason)
        uneven = now.control is None or abs(now.control - 1.0) > plan.control_within
        control = _doubled(now.control_least, most) if uneven else 0
        match now.answer:
            case Answer.MORE:
                return Ask(
                    blocks=_doubled(now.least, most), control=control, reason="the interval holds the limit"
                )
            case Answer.PASS | Answer.FAIL | Answer.AMBIGUOUS:
                reason = "the A/A control is not even yet" if control else now.answer.value
                return Ask(blocks=0, control=control, reason=reason)


def _doubled(blocks: int, most: int) -> int:
    return min(blocks, most - blocks) if blocks < most else 0
