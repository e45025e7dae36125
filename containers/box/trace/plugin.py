"""The pytest plugin: runs one backend's rows under fake tensors and writes down how each ended."""

import gc
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, Generic, TypeVar

import pytest

from containers.box.trace.addresses import AddressBook
from containers.box.trace.answers import Answer, ComparisonReached, MetadataMismatch
from containers.box.trace.failure import in_words
from containers.box.trace.fake_tensors import ClaimMode, StorageMode, in_engine
from containers.box.trace.rows import backend_of, is_case, numbered, row_key
from containers.box.trace.stack import Whereabouts
from containers.box.trace.steps import StepLog
from farm.analysis import NO_LAUNCH, HostStep, RowStatus

L = TypeVar("L")
Take = Callable[[], tuple[tuple[L, ...], str | None]]


class RowRecord(Generic[L]):
    """How one row ended."""

    def __init__(self, key: str, node: str) -> None:
        self.key = key
        self.node = node
        self.status = RowStatus.FAILED
        self.reason: str | None = "the row did not run"
        self.launches: tuple[L, ...] = ()
        self.steps: tuple[HostStep, ...] = ()


class RowPlugin(Generic[L]):
    """Selects and runs the rows of one backend.

    `begin` is told when a row starts and gets its addresses; `launched` counts the launches since then;
    `take` gives them and, when something makes them worthless, the reason. With `must_launch` a row that
    ran to its end without a launch is failed.
    """

    def __init__(
        self,
        *,
        backend: str,
        where: Whereabouts,
        begin: Callable[[AddressBook], None],
        take: "Take[L]",
        launched: Callable[[], int],
        must_launch: bool,
        journal: Path,
        crashed: Mapping[str, str],
    ) -> None:
        self._backend = backend
        self._must_launch = must_launch
        self._journal = journal
        self._crashed = crashed
        self._where = where
        self._begin = begin
        self._take = take
        self._launched = launched
        self._answered: set[CodeType] = set()
        self._uncollected = False
        self.records: dict[str, RowRecord[L]] = {}

    @property
    def void_by_accident(self) -> bool:
        """Whether there is no row because a test file was skipped or broken as a whole."""
        return self._uncollected and not self.records

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the backend's rows alone."""
        mine = [
            item
            for item in items
            if backend_of(self._params(item)) == self._backend
            and is_case(getattr(item, "originalname", item.name))
        ]
        items[:] = mine
        keys = numbered([self._key(item) for item in mine])
        for item, key in zip(mine, keys, strict=True):
            record = self.records[item.nodeid] = RowRecord(key, item.nodeid)
            record.reason = self._crashed.get(item.nodeid, record.reason)
        self._write({"collected": [{"key": r.key, "node": r.node} for r in self.records.values()]})
        items[:] = [item for item in mine if item.nodeid not in self._crashed]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed or (report.skipped and isinstance(report.longrepr, tuple)):
            self._uncollected = True
            self._write({"uncollected": f"{report.nodeid}: {_why(report.longrepr)}"})

    def pytest_collection_finish(self) -> None:
        """Take everything imported so far out of the collector's sight: tests collect garbage in each row."""
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Run the row under fake tensors and judge its end."""
        record = self.records[item.nodeid]
        self._write({"started": item.nodeid})
        self._answered = set()
        book = AddressBook(self._where.maker)
        self._begin(book)
        steps = StepLog(
            book=book, maker=self._where.maker, launched=self._launched, in_autograd=self._where.in_autograd
        )
        claim = ClaimMode(book, steps, self._where.maker, self._note)
        try:
            with StorageMode(book, steps), claim, in_engine(claim):
                yield
        except pytest.skip.Exception as skipped:
            record.status, record.reason = RowStatus.SKIPPED, str(skipped.msg)
            raise
        except BaseException as error:
            record.launches, problem = self._take()
            record.steps = tuple(steps.steps)
            record.reason = problem or self._fault(error, record.launches)
            record.status = RowStatus.FAILED if record.reason else RowStatus.TRACED
            if record.status is RowStatus.FAILED or not isinstance(error, Exception):
                raise
            return None
        record.launches, problem = self._take()
        record.steps = tuple(steps.steps)
        record.reason = problem or (NO_LAUNCH if self._must_launch and not record.launches else None)
        record.status = RowStatus.FAILED if record.reason else RowStatus.TRACED
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note rows that ended before their call."""
        if report.when != "setup" or report.passed:
            return
        record = self.records[report.nodeid]
        record.status = RowStatus.SKIPPED if report.skipped else RowStatus.FAILED
        record.reason = _last_line(report.longrepr)

    def _write(self, line: dict[str, Any]) -> None:
        with self._journal.open("a") as journal:
            journal.write(json.dumps(line) + "\n")

    def _note(self) -> None:
        self._answered |= self._where.test_codes()

    def _fault(self, error: BaseException, launches: tuple[L, ...]) -> str | None:
        """Why the row counts as failed, or None when it ended at a comparison of values."""
        text = f"{type(error).__name__}: {_first_line(error)} ({_place(error)})"
        if isinstance(error, ComparisonReached) or self._misused_answer(error):
            return None if launches else f"values were needed before the first launch: {text}"
        guessed = isinstance(error, AssertionError) and not isinstance(error, MetadataMismatch)
        if guessed and launches and self._innermost(error) in self._answered:
            return None
        if launches and self._about_strides(error):
            return None
        return text

    def _innermost(self, error: BaseException) -> CodeType | None:
        """The code of the repo in which the error came up."""
        trace, code = error.__traceback__, None
        while trace is not None:
            if self._where.is_repo(trace.tb_frame.f_code.co_filename):
                code = trace.tb_frame.f_code
            trace = trace.tb_next
        return code

    def _about_strides(self, error: BaseException) -> bool:
        """Whether the test itself found strides unequal: torch's own differ between CPU and GPU kernels.

        The candidate's results are held to the reference's strides when both traces are compared.
        """
        code = self._innermost(error)
        raised = code is not None and self._where.is_test(code.co_filename)
        return raised and isinstance(error, (RuntimeError, AssertionError)) and "stride" in str(error).lower()

    def _misused_answer(self, error: BaseException) -> bool:
        """Whether the test used an answer where only a real number will do, such as an index."""
        misused = isinstance(error, (TypeError, IndexError)) and Answer.__name__ in str(error)
        return misused and self._innermost(error) in self._answered

    def _params(self, item: pytest.Item) -> dict[str, Any]:
        spec = getattr(item, "callspec", None)
        return dict(spec.params) if spec is not None else {}

    def _key(self, item: pytest.Item) -> str:
        function = item.nodeid.split("[", 1)[0]
        spec = getattr(item, "callspec", None)
        return row_key(function, self._params(item), dict(spec.indices) if spec is not None else {})


def _place(error: BaseException) -> str:
    trace, place = error.__traceback__, "?"
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "site-packages" not in file and "/containers/box/" not in file and "/lib/python" not in file:
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else ""


def _why(longrepr: Any) -> str:
    return in_words(str(longrepr[-1] if isinstance(longrepr, tuple) else longrepr), os.getcwd())


def _last_line(longrepr: Any) -> str:
    text = longrepr[-1] if isinstance(longrepr, tuple) else str(longrepr)
    lines = [line for line in str(text).strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "unknown"
