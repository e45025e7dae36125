"""Runs the gates of a bundle: unpack, rows and probes of several subjects at once, then timing, one at a time.

`python DIR/run -o RESULTS` ends here. It decides nothing: `farm import` rules from what is recorded.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from containers.box.gate.boxed import facts, watched
from containers.box.gate.machine import look
from containers.box.gate.outcome import Outcome
from containers.box.gate.parts import LANES, PARTS, Group
from containers.box.gate.processes import environment, isolation, somebody_else, without_network
from containers.box.gate.runner import Runner, say
from containers.box.gate.unpack import unpack_collector
from farm.bundle import Bundle, read_bundle
from farm.errors import BundleRefused, UsageError
from farm.measured.records import TimedCall
from farm.packed import SUFFIX, pack
from farm.results import read_results

INFRA, USAGE = 1, 2
BEST_OF_4 = "best-of-4"
BOX = "a fact about the box that this runs in, for the results; its worker gives them"


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="run", description="Run the gates of this bundle.")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="RESULTS", help="folder for the results")
    words = sorted({*(group.value for group in Group), *PARTS})
    only = f"a group (rows, probes, timing) or one of {', '.join(PARTS)}; may be repeated; without it, all"
    parser.add_argument("--only", type=str.lower, action="append", choices=words, metavar="PARTS", help=only)
    parser.add_argument("--subjects", metavar="IDS", help="ids or ops with commas between; without it, all")
    parser.add_argument("--jobs", type=int, help="parts at once, of rows and probes")
    parser.add_argument("--workers", type=int, default=1, help="rows or probes at once, in each part")
    parser.add_argument("--configs", type=int, help="most performance rows to time of a subject; without it, all")
    parser.add_argument("--part-limit-s", type=float, default=1800.0, help="longest that one part may take")
    parser.add_argument("--time-limit-s", type=float, help="longest that all may take")
    parser.add_argument("--again", action="store_true", help="run parts again whose results are there")
    parser.add_argument("--same-user", action="store_true", help="do not run parts as another user")
    parser.add_argument("--pack", type=Path, metavar="FILE.tar.xz", help="also write the results as one file")
    parser.add_argument(
        "--protocol", choices=[BEST_OF_4], help="also print speedups as published tables have them"
    )
    parser.add_argument("--box", action="append", default=[], metavar="NAME=TEXT", help=BOX)
    parser.add_argument("--work", type=Path, help="scratch folder that is kept; without it, a temporary one")
    return parser.parse_args(argv)


def main(bundle: Path, argv: Sequence[str]) -> int:
    """Run what is asked for; 0 when all of it ran, 1 when something could not be, 2 for a wrong command."""
    asked = arguments(argv)
    if asked.box:
        return watched(asked.out, lambda: _main(bundle, asked))
    return _main(bundle, asked)


def _main(bundle: Path, asked: argparse.Namespace) -> int:
    try:
        if asked.pack is not None and not (asked.pack.name.endswith(SUFFIX) and asked.pack.parent.is_dir()):
            raise UsageError(
                f"--pack {asked.pack}: give the name of a file that ends in {SUFFIX}, in a folder that is there"
            )
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


def _run(bundle: Path, manifest: Bundle, chosen: Sequence[str], asked: argparse.Namespace, scratch: Path) -> int:
    deadline = None if asked.time_limit_s is None else time.monotonic() + asked.time_limit_s
    control, work = scratch / "control", scratch / "work"
    control.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in (scratch, work, work / "homes", work / "home", work / "tmp"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    prefix = without_network()
    variables = environment(os.environ, bundle / "lib", work)
    stranger = None if asked.same_user else somebody_else()
    if stranger is not None:
        stranger.give(work)
    machine = look(variables, prefix, manifest.gpu, stranger)
    if machine.problems and stranger is not None:
        # Nobody may be kept from Python or the device: then parts have the runner's rights, and results say so.
        machine, stranger = look(variables, prefix, manifest.gpu, None), None
    if machine.problems:
        for problem in machine.problems:
            print(f"error: {problem}", file=sys.stderr)
        return INFRA
    only = frozenset(asked.only or Group)
    parts = [part for part, group in PARTS.items() if part in only or group in only]
    around = {**isolation(prefix, stranger), **facts(asked.box)}
    outcome = Outcome(asked.out.resolve(), bundle=manifest.digest, machine=machine, isolation=around)
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
        control=control,
        stranger=stranger,
        prefix=prefix,
        variables=variables,
        outcome=outcome,
        part_limit_s=asked.part_limit_s,
        deadline=deadline,
        workers=asked.workers,
        configs=asked.configs,
        again=asked.again,
    )
    at_once = asked.jobs or max(1, min(2 * len(chosen), (os.cpu_count() or 2) // 2))
    lanes = [(subject, [part for part in lane if part in parts]) for subject in chosen for lane in LANES]
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        list(pool.map(lambda lane: runner.all(*lane), lanes))
    for subject in chosen:
        runner.all(subject, [part for part in parts if PARTS[part] is Group.TIMING])
    whole = runner.whole(chosen, parts)
    if asked.protocol == BEST_OF_4:
        _compare_protocols(asked.out.resolve(), manifest, chosen)
    if asked.pack is not None:
        size = pack(asked.out.resolve(), asked.pack)
        say(f"all results are in {asked.pack} too, {size:,} bytes; `farm import` takes it")
    return 0 if whole else INFRA


def _compare_protocols(out: Path, manifest: Bundle, chosen: Sequence[str]) -> None:
    from farm.measured.published import beside
    from farm.rulings import case_of

    run = read_results(out)
    for subject in chosen:
        case = case_of(manifest, [run], subject)
        if case is not None:
            calls = [record for record in case.records if isinstance(record, TimedCall)]
            for line in beside(case.measured, calls):
                say(line)


if __name__ == "__main__":
    sys.exit(main(Path(os.environ.get("TILEFARM_BUNDLE", ".")).resolve(), sys.argv[1:]))
