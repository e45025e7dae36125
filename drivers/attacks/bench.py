"""Puts candidates through the gates: parts as processes, records of the source side once an op, one ruling."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from containers.box.gate.processes import kill_tree
from containers.box.gate.subject import Subject
from containers.box.gate.unpack import tampered
from drivers.attacks import trees
from drivers.attacks.judge import BLOCKS, LIMIT_S
from drivers.attacks.model import OWN_PARTS, Attack, Edit, Expected, Part, Refusal, Verdict, Where
from farm.errors import FarmError
from farm.gates import Ruling
from farm.measured.model import Plan, Settings
from farm.measured.reading import read_records
from farm.measured.records import Foul
from farm.measured.ruling import Record, rule

_OUTPUT = 2000


class PartFailed(FarmError):
    """A part of the gates ended by an error; report this as a defect."""


class Prepared:
    """The base of some attacks with its source-side records, made when first needed, by one thread."""

    def __init__(self, bench: "Bench", op: str, edits: tuple[Edit, ...], folder: Path) -> None:
        self._bench, self._folder, self._lock = bench, folder, threading.Lock()
        self.base = trees.base_of(op, edits)
        self._written: tuple[Path, Path] | None = None
        self._records: tuple[Record, ...] | None = None

    def written(self) -> tuple[Path, Path]:
        """The bare base, and the one whose library counts."""
        with self._lock:
            if self._written is None:
                self._written = trees.write_base(self.base, self._folder)
            return self._written

    def copied(self, folder: Path) -> tuple[Path, Path]:
        """Copies of both for one candidate, which could write to them."""
        return tuple(shutil.copytree(tree, folder / tree.name) for tree in self.written())  # type: ignore[return-value]

    def fouls(self, subject: Subject, bare: Path, part: Part) -> list[Record]:
        """As the runner on a GPU machine notes them after each part."""
        found = tampered(self.base.bare.tree, bare, made=(trees.LOOPS,))
        return [Foul(subject=subject.id, what=f"bare/{path} was changed during {part.value}") for path in found]

    def records(self, subject: Subject) -> tuple[Record, ...]:
        """Rows of the source, and with null kernels."""
        with self._lock:
            if self._records is None:
                parts = (Part.SOURCE, Part.NULL)
                self._records = tuple(r for part in parts for r in self._bench.part(subject, part, self._folder))
            return self._records

    @property
    def loops(self) -> Path:
        """The source's real library."""
        return self._folder / "loops.so"


