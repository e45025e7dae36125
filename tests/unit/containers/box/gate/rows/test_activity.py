"""What the parent makes of the collector's flushes."""

from pathlib import Path

from containers.box.gate.collector import Flush, Reader, State
from containers.box.gate.rows.activity import CuptiRecorder, Seen
from containers.box.gate.rows.messages import Mark, RowEnd
from farm.measured.records import DeviceEvent, Outcome


class Flushes(Reader):
    """A reader whose flushes are given; it counts how often it was asked."""

    def __init__(self, *flushes: Flush) -> None:
        self._given = {flush.token: flush for flush in flushes}
        self.asked = 0

    def until(self, token: int, timeout_s: float) -> Flush:
        self.asked += 1
        return self._given.get(token) or flush(token, state=State.ENDED)


def flush(token: int, *symbols: str, state: State = State.COMPLETE, lost: int = 0) -> Flush:
    events = tuple(DeviceEvent(symbol=s, start_ns=1, end_ns=2, stream=7, correlation=1) for s in symbols)
    return Flush(token=token, state=state, events=events, lost=lost, begins=1, problems=())


def row(*inside: bool) -> RowEnd:
    return RowEnd(
        number=1, node="n", outcome=Outcome.PASSED, reason=None, seconds=0.1, results=(), backwards=0,
        marks=tuple(Mark(token=token, inside=mine) for token, mine in enumerate(inside, 1)),
        exports={"cutile_relu": 3}, no_null=None, broken=False,
    )  # fmt: skip


def seen(end: RowEnd, *flushes: Flush, has_device: bool = True) -> Seen:
    recorder = CuptiRecorder(Path("collector.so"), Flushes(*flushes))
    recorder.has_device = has_device
    return recorder.row(end)


def test_only_what_ran_inside_the_op_counts() -> None:
    flushes = (
        flush(1, "fill"),
        flush(2, "relu_entry", "copy", "relu_entry"),
        flush(3, "compare"),
        flush(4, "grad"),
    )
    assert seen(row(False, True, False, True), *flushes) == Seen(
        kernels={"relu_entry": 2, "copy": 1, "grad": 1}, lost=0, taken=False
    )


def test_records_lost_inside_the_op_are_counted_and_those_outside_are_not() -> None:
    assert seen(row(False, True), flush(1, lost=5), flush(2, "k", lost=2)).lost == 2


def test_records_that_a_profiler_took_ask_for_a_second_run() -> None:
    told = seen(row(False, True), flush(1), flush(2, "k", state=State.TAKEN))
    assert (told.taken, told.lost) == (True, 1)


def test_before_a_context_there_is_nothing_to_record() -> None:
    told = seen(row(False, True), flush(1, state=State.NO_CONTEXT), flush(2, "k"))
    assert told == Seen(kernels={"k": 1}, lost=0, taken=False)


def test_a_collector_that_is_not_there_says_nothing_about_kernels() -> None:
    assert seen(row(False, True), flush(1), flush(2, state=State.NOT_LOADED)).kernels is None
    assert seen(row()).kernels is None


def test_a_collector_that_fell_silent_is_waited_for_once() -> None:
    flushes = Flushes()
    recorder = CuptiRecorder(Path("collector.so"), flushes)
    recorder.has_device = True
    assert recorder.row(row(True, True)).kernels is None
    assert recorder.row(row(True, True)).kernels is None
    assert flushes.asked == 1


def test_without_a_gpu_the_exports_stand_for_kernels() -> None:
    assert seen(row(), has_device=False).kernels == {"cutile_relu": 3}
