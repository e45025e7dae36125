"""The farm's one error tree.

Each class carries the exit code that a command ends with and the fault that a job is charged with.
The docstring is the default message and says what to do next. Outcomes that we route on are values
(`Verdict`, `Ruling`), never exceptions.
"""

from typing import ClassVar

from farm.fault import Fault


class FarmError(Exception):
    """Something went wrong that nobody planned; run `farm doctor` and see the log."""

    exit_code: ClassVar[int] = 1
    fault: ClassVar[Fault] = Fault.INFRA
    #: What a person should do, where the message does not say it.
    next_step: str | None = None

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class UsageError(FarmError):
    """The command cannot be carried out as written; see `farm --help`."""

    exit_code = 2


class ConfigurationError(UsageError):
    """A settings or recipe file has mistakes; all of them are listed, correct them and run it again."""


class UnknownOp(UsageError):
    """The target repo has no such op; `farm ops` lists what it has."""


class UnknownRun(UsageError):
    """There is no such run; `farm status` lists them."""


class UnknownJob(UsageError):
    """There is no such job; `farm status RUN` lists a run's jobs."""


class RepositoryError(UsageError):
    """The target repo or revision cannot be used; check --repo and --base."""


class UnreadableFile(RepositoryError):
    """A file of the target repo is not what the recipe reads there; the message shows the place."""

    fault = Fault.UNSUPPORTED

    def __init__(self, file: str, line: int, column: int, message: str, next_step: str) -> None:
        super().__init__(f"{file}:{line}:{column}: {message}")
        self.file = file  #: path in the target repo
        self.line = line  #: from 1
        self.column = column  #: from 1
        self.message = message  #: without the place
        self.next_step = next_step


class EngineUnavailable(FarmError):
    """No container engine answers; install Docker (apt install docker.io) and start it."""


class ToolchainMissing(FarmError):
    """The conversion toolchain is not installed; run `farm toolchain install`."""

    fault = Fault.ENV


class BrokerUnavailable(FarmError):
    """Redis does not answer; `farm up` starts the embedded one."""


class NoSpace(FarmError):
    """The disk is too full to start a job; free space in the state folder and run it again."""


class StaleFence(FarmError):
    """Another worker holds this job now; this one must stop without writing."""


class IllegalTransition(FarmError):
    """A job may not move between these states; this is a defect of the farm, please report it."""


class LedgerUnavailable(FarmError):
    """The ledger cannot be opened or written; check that the state folder exists and is writable."""


class LeakFound(FarmError):
    """The hidden answer is readable by the box; the job stops before anything runs."""

    fault = Fault.INTEGRITY


class PatchRefused(FarmError):
    """The box's tree holds something a patch may not carry; nothing was applied."""

    fault = Fault.INTEGRITY


class PatchConflict(FarmError):
    """The patch does not fit the bare base; nothing was applied."""

    fault = Fault.INFRA


class ArtifactMissing(FarmError):
    """The artifact store lacks something the ledger names; restore the state folder or retry the job."""


class NotAccepted(FarmError):
    """A gate has not passed; a commit is made only after all of them have."""

    fault = Fault.INTEGRITY


class BundleRefused(UsageError):
    """The bundle or the results are not as they were written; copy them again."""

    fault = Fault.INTEGRITY


class BuildFailed(FarmError):
    """The library could not be built; see what the compiler said."""

    fault = Fault.KERNEL


class RemoteRefused(FarmError):
    """The remote did not take the branch; check its permissions or give --push-to."""


class RemoteSilent(RemoteRefused):
    """The remote does not answer; check the network and the address."""


class Unsupported(FarmError):
    """The program has no rule for this construct."""

    fault = Fault.UNSUPPORTED


class TileIRError(UsageError):
    """A text is not Tile IR as the disassembler prints it; the message shows the place."""

    def __init__(self, message: str, line: int = 1, column: int = 1, text: str = "", file: str = "") -> None:
        caret = f"\n{text}\n{' ' * (column - 1)}^" if text else ""
        super().__init__(f"{file + ': ' if file else ''}line {line}, column {column}: {message}{caret}")
        self.message = message  #: without the place
        self.line = line  #: from 1
        self.column = column  #: from 1
        self.text = text  #: the whole line; empty where it is not known

    def at(self, file: str) -> "TileIRError":
        """The same error with the name of the file."""
        return TileIRError(self.message, self.line, self.column, self.text, file)


class Defect(FarmError):
    """The farm has a defect; run it again with --debug and report what it prints."""
