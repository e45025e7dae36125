"""Reads what the stand-in driver library wrote down."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DriverLaunch:
    """One cuLaunchKernel."""

    module: int  #: number of the loaded module, see `module_file`
    entry: str
    grid: tuple[int, int, int]  #: blocks
    params: tuple[int, ...]  #: zero-extended to 64 bit


@dataclass(frozen=True, kw_only=True)
class DriverEvents:
    """A stretch of the driver's log."""

    launches: tuple[DriverLaunch, ...]
    problems: tuple[str, ...]  #: functions that the stand-in lacks and modules that it refused


def module_file(number: int) -> str:
    """Name of the file, in the stand-in's folder, that holds a module's bytecode."""
    return f"module-{number}.tileirbc"


def read_events(text: str) -> DriverEvents:
    """The events in lines of driver.jsonl. Raises ValueError for a line of another origin."""
    launches, problems = [], []
    for line in text.splitlines():
        event = json.loads(line)
        kind = event["event"]
        if kind == "launch":
            x, y, z = event["grid"]
            launches.append(
                DriverLaunch(
                    module=event["module"],
                    entry=event["entry"],
                    grid=(x, y, z),
                    params=tuple(event["params"]),
                )
            )
        elif kind == "missing":
            problems.append(f"the stand-in driver does not implement {event['function']}")
        elif kind == "refused":
            problems.append(f"the stand-in driver refused: {event['reason']}")
        elif kind != "module":
            raise ValueError(f"unknown driver event {kind!r}")
    return DriverEvents(launches=tuple(launches), problems=tuple(problems))
