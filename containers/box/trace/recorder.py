"""Records what the source backend launches and tunes, in place of doing it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cuda.tile
import cuda.tile.tune
import torch
from cuda.tile._execution import kernel as TileKernel

from containers.box.trace.addresses import AddressBook
from containers.box.trace.signatures import NotCompilable, Specialiser
from farm.analysis import Launch


def in_autograd() -> bool:
    """Whether autograd is going backward."""
    return bool(torch._C._current_graph_task_id() != -1)


class Recorder:
    """The source backend's launches, row by row."""

    def __init__(self, specialiser: Specialiser) -> None:
        self._specialiser = specialiser
        self._book: AddressBook | None = None
        self.launches: list[Launch] = []

    def begin(self, book: AddressBook) -> None:
        """A new row starts, whose addresses come from `book`."""
        self._book = book
        self.launches = []

    def launch(
        self, _stream: Any, grid: Sequence[int], kernel: Any, kernel_args: Sequence[Any], /, **_: Any
    ) -> None:
        """Stands in for cuda.tile.launch."""
        if self._book is None:
            raise RuntimeError("a kernel was launched outside a test row")
        signature, args = self._specialiser.specialise(kernel, tuple(kernel_args), self._book, launched=True)
        extents = tuple(int(extent) for extent in grid)
        x, y, z = (*extents, 1, 1, 1)[:3]
        self.launches.append(
            Launch(
                kernel=signature.kernel,
                signature=signature.id,
                grid=(x, y, z),
                args=args,
                backward=in_autograd(),
            )
        )

    def search(
        self,
        search_space: Sequence[Any],
        _stream: Any,
        _grid_fn: Callable[[Any], Any],
        kernel: Any,
        args_fn: Callable[[Any], Sequence[Any]],
        hints_fn: Callable[[Any], dict[str, Any]] | None = None,
        **_options: Any,
    ) -> Any:
        """Stands in for cuda.tile.tune.exhaustive_search: all are exported, the first valid one wins."""
        if self._book is None:
            raise RuntimeError("a kernel was tuned outside a test row")
        measured: list[Any] = []
        failures: list[tuple[Any, type[BaseException], str]] = []
        for config in search_space:
            base = kernel if isinstance(kernel, TileKernel) else kernel(config)
            hinted = base.replace_hints(**(hints_fn(config) if hints_fn is not None else {}))
            try:
                self._specialiser.specialise(hinted, tuple(args_fn(config)), self._book, launched=False)
            except NotCompilable as error:
                failures.append((config, NotCompilable, str(error)))
                continue
            time_us = 1.0 + len(measured)
            measured.append(
                cuda.tile.tune.Measurement(config=config, mean_us=time_us, num_samples=1, error_margin_us=0.0)
            )
        if not measured:
            reason = failures[0][2] if failures else "the search space is empty"
            raise ValueError(f"no config of the search space is valid: {reason}")
        return cuda.tile.tune.TuningResult(best=measured[0], successes=measured, failures=failures)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, launching and tuning record; entered before the repo is imported."""
        launch, search = cuda.tile.launch, cuda.tile.tune.exhaustive_search
        cuda.tile.launch, cuda.tile.tune.exhaustive_search = self.launch, self.search
        try:
            yield
        finally:
            cuda.tile.launch, cuda.tile.tune.exhaustive_search = launch, search
