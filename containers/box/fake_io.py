"""A box for tests of stage programs: real folders, and a function in place of processes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farm.recipes import ProcessResult

#: What a process does and how it ends.
FakeProcess = Callable[[Sequence[str]], ProcessResult]


def ends(exit_code: int = 0, output: str = "", *, timed_out: bool = False) -> ProcessResult:
    """How a process ended, in no time."""
    return ProcessResult(exit_code=exit_code, output=output, timed_out=timed_out, seconds=0.0)


class FakeBoxIO:
    """`farm.recipes.BoxIO` over folders below `root`; every process is `process`."""

    def __init__(self, root: Path, process: FakeProcess) -> None:
        self.workspace = root / "work"
        self.out = root / "out"
        self.toolchain = root / "toolchain"
        for folder in (self.workspace, self.out, self.toolchain):
            folder.mkdir(parents=True, exist_ok=True)
        self.lines: list[str] = []  #: what was logged
        self.started: list[tuple[str, ...]] = []  #: argv of each process
        self._process = process

    def run(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> ProcessResult:
        """See BoxIO."""
        self.started.append(tuple(argv))
        return self._process(argv)

    def log(self, text: str) -> None:
        """See BoxIO."""
        self.lines.append(text)
