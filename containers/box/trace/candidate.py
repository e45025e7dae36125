"""Records what the target backend's real host code launches, through the stand-in driver."""

import contextlib
import ctypes
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from containers.box.trace.addresses import AddressBook
from containers.box.trace.driver_log import DriverLaunch, module_file, read_events
from containers.box.trace.recorder import Recorder
from containers.box.trace.signatures import disassemble
from farm.analysis import CandidateLaunch


class DriverRecorder:
    """The target backend's launches, row by row."""

    def __init__(self, *, repo: Path, out: Path, standin: Path, disassembler: Path, source: Recorder) -> None:
        self._repo = repo
        self._out = out
        self._standin = standin
        self._disassembler = disassembler
        self._source = source
        self._log = standin / "driver.jsonl"
        self._offset = 0
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._driver.standin_launches.restype = ctypes.c_ulong
        self._before = 0
        self._modules: dict[int, tuple[str, str]] = {}

    def begin(self, book: AddressBook) -> None:
        """A new row starts."""
        self._source.begin(book)
        self._offset = self._log.stat().st_size if self._log.exists() else 0
        self._before = self._driver.standin_launches()
        replace_tuners(self._repo)

    def launched(self) -> int:
        """Launches since the row started."""
        return int(self._driver.standin_launches()) - self._before

    def take(self) -> tuple[tuple[CandidateLaunch, ...], str | None]:
        """The launches since then, and what makes them worthless."""
        text = ""
        if self._log.exists():
            with self._log.open() as log:
                log.seek(self._offset)
                text = log.read()
        events = read_events(text)
        problem = events.problems[0] if events.problems else None
        if self._source.launches:
            problem = f"the row launched the source backend's kernel {self._source.launches[0].kernel}"
        return tuple(self._launch(launch) for launch in events.launches), problem

    def _launch(self, launch: DriverLaunch) -> CandidateLaunch:
        ir, digest = self._module(launch.module)
        return CandidateLaunch(entry=launch.entry, grid=launch.grid, params=launch.params, ir=ir, sha256=digest)

    def _module(self, number: int) -> tuple[str, str]:
        if number not in self._modules:
            recorded = self._standin / module_file(number)
            digest = hashlib.sha256(recorded.read_bytes()).hexdigest()
            folder = self._out / "ir" / "candidate"
            folder.mkdir(parents=True, exist_ok=True)
            bytecode = folder / f"{digest[:12]}.tileirbc"
            text = bytecode.with_suffix(".mlir")
            if not text.exists():
                shutil.copyfile(recorded, bytecode)
                disassemble(self._disassembler, bytecode, text)
            self._modules[number] = (str(text.relative_to(self._out)), digest)
        return self._modules[number]


def replace_tuners(repo: Path) -> None:
    """Make the target backend's tuner take its first config without measuring.

    By the backend's convention the tuner is `autotune_launch(kernel_fn, configs, key, ...)`, which returns
    a `TunedResult` of its own module; every module of the repo that holds it gets the stand-in.
    """
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        tuner = getattr(module, "autotune_launch", None) if file and file.startswith(str(repo)) else None
        if isinstance(tuner, FunctionType) and "TunedResult" in tuner.__globals__:
            vars(module)["autotune_launch"] = _first_config(tuner.__globals__["TunedResult"])


def _first_config(result: Callable[..., Any]) -> Callable[..., Any]:
    def autotune_launch(kernel_fn: Callable[[Any], Any], configs: Sequence[Any], *_: Any, **__: Any) -> Any:
        first = next(iter(configs))
        return result(best_config=first, output=kernel_fn(first), tuning_record=[(first, 1.0)], cache_hit=False)

    return autotune_launch


@contextlib.contextmanager
def library_in_place(library: str | None) -> Iterator[None]:
    """While it lasts, cffi opens `library` where the repo asks for a file of that name."""
    if library is None:
        yield
        return
    import cffi  # the reference mode does without it

    library_type: Any = cffi.FFI
    opened = library_type.dlopen

    def dlopen(ffi: Any, name: Any, flags: int = 0) -> Any:
        same = isinstance(name, str) and Path(name).name == Path(library).name
        return opened(ffi, library if same else name, flags)

    library_type.dlopen = dlopen
    try:
        yield
    finally:
        library_type.dlopen = opened
