"""What came back from a GPU machine: results.json and the records that it vouches for.

Records lie in one compressed file a kind, each part's as a stretch of it: a gzip member of its own, so that
`zcat` reads the whole. Standard library alone: both ends need it.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from farm.codec import CodecError, decode
from farm.errors import BundleRefused
from farm.measured.records import Collected, ConfigFact, Foul, Probe, RowRun, TimedCall

RESULTS = "results.json"
SCHEMA = 1
Record = Collected | RowRun | Probe | ConfigFact | TimedCall | Foul


class Ended(StrEnum):
    """How a part ended."""

    DONE = "done"  #: its program came to its end; what it did not get to is said in its records
    LIMIT = "limit"  #: it was killed at its time limit
    FAILED = "failed"  #: its program died
    NOT_RUN = "not_run"  #: no time was left for it, or it was not asked for


@dataclass(frozen=True, kw_only=True)
class PartRun:
    """One part of the gates for one subject."""

    subject: str
    part: str  #: `source`, `target`, `stub`, `null`, `probes`, `timing`
    ended: Ended
    reason: str | None  #: for other ends than DONE
    seconds: float  #: wall clock
    limit_s: float  #: wall clock that it had
    gpu_uuid: str | None = None  #: which device it ran on
    file: str | None = None  #: where its records are; None: there are none
    offset: int = 0  #: of its stretch of the file, bytes
    size: int = 0  #: of the stretch, bytes
    sha256: str = ""  #: of the stretch
    records: int = 0


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """What the gates ran on. Results are comparable within equal facts."""

    python: str
    gpu: str | None  #: the device's name; None: there is none
    arch: str | None  #: e.g. `sm_90`
    memory_bytes: int | None  #: of the device
    driver: str | None
    versions: dict[str, str]  #: torch, cuda, cuda-tile, tileiras, pytest, numpy


@dataclass(frozen=True, kw_only=True)
class Results:
    """results.json."""

    bundle: str  #: digest of the bundle
    machine: MachineFacts
    gpu_uuid: str | None
    isolation: dict[str, str]  #: what was left of a box: `network`, `user`, `environment`, `files`
    parts: tuple[PartRun, ...]
    started_at: float  #: seconds since the epoch, UTC
    ended_at: float
    notes: tuple[str, ...] = ()  #: what a reader should know, a sentence each
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Results with their records, checked against their digests."""

    results: Results
    parts: dict[tuple[str, str], tuple[Record, ...]]  #: by subject and part; those that have records


def parse_results(data: bytes) -> Results:
    """The results that bytes hold. Raises BundleRefused for bytes that hold none, or of another schema."""
    try:
        table = json.loads(data)
        if not isinstance(table, dict) or table.get("schema") != SCHEMA:
            raise BundleRefused(f"{RESULTS} is not of schema {SCHEMA}; run the bundle anew")
        return decode(Results, table)
    except (CodecError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise BundleRefused(f"{RESULTS} holds no results: {error}") from error


def read_results(folder: Path) -> Gathered:
    """The results in a folder. Raises BundleRefused naming what was changed or cannot be read."""
    try:
        results = parse_results((folder / RESULTS).read_bytes())
    except OSError as error:
        raise BundleRefused(f"{folder} holds no {RESULTS} that can be read: {error.strerror}") from error
    return gathered(results, lambda name: (folder / name).read_bytes())


def gathered(results: Results, read: Callable[[str], bytes]) -> Gathered:
    """Results with the records of files that `read` gives by name. Raises BundleRefused."""
    from farm.measured.reading import read_records  # with numpy, which most commands do without

    found: dict[tuple[str, str], tuple[Record, ...]] = {}
    files: dict[str, bytes] = {}
    for part in results.parts:
        if part.file is None:
            continue
        if part.file not in files:
            if Path(part.file).name != part.file:
                raise BundleRefused(f"{RESULTS} names {part.file!r}, which is no file of its folder")
            try:
                files[part.file] = read(part.file)
            except OSError as error:
                raise BundleRefused(f"{part.file} cannot be read: {error.strerror}; copy it again") from error
        stretch = files[part.file][part.offset : part.offset + part.size]
        if hashlib.sha256(stretch).hexdigest() != part.sha256:
            what = f"the records of {part.subject} {part.part} are not as written"
            raise BundleRefused(f"{part.file} was changed: {what}; copy it again")
        try:
            own = list(read_records(gzip.decompress(stretch).decode().splitlines()))
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise BundleRefused(f"{part.file}: {part.subject} {part.part} cannot be read: {error}") from error
        if len(own) != part.records or any(record.subject != part.subject for record in own):
            raise BundleRefused(f"{part.file}: {part.subject} {part.part} holds other records than it says")
        found[part.subject, part.part] = tuple(own)
    return Gathered(results=results, parts=found)


def merged(runs: Iterable[Gathered]) -> Iterator[Record]:
    """Records of several runs of one bundle: of each subject and part the latest run that came to its end."""
    chosen: dict[tuple[str, str], tuple[tuple[bool, float], Gathered]] = {}
    for run in runs:
        for part in run.results.parts:
            rank = (part.ended is Ended.DONE, run.results.ended_at)
            key = (part.subject, part.part)
            if part.file is not None and (key not in chosen or rank > chosen[key][0]):
                chosen[key] = (rank, run)
    for key in sorted(chosen):
        yield from chosen[key][1].parts[key]