class Bench:
    """One run of the corpus in a scratch folder. Its methods may be called by several threads."""

    def __init__(self, python: Path, libraries: Path, scratch: Path) -> None:
        """`python` has torch; `libraries` holds the packages farm, containers and drivers.attacks alone."""
        self._python, self._libraries, self._scratch = python, libraries, scratch
        self._lock = threading.Lock()
        self._bases: dict[tuple[str, tuple[Edit, ...]], Prepared] = {}
        self._judged: dict[tuple[str, str], Verdict] = {}
        self._busy: dict[tuple[str, str], threading.Lock] = {}
        self._count = 0

    def cheat(self, attack: Attack) -> Verdict:
        """Try the cheat; the part that is to catch it first, the others only if it does not."""
        rest = tuple(part for part in OWN_PARTS if part is not attack.first)
        return self._judge(attack, attack.cheat, (attack.first, *rest), attack.expected)

    def twin(self, attack: Attack) -> Verdict:
        """Try the honest twin by all parts. Twins with equal patches are judged once."""
        prepared = self._prepared(attack)
        key = (
            json.dumps([asdict(edit) for edit in attack.base]),
            trees.patch_of(prepared.base, attack.twin).digest,
        )
        with self._lock:
            own = self._busy.setdefault(key, threading.Lock())
        with own:
            if key not in self._judged:
                self._judged[key] = self._judge(attack, attack.twin, OWN_PARTS, None)
            return self._judged[key]

    def part(self, subject: Subject, part: Part, folder: Path, loops: Path | None = None) -> tuple[Record, ...]:
        """Run one part as a process. Raises PartFailed."""
        folder = folder / part.value
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        out, log = folder / "records.jsonl", folder / "log"
        order = {
            "subject": {n: str(v) if isinstance(v, Path) else v for n, v in asdict(subject).items()},
            "part": part.value,
            "out": str(out),
            "loops": str(loops),
            "scratch": str(folder),
        }
        request = folder / "request.json"
        request.write_text(json.dumps(order))
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [self._python, "-P", "-m", "drivers.attacks.judge", request],
                cwd=folder,
                env={**kept, "HOME": str(folder), "PYTHONPATH": str(self._libraries), "PYTHONHASHSEED": "0"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=LIMIT_S + 60)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                kill_tree(process)
        if code != 0:
            said = log.read_text(errors="replace").strip()[-_OUTPUT:]
            raise PartFailed(f"{part.value} ended with {code}: {said}")
        return tuple(read_records(out.read_text().splitlines()))

    def _judge(
        self, attack: Attack, edits: Sequence[Edit], parts: Sequence[Part], expected: Expected | None
    ) -> Verdict:
        began = time.monotonic()
        prepared = self._prepared(attack)
        patch = trees.patch_of(prepared.base, edits)
        refusals = [
            Refusal(where=Where.CHANGE_SET, ruling=Ruling.FAIL, reason=f"{found.path} {found.reason}")
            for found in trees.violations(prepared.base, patch)
        ]
        if refusals:
            return Verdict(refusals=tuple(refusals), seconds=time.monotonic() - began)
        folder = self._folder()
        bare, counted = prepared.copied(folder)
        subject = trees.write_candidate(prepared.base, patch, bare, folder)
        records = [*prepared.records(subject)]
        settings = Settings(
            subject=subject.id,
            op=subject.op,
            patch_sha256=patch.digest,
            gpu="none",
            toolchain={},
            entries=subject.entries,
            plan=Plan(blocks=BLOCKS, times=1),
        )
        for part in parts:
            judged = replace(subject, bare=counted) if part is Part.TIMING else subject
            records += self.part(judged, part, folder, prepared.loops)
            records += prepared.fouls(subject, bare, part)
            refusals = [refusal for refusal in ruled(records, settings) if refusal.ruling is Ruling.FAIL]
            if expected is not None and any(refusal.meets(expected) for refusal in refusals):
                break
        else:
            refusals = ruled(records, settings)
        shutil.rmtree(folder, ignore_errors=True)
        return Verdict(refusals=tuple(refusals), seconds=time.monotonic() - began)

    def _prepared(self, attack: Attack) -> Prepared:
        with self._lock:
            key = (attack.op, attack.base)
            if key not in self._bases:
                self._bases[key] = Prepared(self, attack.op, attack.base, self._new_folder())
            return self._bases[key]

    def _folder(self) -> Path:
        with self._lock:
            return self._new_folder()

    def _new_folder(self) -> Path:
        # Numbered: no path tells a candidate, or what judges it, which attack it is.
        self._count += 1
        folder = self._scratch / f"c{self._count}"
        folder.mkdir()
        return folder


def ruled(records: Sequence[Record], settings: Settings) -> list[Refusal]:
    """Gates that do not pass."""
    measured = rule(records, settings)
    return [
        Refusal(where=Where(result.gate.value), ruling=result.ruling, reason=result.summary)
        for result in measured.gates
        if result.ruling is not Ruling.PASS
    ]


def libraries(folder: Path) -> Path:
    """The packages that the processes import, copied beside nothing else."""
    import containers
    import drivers
    import farm

    left_out = shutil.ignore_patterns("__pycache__", "_data", "native")
    for package in (farm, containers):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, folder / source.name, ignore=left_out)
    source = Path(str(drivers.__file__)).parent
    shutil.copytree(source / "attacks", folder / "drivers" / "attacks", ignore=left_out)
    (folder / "drivers" / "__init__.py").write_text("")
    return folder
