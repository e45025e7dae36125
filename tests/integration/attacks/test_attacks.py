"""The corpus of attacks through the real gates, as `farm selftest attacks` runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from containers.toolchain import Toolchain
from drivers.attacks import trees
from drivers.attacks.corpus import CANDIDATES, ON_PAPER
from drivers.attacks.model import Attack, OnPaper, Where
from drivers.attacks.trial import run_on_paper
from farm.codec import decode
from farm.views import AttacksView

#: Of those that are run: one for each part that catches, so that a broken part is seen soon.
QUICK = ("falls-back", "catches-and-falls-back", "calls-for-show", "changes-input", "replays-warm-up")


def selftest(*words: str, code: int = 0) -> AttacksView:
    command = [
        sys.executable,
        "-c",
        "from drivers.cli import main; main()",
        "selftest",
        "attacks",
        "--json",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return decode(AttacksView, json.loads(done.stdout))


def test_there_are_at_least_thirty_attacks_with_names_of_their_own() -> None:
    names = [attack.name for attack in (*CANDIDATES, *ON_PAPER)]
    assert len(set(names)) == len(names) >= 30
    assert {attack.expected.where for attack in (*CANDIDATES, *ON_PAPER)} == set(Where)


@pytest.mark.parametrize("attack", CANDIDATES, ids=lambda attack: attack.name)
def test_a_twins_patch_keeps_to_the_change_set_and_the_cheat_differs_from_it(attack: Attack) -> None:
    base = trees.base_of(attack.op, attack.base)
    cheat, twin = (trees.patch_of(base, edits) for edits in (attack.cheat, attack.twin))
    assert cheat.digest != twin.digest
    assert trees.violations(base, twin) == ()
    assert bool(trees.violations(base, cheat)) is (attack.expected.where is Where.CHANGE_SET)


@pytest.mark.parametrize("attack", ON_PAPER, ids=lambda attack: attack.name)
def test_records_and_files_of_a_cheat_are_refused_and_those_of_its_twin_are_not(attack: OnPaper) -> None:
    (outcome,) = run_on_paper([attack])
    assert outcome.refused, outcome.line
    assert outcome.twin.accepted, outcome.line


@pytest.mark.toolchain
def test_each_part_of_the_gates_catches_its_cheats_and_passes_their_twins(toolchain: Toolchain) -> None:
    view = selftest(*(word for name in QUICK for word in ("--only", name)))
    assert (view.refused, view.honest_accepted, view.total) == (len(QUICK),) * 3


@pytest.mark.toolchain
@pytest.mark.long
def test_no_cheat_of_the_whole_corpus_is_accepted_and_no_twin_refused(toolchain: Toolchain) -> None:
    view = selftest()
    assert view.total == len(CANDIDATES) + len(ON_PAPER)
    assert (view.refused, view.honest_accepted) == (view.total, view.total), [
        (attack.name, attack.reason, attack.honest_reason)
        for attack in view.attacks
        if not (attack.refused and attack.honest_accepted)
    ]


def test_an_unknown_name_is_a_wrong_command() -> None:
    command = [
        sys.executable,
        "-c",
        "from drivers.cli import main; main()",
        "selftest",
        "attacks",
        "--only",
        "none",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no attack is called none" in done.stderr


def test_nothing_that_judges_is_told_which_attack_it_is(tmp_path: Path) -> None:
    """Subjects of a cheat and of its twin differ in numbered folders alone."""
    attack = next(attack for attack in CANDIDATES if attack.name == "falls-back")
    base = trees.base_of(attack.op, attack.base)
    bare, _ = trees.write_base(base, tmp_path)
    made = [
        trees.write_candidate(base, trees.patch_of(base, edits), bare, tmp_path / str(number))
        for number, edits in enumerate((attack.cheat, attack.twin))
    ]
    texts = [repr(subject).replace(str(tmp_path / str(number)), "") for number, subject in enumerate(made)]
    assert texts[0] == texts[1]
    assert attack.name not in repr(made[0])
