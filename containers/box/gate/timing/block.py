"""One block of calls, alternating between two sides, to records."""

from collections.abc import Iterable
from dataclasses import dataclass

from containers.box.gate.collector import Flush
from containers.box.gate.timing.clocks import Clocks, Reading
from containers.box.gate.timing.order import Turn, block_turns
from containers.box.gate.timing.same import Fingerprint, same
from containers.box.gate.timing.side import Called, Side, SideProblem
from farm.measured.records import TimedCall


@dataclass(kw_only=True)
class _Taken:
    turn: Turn
    side: Side
    called: Called
    reading: Reading
    late: int


#: What a side gave, with the seed of the first time.
Given = dict[tuple[Fingerprint, ...], int]


class Pair:
    """Two sides that hold the same configuration at the same places; `a` is the reference."""

    def __init__(
        self,
        subject: str,
        config: str,
        a: Side,
        b: Side,
        clocks: Clocks,
        entries: tuple[str, ...],
        coarsest: str | None,
        given: Given,
    ) -> None:
        """`given` is what `b` gave at earlier places, and is added to."""
        self._subject, self._config, self._a, self._b = subject, config, a, b
        self._clocks, self._entries, self._coarsest = clocks, frozenset(entries), coarsest
        self._begins: dict[str, int] = {}
        self._given = given

    @property
    def control(self) -> bool:
        """Whether the reference is timed against itself."""
        return self._b.role.name == "control"

    def block(self, number: int, calls: int) -> list[TimedCall]:
        """Time one block. Raises SideProblem."""
        taken: list[_Taken] = []
        for turn in block_turns(number, calls):
            side = self._a if turn.first else self._b
            before, called = side.call(turn.seed, late=turn.last and not self.control)
            self._work_between(taken, side, before)
            taken.append(
                _Taken(turn=turn, side=side, called=called, reading=self._clocks.read(), late=called.late)
            )
        if not self.control:
            self._work_between(taken, self._b, self._b.drain())
        return [self._record(number, one, self._agrees(one, taken)) for one in taken]

    def _work_between(self, taken: Iterable[_Taken], side: Side, before: Flush) -> None:
        """Kernels of the candidate that ran while nobody had called it belong to its last call, as late ones."""
        late = sum(event.symbol in self._entries for event in before.events)
        last = next((one for one in reversed(list(taken)) if one.side is side), None)
        if last is not None and side.role.name == "target":
            last.late += late

    def _agrees(self, one: _Taken, taken: Iterable[_Taken]) -> bool:
        other = next(o for o in taken if o.turn.seed == one.turn.seed and o.turn.first is not one.turn.first)
        reference, candidate = (one, other) if one.turn.first else (other, one)
        return same(_prints(reference), _prints(candidate), coarsest=self._coarsest)

    def _record(self, number: int, one: _Taken, agrees: bool) -> TimedCall:
        flush, called = one.called.flush, one.called
        return TimedCall(
            subject=self._subject,
            config=self._config,
            control=self.control,
            block=number,
            slot=one.turn.slot,
            repeat=one.turn.repeat,
            reference=one.turn.first,
            events=flush.events,
            lost=flush.missing + self._impossible(one.side, called),
            late=one.late,
            wall_ns=min(called.wall_ns, called.parent_wall_ns),
            same_output=agrees,
            stale=one.side is self._b and self._given_before(one) and not agrees,
            sm_clock_mhz=one.reading.sm_clock_mhz,
            throttle=one.reading.throttle,
        )

    def _given_before(self, one: _Taken) -> bool:
        """Whether `b` gave the very same numbers for other inputs before."""
        return self._given.setdefault(tuple(_prints(one)), one.turn.seed) != one.turn.seed

    def _impossible(self, side: Side, called: Called) -> int:
        """1 if the records cannot be of this call: longer than the parent's time, or of another registration."""
        events, begins = called.flush.events, called.flush.begins
        span = max((e.end_ns for e in events), default=0) - min((e.start_ns for e in events), default=0)
        known = self._begins.setdefault(side.role.name, begins)
        return int(span > called.parent_wall_ns or begins != known)


def _prints(one: _Taken) -> list[Fingerprint]:
    try:
        return [Fingerprint.of(output) for output in one.called.outputs]
    except (ValueError, KeyError, TypeError) as error:
        raise SideProblem(one.side.role.name, f"an answer that is none: {error}", fatal=True) from error
