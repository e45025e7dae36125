"""The pytest plugin: collects one backend's rows, then runs those that the parent asks for, in its order."""

import fnmatch
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from containers.box.gate.rows.brackets import Brackets
from containers.box.gate.rows.marks import Marks
from containers.box.gate.rows.messages import Channel, Collection, Command, ItemName, Request, RowEnd
from containers.box.gate.rows.nulls import Key, Null
from containers.box.trace.rows import backend_of, is_case, numbered, row_key
from farm.measured.records import Outcome

_REASON_CHARACTERS = 500
# Bound before any code that is judged is imported.
_now = time.perf_counter
_synchronize = torch.cuda.synchronize


class RowRunner:
    """Runs rows one by one; pytest's own loop is replaced."""

    def __init__(
        self, request: Request, channel: Channel, marks: Marks, brackets: Brackets, ready: Callable[[], None]
    ) -> None:
        self._request = request
        self._channel = channel
        self._marks = marks
        self._brackets = brackets
        self._ready = ready
        self._items: dict[str, pytest.Item] = {}
        self._uncollected: list[str] = []
        self._last: dict[Key, torch.Tensor] = {}
        self._outcome = Outcome.NOT_RUN
        self._reason: str | None = None
        self.told = False  #: the parent knows what was collected

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the backend's rows alone, by its parameter."""
        items[:] = [item for item in items if self._is_row(item)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed or (report.skipped and isinstance(report.longrepr, tuple)):
            text = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._uncollected.append(f"{report.nodeid}: {_short(text, last=True)}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tell what there is, then do as told."""
        keys = numbered([_key(item) for item in session.items])
        self._items = {item.nodeid: item for item in session.items}
        rows = tuple(ItemName(key=key, node=i.nodeid) for key, i in zip(keys, session.items, strict=True))
        try:
            self._ready()
        except Exception as error:
            self.tell(problem=f"the repo's registry: {type(error).__name__}: {error}")
            return True
        self.tell(rows)
        for command in self._channel.commands():
            end = self._run(command)
            self._channel.send(end)
            if end.broken:
                break
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Take the outcome of setup, call and teardown."""
        report = yield
        if report.failed:
            self._outcome = Outcome.FAILED
            self._reason = _short(call.excinfo.exconly() if call.excinfo else str(report.longrepr))
        elif report.skipped and self._outcome is not Outcome.FAILED:
            self._outcome = Outcome.SKIPPED
            self._reason = _skip_reason(report)
        elif report.when == "call" and self._outcome is Outcome.NOT_RUN:
            self._outcome = Outcome.PASSED
        return report

    def tell(self, rows: tuple[ItemName, ...] = (), problem: str | None = None) -> None:
        """Send the parent what was collected."""
        uncollected = (*self._uncollected, problem) if problem else tuple(self._uncollected)
        has_device = torch.cuda.is_available()
        self._channel.send(Collection(rows=rows, uncollected=uncollected, has_device=has_device))
        self.told = True

    def _run(self, command: Command) -> RowEnd:
        item = self._items[command.node]
        null = Null(command.null, self._last) if command.null else None
        self._outcome, self._reason = Outcome.NOT_RUN, None
        self._brackets.begin_row(null)
        broken = not _answers(lambda: self._marks.begin_row(watch=command.watch))
        began = _now()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        seconds = _now() - began
        results, backwards = self._brackets.results, self._brackets.backwards
        broken = broken or not _answers(_look_at_device)
        marks, exports = self._marks.end_row() if not broken else ((), {})
        return RowEnd(
            node=command.node,
            number=command.number,
            outcome=self._outcome,
            reason=self._reason,
            seconds=seconds,
            results=results,
            backwards=backwards,
            marks=marks,
            exports=exports,
            no_null=null.unfit if null else None,
            broken=broken,
        )

    def _is_row(self, item: pytest.Item) -> bool:
        function = getattr(item, "originalname", None) or item.name
        spec = getattr(item, "callspec", None)
        backend = backend_of(spec.params) if spec is not None else None
        measures = any(fnmatch.fnmatchcase(function, glob) for glob in self._request.perf)
        return backend == self._request.backend and is_case(function) and not measures


def _key(item: pytest.Item) -> str:
    spec: Any = getattr(item, "callspec", None)
    return row_key(item.nodeid.split("[", 1)[0], spec.params, dict(spec.indices))


def _look_at_device() -> None:
    if torch.cuda.is_initialized():
        _synchronize()


def _answers(look: Callable[[], None]) -> bool:
    """Whether the device still does: after an illegal access, every call of the process fails."""
    try:
        look()
    except Exception:
        return False
    return True


def _skip_reason(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}"
    text = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return _short(text.removeprefix("Skipped: "))


def _short(text: str, *, last: bool = False) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if last and lines else " | ".join(lines))[:_REASON_CHARACTERS] or "unknown"
