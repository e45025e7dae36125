"""Runs the gates of a bundle: unpack, rows and probes of several subjects at once, then timing, one at a time.

`python DIR/run -o RESULTS` ends here. It decides nothing: `farm import` rules from what is recorded.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from containers.box.files import write_json
from containers.box.gate.machine import look
from containers.box.gate.outcome import Outcome
from containers.box.gate.parts import FILES, PARTS, Group, PartRequest
from containers.box.gate.processes import environment, isolation, kill_tree, without_network
from containers.box.gate.unpack import unpack, unpack_collector
from farm.bundle import Bundle, read_bundle
from farm.errors import BundleRefused, UsageError
from farm.results import Ended, PartRun

#: A part's program has this long after its limit to end by itself before it is killed.
GRACE_S = 30.0
#: A part is not begun with less time than this.
LEAST_S = 15.0
#: Characters of a part's output that are kept.
OUTPUT = 40_000
INFRA, USAGE = 1, 2


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="run", description="Run the gates of this bundle.")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="RESULTS", help="folder for the results")
    parser.add_argument(
        "--only", type=lambda text: Group(text.lower()), action="append", choices=list(Group), metavar="GROUP",
        help="rows, probes or timing; may be given again; without it, all",
    )  # fmt: skip
    parser.add_argument("--subjects", metavar="IDS", help="ids or ops with commas between; without it, all")
    parser.add_argument("--jobs", type=int, help="subjects at once, for rows and probes")
    parser.add_argument("--row-jobs", type=int, default=1, help="rows of a subject at once")
    parser.add_argument("--part-limit-s", type=float, default=1800.0, help="longest that one part may take")
    parser.add_argument("--time-limit-s", type=float, help="longest that all may take")
    parser.add_argument("--again", action="store_true", help="run parts again whose results are there")
    parser.add_argument("--work", type=Path, help="scratch folder that is kept; without it, a temporary one")
    return parser.parse_args(argv)


def main(bundle: Path, argv: Sequence[str]) -> int:
    """Run what is asked for; 0 when all of it ran, 1 when something could not be, 2 for a wrong command."""
    asked = arguments(argv)
    try:
        manifest = read_bundle(bundle)
        chosen = _chosen(manifest, asked.subjects)
        if asked.work is not None:
            return _run(bundle, manifest, chosen, asked, asked.work.resolve())
        with tempfile.TemporaryDirectory(prefix="tilefarm-gates-", ignore_cleanup_errors=True) as scratch:
            return _run(bundle, manifest, chosen, asked, Path(scratch))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return INFRA if isinstance(error, BundleRefused) else USAGE


def _chosen(manifest: Bundle, text: str | None) -> tuple[str, ...]:
    if text is None:
        return tuple(item.id for item in manifest.subjects)
    words = {word.strip() for word in text.split(",")}
    found = tuple(item.id for item in manifest.subjects if words & {item.id, item.op})
    unknown = words - {name for item in manifest.subjects for name in (item.id, item.op)}
    if unknown:
        known = ", ".join(item.id for item in manifest.subjects)
        raise UsageError(f"the bundle has no {', '.join(sorted(unknown))}; it has {known}")
    return found


def _run(bundle: Path, manifest: Bundle, chosen: Sequence[str], asked: argparse.Namespace, work: Path) -> int:
    work.mkdir(parents=True, exist_ok=True)
    prefix = without_network()
    variables = environment(os.environ, bundle / "lib", work)
    groups = tuple(asked.only or Group)
    machine = look(variables, prefix, manifest.gpu)
    if machine.problems:
        for problem in machine.problems:
            print(f"error: {problem}", file=sys.stderr)
        return INFRA
    outcome = Outcome(asked.out.resolve(), bundle=manifest.digest, machine=machine, isolation=isolation(prefix))
    if machine.facts.arch != manifest.gpu and machine.facts.arch is not None:
        outcome.note(f"the bundle was compiled for {manifest.gpu}, this is {machine.facts.arch}")
    say(f"{machine.facts.gpu or 'no GPU'}, bundle {manifest.digest[:12]}, {len(chosen)} subjects")
    collector = unpack_collector(bundle, manifest, work)
    if collector is not None:
        variables["TILEFARM_COLLECTOR_LIBRARY"] = str(collector)
    runner = Runner(
        bundle=bundle,
        manifest=manifest,
        work=work,
        prefix=prefix,
        variables=variables,
        outcome=outcome,
        part_limit_s=asked.part_limit_s,
        deadline=None if asked.time_limit_s is None else time.monotonic() + asked.time_limit_s,
        row_jobs=asked.row_jobs,
        again=asked.again,
    )
    at_once = asked.jobs or max(1, min(len(chosen), (os.cpu_count() or 2) // 2))
    together = [part for part, group in PARTS.items() if group is not Group.TIMING and group in groups]
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        list(pool.map(lambda subject: runner.all(subject, together), chosen))
    if Group.TIMING in groups:
        for subject in chosen:
            runner.all(subject, ["timing"])
    return runner.summary(chosen, [part for part, group in PARTS.items() if group in groups])


@dataclass(kw_only=True)
class Runner:
    """Runs parts as processes and keeps how they ended."""

    bundle: Path
    manifest: Bundle
    work: Path
    prefix: Sequence[str]
    variables: dict[str, str]
    outcome: Outcome
    part_limit_s: float
    deadline: float | None  #: monotonic
    row_jobs: int
    again: bool

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
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
        if subject not in self._unpacked:
            unpack(self.bundle, next(item for item in self.manifest.subjects if item.id == subject), self.work)
            self._unpacked.add(subject)
        folder = self.work / "parts" / f"{subject}.{part}"
        folder.mkdir(parents=True, exist_ok=True)
        request, records, log = folder / "request.json", folder / "records.jsonl", folder / "log.txt"
        records.unlink(missing_ok=True)
        order = PartRequest(
            bundle=str(self.bundle),
            work=str(self.work),
            subject=subject,
            part=part,
            limit_s=limit_s,
            jobs=self.row_jobs,
            out=str(records),
        )
        write_json(request, order)
        say(f"{subject} {part}: begins, {limit_s:.0f} s")
        started = time.monotonic()
        command = (*self.prefix, sys.executable, "-P", "-m", "containers.box.gate.parts", str(request))
        ended, reason = self._process(command, log, limit_s + GRACE_S)
        lines = _whole_lines(records)
        text = log.read_text(encoding="utf-8", errors="replace")
        if ended is Ended.FAILED and reason is not None:
            reason = f"{reason}: {(text.strip().splitlines() or ['no word'])[-1]}"
        self._end(subject, part, ended, reason, time.monotonic() - started, limit_s, lines, text)

    def _process(self, command: Sequence[str], log: Path, limit_s: float) -> tuple[Ended, str | None]:
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self.work,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
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

    def summary(self, subjects: Sequence[str], parts: Sequence[str]) -> int:
        """Say what did not come to its end; the exit code."""
        missing = [f"{s} {p}" for s in subjects for p in parts if not self.outcome.has(s, p)]
        if missing:
            say(f"not run to the end: {', '.join(missing)}")
        say("the results are whole" if not missing else "give the same command again to run what is missing")
        return INFRA if missing else 0


def _whole_lines(path: Path) -> bytes:
    """A record file without a torn last line."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def say(text: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(os.environ.get("TILEFARM_BUNDLE", ".")).resolve(), sys.argv[1:]))
