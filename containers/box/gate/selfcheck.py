"""Proves the collector on a GPU machine: `python -m containers.box.gate.selfcheck --library FILE`.

Prints a line of facts and a PASS or FAIL line a check; exit code 1 if one failed. Needs torch with CUDA.
"""

import argparse
import ctypes
import itertools
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from containers.box.gate import collector
from containers.box.gate.collector import Flush, Reader, State

LAUNCHES = 10
MANY = 2000
TOKENS = range(1, 10)
CUPTI_TO_EVENT_TOLERANCE = 0.02


def child() -> None:
    """Run work on the device, a token after each kind; facts go to stdout as one line of JSON."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    facts: dict[str, Any] = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    x = torch.ones(1 << 20, device="cuda")
    y = torch.empty_like(x)

    def profiled() -> int:
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(LAUNCHES):
                x.mul_(1.0)
            torch.cuda.synchronize()
        return sum(row.count for row in seen.key_averages() if row.self_device_time_total > 0)

    collector.flush(10)
    facts["before"] = profiled()
    facts["begin_first"] = collector.begin()
    torch.ones(1 << 20, device="cuda")

    def token(number: int) -> None:
        torch.cuda.synchronize()
        collector.flush(number)

    token(1)

    streams = (torch.cuda.Stream(), torch.cuda.Stream())
    for _ in range(LAUNCHES):
        for stream in streams:
            with torch.cuda.stream(stream):
                x.mul_(1.0)
    token(2)

    torch.cuda._sleep(1)  # loads the kernel, else the events below time that
    torch.cuda.synchronize()
    collector.flush(20)
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    started = time.perf_counter_ns()
    before.record()
    torch.cuda._sleep(50_000_000)
    after.record()
    torch.cuda.synchronize()
    facts["wall_ns"] = time.perf_counter_ns() - started
    facts["event_ns"] = before.elapsed_time(after) * 1e6
    token(3)

    facts["profiled"] = profiled()
    x.mul_(1.0)
    token(4)

    facts["begin"] = collector.begin()
    for _ in range(LAUNCHES):
        x.mul_(1.0)
    token(5)

    y.copy_(x)
    ctypes.CDLL("libcuda.so.1").cuMemsetD32_v2(ctypes.c_uint64(y.data_ptr()), 5, ctypes.c_size_t(1000))
    token(6)

    for _ in range(MANY):
        x.mul_(1.0)
    token(7)

    x.mul_(1.0)  # what a tuner does before it measures: a buffer of ours would hold this and what follows
    collector.end()
    facts["alone"] = profiled()
    facts["begin_again"] = collector.begin()
    collector.flush(70)
    x.mul_(1.0)
    token(8)

    torch.cuda._sleep(50_000_000)
    token(9)
    facts["flush_ns"] = _flush_ns(torch)
    print(json.dumps(facts))


def _flush_ns(torch: Any) -> int:
    torch.cuda.synchronize()
    started = time.perf_counter_ns()
    for number in range(100):
        collector.flush(1000 + number)
    return (time.perf_counter_ns() - started) // 100


def main() -> int:
    """Run the child, print the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--cupti", type=Path)
    arguments = parser.parse_args()
    cupti = arguments.cupti or collector.find_cupti()
    reader = Reader()
    process = subprocess.Popen(
        [sys.executable, "-m", "containers.box.gate.selfcheck", "--child"],
        env={**os.environ, **reader.environment(arguments.library, cupti=cupti)},
        pass_fds=reader.inherited,
        stdout=subprocess.PIPE,
        text=True,
    )
    reader.started()
    flushes = {number: reader.until(number, 180 if number == 1 else 60) for number in TOKENS}
    output = process.communicate(timeout=60)[0]
    lines = output.strip().splitlines()
    facts = json.loads(lines[-1]) if process.returncode == 0 and lines else {}
    print(f"facts: cupti {cupti} version {reader.cupti_version}, {json.dumps(facts)}")
    for number, flush in flushes.items():
        print(f"token {number}: {_summary(flush)}")
    failed = 0
    for name, passed, seen in checks(flushes, facts):
        failed += not passed
        print(f"{'PASS' if passed else 'FAIL'} {name}: {seen}")
    return 1 if failed else 0


