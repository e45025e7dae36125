"""Lines of a record file to records, strictly. Pure."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from farm.codec import CodecError, decode
from farm.measured.records import Collected, ConfigFact, Foul, Probe, Record, RowRun, TimedCall

_KINDS: dict[str, type[Record]] = {
    kind.__name__: kind for kind in (Collected, RowRun, Probe, ConfigFact, TimedCall, Foul)
}


class RecordsBroken(ValueError):
    """A file of records is not what the runner writes; the message names the line."""


def read_records(lines: Iterable[str]) -> Iterator[Record]:
    """The records of a file, in order; empty lines are passed over. Raises RecordsBroken."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _record(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise RecordsBroken(f"line {number}: {error}") from error


def _record(data: Any) -> Record:
    if not isinstance(data, dict):
        raise CodecError("not a record")
    name = data.pop("record", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise CodecError(f"no record is called {name!r}")
    return decode(kind, data)
