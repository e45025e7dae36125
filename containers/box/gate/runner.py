"""Runs parts as processes: what they get, how long they may take, how they ended."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.box.files import write_json
from containers.box.gate.outcome import Outcome
from containers.box.gate.parts import FILES, PARTS, PartRequest
from containers.box.gate.processes import Stranger, kill_tree
from containers.box.gate.subject import record_line
from containers.box.gate.unpack import source_tampered, unpack
from farm.bundle import Bundle, BundleSubject
from farm.measured.records import Foul
from farm.results import Ended, PartRun

#: A part's program has this long after its limit to end by itself before it is killed.
GRACE_S = 30.0
#: A part is not begun with less time than this.
LEAST_S = 15.0
#: Characters of a part's output that are kept.
OUTPUT = 40_000
#: Bytes of records that are read at a time.
_CHUNK = 1 << 16


@dataclass(kw_only=True)
class Runner:
    """Runs parts as processes and keeps how they ended."""

    bundle: Path
    manifest: Bundle
    work: Path  #: scratch folder of the parts
    control: Path  #: of the runner alone: what it tells parts, and what they recorded
    stranger: Stranger | None  #: who parts run as; None: as the runner
    prefix: Sequence[str]
    variables: dict[str, str]
    outcome: Outcome
    part_limit_s: float
    deadline: float | None  #: monotonic
    workers: int  #: rows or probes of a part at a time
    configs: int | None
    again: bool

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._unpacking = threading.Lock()
        self._unpacked: set[str] = set()

    def all(self, subject: str, parts: Sequence[str]) -> None:
        """Run parts of one subject one after the other; those with results are left out."""
        for part in parts:
            if not self.again and self.outcome.has(subject, part):
                say(f"{subject} {part}: there already")
                continue
            try:
                self._part(subject, part)
            except Exception as error:  # one subject's trouble must not end the others
                self._end(subject, part, Ended.FAILED, f"the runner: {type(error).__name__}: {error}", 0.0, 0.0)

    def _part(self, subject: str, part: str) -> None:
        limit_s = self.part_limit_s
        if self.deadline is not None:
            limit_s = min(limit_s, self.deadline - time.monotonic() - GRACE_S)
        if limit_s < LEAST_S:
            self._end(subject, part, Ended.NOT_RUN, "no time was left", 0.0, max(limit_s, 0.0))
            return
        self._unpack(subject)
        folder = self.control / f"{subject}.{part}"
        folder.mkdir(parents=True, exist_ok=True)
        request, records, log = folder / "request.json", folder / "records.jsonl", folder / "log.txt"
        records.unlink(missing_ok=True)
        say(f"{subject} {part}: begins, {limit_s:.0f} s")
        started = time.monotonic()
        reading, writing = os.pipe()
        order = PartRequest(
            bundle=str(self.bundle),
            work=str(self.work),
            subject=subject,
            part=part,
            limit_s=limit_s,
            workers=self.workers,
            configs=self.configs,
            out=f"/dev/fd/{writing}",
            uid=None if self.stranger is None else self.stranger.uid,
        )
        write_json(request, order)
        # Records come through a pipe into a file of the runner's: who runs the candidate cannot change them later.
        copier = threading.Thread(target=_copy, args=(reading, records), daemon=True)
        copier.start()
        command = (*self.prefix, sys.executable, "-P", "-m", "containers.box.gate.parts", str(request))
        try:
            ended, reason = self._process(command, log, limit_s + GRACE_S, writing)
        finally:
            copier.join(timeout=GRACE_S)
        lines = _whole_lines(records) + self._fouls(subject, part)
        text = log.read_text(encoding="utf-8", errors="replace")
        if ended is Ended.FAILED and reason is not None:
            reason = f"{reason}: {(text.strip().splitlines() or ['no word'])[-1]}"
        self._end(subject, part, ended, reason, time.monotonic() - started, limit_s, lines, text)

    def _fouls(self, subject: str, part: str) -> bytes:
        """A record for each file that only the candidate can have changed, and that is not its own."""
        found = source_tampered(self.bundle, self._item(subject), self.work)
        fouls = (Foul(subject=subject, what=f"{path} was changed during {part}") for path in found)
        return b"".join(record_line(foul).encode() for foul in fouls)

    def _item(self, subject: str) -> BundleSubject:
        return next(item for item in self.manifest.subjects if item.id == subject)

    def _unpack(self, subject: str) -> None:
        with self._unpacking:
            if subject in self._unpacked:
                return
            unpack(self.bundle, self._item(subject), self.work)
            if self.stranger is not None:
                self.stranger.give(self.work / subject)
            self._unpacked.add(subject)

    def _process(
        self, command: Sequence[str], log: Path, limit_s: float, records: int
    ) -> tuple[Ended, str | None]:
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.work,
                    env=self.variables,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    pass_fds=(records,),
                    start_new_session=True,
                )
            finally:
                os.close(records)
            try:
                code = process.wait(timeout=limit_s)
            except subprocess.TimeoutExpired:
                return Ended.LIMIT, f"killed after {limit_s:.0f} s"
            finally:
                kill_tree(process)
        return (Ended.DONE, None) if code == 0 else (Ended.FAILED, f"ended with {code}")

    def _end(
        self,
        subject: str,
        part: str,
        ended: Ended,
        reason: str | None,
        seconds: float,
        limit_s: float,
        lines: bytes = b"",
        log: str = "",
    ) -> None:
        run = PartRun(subject=subject, part=part, ended=ended, reason=reason, seconds=seconds, limit_s=limit_s)
        with self._lock:
            run = self.outcome.add(run, FILES[PARTS[part]], lines)
            self.outcome.log(f"=== {subject} {part}: {ended.value} {reason or ''}\n{log[-OUTPUT:]}\n")
        why = "" if reason is None else f" ({reason})"
        say(f"{subject} {part}: {ended.value}{why}, {seconds:.0f} s, {run.records} records")

    def whole(self, subjects: Sequence[str], parts: Sequence[str]) -> bool:
        """Whether all of these parts came to their end; says which did not."""
        missing = [f"{s} {p}" for s in subjects for p in parts if not self.outcome.has(s, p)]
        if missing:
            say(f"not run to the end: {', '.join(missing)}")
        say("the results are whole" if not missing else "give the same command again to run what is missing")
        return not missing


def _copy(source: int, target: Path) -> None:
    """Everything from a pipe into a file, until its last writer is gone."""
    with os.fdopen(source, "rb", buffering=0) as pipe, target.open("wb", buffering=0) as file:
        while data := pipe.read(_CHUNK):
            file.write(data)


def _whole_lines(path: Path) -> bytes:
    """A record file without a torn last line."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def say(text: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)