def _in_order(flushes: dict[int, Flush]) -> bool:
    """Whether each flush ends before the next begins; within one, records of streams come in any order."""
    spans = [
        (min(event.start_ns for event in events), max(event.end_ns for event in events))
        for number in TOKENS
        if (events := flushes[number].events)
    ]
    return all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))


def checks(flushes: dict[int, Flush], facts: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """(what, whether it holds, what was seen) of each check."""
    held = {number: flushes[number].state for number in TOKENS if number != 4}
    streams = Counter(event.stream for event in flushes[2].events)
    durations = [event.end_ns - event.start_ns for event in flushes[3].events]
    again = sum(event.end_ns - event.start_ns for event in flushes[9].events)
    event_ns = facts.get("event_ns", 0.0)
    off = durations[0] / event_ns - 1 if len(durations) == 1 and event_ns else float("nan")
    everything = [event for number in TOKENS for event in flushes[number].events]
    symbols = Counter(event.symbol for event in flushes[6].events)
    return [
        ("the child ended well", bool(facts), "facts came" if facts else "no facts: see its error above"),
        (
            "every flush is complete (but the one after another profiler)",
            all(state is State.COMPLETE for state in held.values()),
            ", ".join(f"{number} {state.name}" for number, state in held.items()),
        ),
        ("no record is lost", not any(flushes[n].lost for n in held), str([flushes[n].lost for n in held])),
        ("two streams, every launch", sorted(streams.values()) == [LAUNCHES] * 2, str(dict(streams))),
        (
            "a long kernel lasts as long as torch.cuda.Event says, within 2 %",
            abs(off) <= CUPTI_TO_EVENT_TOLERANCE,
            f"{durations} ns by CUPTI, {event_ns:.0f} ns by events, {off:+.3%}",
        ),
        (
            "it lasts as long after torch.profiler has run, within 2 %",
            bool(durations) and abs(again / durations[0] - 1) <= CUPTI_TO_EVENT_TOLERANCE,
            f"{again} ns",
        ),
        ("device time fits into host time", sum(durations) <= facts.get("wall_ns", 0), str(facts.get("wall_ns"))),
        (
            "no event ends before it starts, and order of tokens is order of time",
            all(event.start_ns <= event.end_ns for event in everything) and _in_order(flushes),
            f"{len(everything)} events",
        ),
        ("torch.profiler works beside it", facts.get("profiled") == LAUNCHES, str(facts.get("profiled"))),
        (
            "before begin() and after end() torch.profiler works as if alone",
            facts.get("before") == facts.get("alone") == LAUNCHES and bool(facts.get("begin_again")),
            f"{facts.get('before')} and {facts.get('alone')}",
        ),
        (
            "records that torch.profiler took are noticed",
            flushes[4].missing > 0 or len(flushes[4].events) > LAUNCHES,
            _summary(flushes[4]),
        ),
        (
            "after begin() the records come again",
            bool(facts.get("begin")) and len(flushes[5].events) == LAUNCHES,
            _summary(flushes[5]),
        ),
        (
            "a copy and a memset have names of their own",
            symbols == {"[memcpy]": 1, "[memset]": 1},
            str(dict(symbols)),
        ),
        (f"{MANY} launches", len(flushes[7].events) == MANY, _summary(flushes[7])),
        ("a launch after a flush belongs to the next", len(flushes[8].events) == 1, _summary(flushes[8])),
    ]


def _summary(flush: Flush) -> str:
    counts = Counter(event.symbol[:60] for event in flush.events)
    return (
        f"{flush.state.name}, {len(flush.events)} events {dict(counts)}, lost {flush.lost}, begins {flush.begins}"
        + "".join(f", {problem}" for problem in flush.problems)
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        child()
    else:
        raise SystemExit(main())
