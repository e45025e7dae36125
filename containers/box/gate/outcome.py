"""Writes results: each part's records appended as a stretch of its kind's file, results.json after each part."""

import gzip
import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path

from containers.box.files import write_json
from containers.box.gate.machine import Machine
from farm.errors import BundleRefused, UsageError
from farm.results import RESULTS, Ended, PartRun, Results, parse_results

LOGS = "logs.txt.gz"


class Outcome:
    """The results folder of one run of a bundle; what an earlier run of it left there is kept.

    One thread at a time may call it.
    """

    def __init__(self, folder: Path, *, bundle: str, machine: Machine, isolation: dict[str, str]) -> None:
        """Raises UsageError when the folder holds results of another bundle or another kind of machine."""
        self._folder = folder
        self._machine = machine
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        self._results = Results(
            bundle=bundle,
            machine=machine.facts,
            gpu_uuid=machine.gpu_uuid,
            isolation=isolation,
            parts=(),
            started_at=now,
            ended_at=now,
        )
        if (folder / RESULTS).exists():
            self._take_over()
        self._write()

    @property
    def results(self) -> Results:
        """What is there now."""
        return self._results

    def has(self, subject: str, part: str) -> bool:
        """Whether the part came to its end in this or an earlier run."""
        known = self._known(subject, part)
        return known is not None and known.ended is Ended.DONE

    def add(self, run: PartRun, file: str, lines: bytes) -> PartRun:
        """Keep a part's end and its records, one a line; what an earlier try of it left is replaced."""
        known = self._known(run.subject, run.part)
        if known is not None and run.ended is Ended.NOT_RUN:
            return known  # what an earlier try got is better than nothing
        self._forget(known)
        run = replace(run, gpu_uuid=self._machine.gpu_uuid)
        if lines:
            stretch = gzip.compress(lines, mtime=0)
            path = self._folder / file
            offset = path.stat().st_size if path.exists() else 0
            with path.open("ab") as out:
                out.write(stretch)
                out.flush()
                os.fsync(out.fileno())
            run = replace(
                run,
                file=file,
                offset=offset,
                size=len(stretch),
                sha256=hashlib.sha256(stretch).hexdigest(),
                records=lines.count(b"\n"),
            )
        self._results = replace(self._results, parts=(*self._results.parts, run), ended_at=time.time())
        self._write()
        return run

    def log(self, text: str) -> None:
        """Append to the log, which nothing is computed from."""
        with (self._folder / LOGS).open("ab") as out:
            out.write(gzip.compress(text.encode("utf-8", "replace"), mtime=0))

    def note(self, sentence: str) -> None:
        """Keep what a reader should know."""
        if sentence not in self._results.notes:
            self._results = replace(self._results, notes=(*self._results.notes, sentence))
            self._write()

    def _known(self, subject: str, part: str) -> PartRun | None:
        return next((run for run in self._results.parts if (run.subject, run.part) == (subject, part)), None)

    def _forget(self, old: PartRun | None) -> None:
        if old is None:
            return
        kept = [run for run in self._results.parts if run is not old]
        if old.file is not None:
            path = self._folder / old.file
            data = path.read_bytes()
            partial = path.with_name(f"{path.name}.partial")
            partial.write_bytes(data[: old.offset] + data[old.offset + old.size :])
            kept = [
                replace(run, offset=run.offset - old.size)
                if run.file == old.file and run.offset > old.offset
                else run
                for run in kept
            ]
            os.replace(partial, path)
        self._results = replace(self._results, parts=tuple(kept))

    def _take_over(self) -> None:
        try:
            found = parse_results((self._folder / RESULTS).read_bytes())
        except BundleRefused as error:
            raise UsageError(f"{self._folder}: {error}; give another folder") from error
        if found.bundle != self._results.bundle:
            raise UsageError(f"{self._folder} holds results of another bundle; give another folder")
        if found.machine != self._results.machine:
            raise UsageError(
                f"{self._folder} holds results of another kind of machine ({json.dumps(found.machine.versions)}, "
                f"{found.machine.gpu}); give another folder, `farm import` takes several"
            )
        for name in {run.file for run in found.parts if run.file is not None}:
            # A run that was killed between the two writes left records that nothing vouches for.
            end = max(run.offset + run.size for run in found.parts if run.file == name)
            if (self._folder / name).stat().st_size > end:
                os.truncate(self._folder / name, end)
        self._results = replace(self._results, parts=found.parts, notes=found.notes, started_at=found.started_at)

    def _write(self) -> None:
        write_json(self._folder / RESULTS, self._results)
