"""Runs the corpus: every cheat and its twin, several at a time."""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from drivers.attacks.bench import Bench, libraries
from drivers.attacks.model import Attack, OnPaper, Outcome
from drivers.attacks.warm import warm_python
from farm.errors import UsageError

Say = Callable[[str], None]


def chosen(names: Sequence[str]) -> tuple[tuple[Attack, ...], tuple[OnPaper, ...]]:
    """The attacks of these names, all without any. Raises UsageError for one that there is not."""
    from drivers.attacks.corpus import CANDIDATES, ON_PAPER

    known = {attack.name for attack in CANDIDATES} | {attack.name for attack in ON_PAPER}
    unknown = sorted(set(names) - known)
    if unknown:
        raise UsageError(f"no attack is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    wanted = set(names) or known
    return (
        tuple(attack for attack in CANDIDATES if attack.name in wanted),
        tuple(attack for attack in ON_PAPER if attack.name in wanted),
    )


def run_on_paper(attacks: Sequence[OnPaper]) -> tuple[Outcome, ...]:
    """Try attacks on records and files: nothing is run."""
    return tuple(
        Outcome(
            name=attack.name,
            what=attack.what,
            place=attack.place,
            expected=attack.expected,
            cheat=attack.cheat(),
            twin=attack.twin(),
        )
        for attack in attacks
    )


def run_candidates(
    attacks: Sequence[Attack], *, python: Path, say: Say, jobs: int = 3, cold: bool = False
) -> tuple[Outcome, ...]:
    """Try candidates on this machine; `python` is an interpreter with torch, pytest and numpy.

    `cold` starts an interpreter for each process, as the gates do, instead of forking one that has torch.
    """
    if not attacks:
        return ()
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="attacks-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(folder))
        packages = libraries(scratch / "lib")
        if not cold:
            (scratch / "w").mkdir()
            python = stack.enter_context(warm_python(python, scratch / "w", packages))
        bench = Bench(python, packages, scratch)

        def tried(attack: Attack) -> Outcome:
            outcome = Outcome(
                name=attack.name,
                what=attack.what,
                place="cpu",
                expected=attack.expected,
                cheat=bench.cheat(attack),
                twin=bench.twin(attack),
            )
            say(outcome.line)
            return outcome

        with ThreadPoolExecutor(max_workers=jobs) as pool:
            return tuple(pool.map(tried, attacks))
