"""Which configurations are timed, from what both sides collected. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, kw_only=True)
class Config:
    """One configuration and how to get at it."""

    key: str
    kind: str  #: `perf` or `case`

    @property
    def origin(self) -> str:
        """As in ConfigFact."""
        return "perf row" if self.kind == "perf" else "generated"


class Chosen(NamedTuple):
    """The frozen list, and what is not on it."""

    configs: tuple[Config, ...]
    left_out: tuple[tuple[Config, str, str], ...]  #: with the reason and whose it is (ConfigFact.problem_of)


def from_perf_rows(source: Sequence[str], target: Sequence[str], most: int | None) -> Chosen:
    """The source's rows that measure, at most `most`; a row that the target lacks is the target's problem."""
    chosen: list[Config] = []
    left_out: list[tuple[Config, str, str]] = []
    there = set(target)
    wanted = set(spread(len(source), most or len(source)))
    for position, key in enumerate(source):
        config = Config(key=key, kind="perf")
        if position not in wanted:
            said = f"left out by the settings, which time {len(wanted)} of {len(source)} rows"
            left_out.append((config, said, "settings"))
        elif key not in there:
            left_out.append((config, "the target has no such row", "target"))
        else:
            chosen.append(config)
    return Chosen(tuple(chosen), tuple(left_out))


def from_calls(source: Mapping[str, Mapping[str, Any]], target: Sequence[str], most: int) -> Chosen:
    """The correctness rows with the largest distinct calls of the op, largest first."""
    signatures: set[str] = set()
    chosen: list[Config] = []
    for key, call in sorted(source.items(), key=lambda item: (-int(item[1]["bytes"]), item[0])):
        signature = str(call["signature"])
        if key in target and signature not in signatures and len(chosen) < most:
            signatures.add(signature)
            chosen.append(Config(key=key, kind="case"))
    return Chosen(tuple(chosen), ())


def spread(count: int, most: int) -> tuple[int, ...]:
    """At most `most` positions spread evenly over `count`."""
    if count <= most:
        return tuple(range(count))
    return tuple(sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)}))
