from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from farm.errors import NotAccepted, PatchConflict
from farm.gates import Basis, GateName, GateResult, Ruling
from farm.job import Accept
from farm.patch import make_patch
from farm.tree import Entry, Mode
from workers.landing import Landed, Landing, branch_name, land
from workers.repositories import Repositories

GitCommand = Callable[..., str]


def _landing(repo: str, base: str, basis: Basis, accept: Accept) -> Landing:
    gates = tuple(
        GateResult(gate=gate, ruling=Ruling.PASS, basis=basis, summary=f"{basis} 2/2\nrows") for gate in GateName
    )
    return Landing(
        run="r-1",
        job="r-1.relu",
        op="relu",
        recipe="cutile-rs",
        source="cuTile Python",
        target="cutile-rs",
        repo=repo,
        push_to=None,
        base=base,
        accept=accept,
        gates=gates,
        evidence_sha256="e" * 64,
        versions={"rustc": "1.95", "cutile": "0.2.0"},
        when_s=1_800_000_000,
    )


def _inputs(repositories: Repositories, source: Path) -> tuple[Landing, dict[str, Entry], dict[str, Entry]]:
    base = repositories.resolve(str(source), None)
    bare = repositories.read_commit_tree(str(source), base)
    del bare["run.sh"]
    patched = bare | {"relu.rs": Entry(Mode.FILE, b"fn relu() {}\n")}
    return _landing(str(source), base, Basis.CERTIFIED, Accept.CERTIFIED), bare, patched


def test_a_landed_commit_is_the_bare_base_plus_the_patch_on_the_base(
    repositories: Repositories, source: Path, git: GitCommand
) -> None:
    landing, bare, patched = _inputs(repositories, source)
    landed = land(repositories, landing, bare, make_patch(bare, patched))
    assert landed.branch == "farm-certified/cutile-rs/relu"
    assert git(source, "rev-parse", landed.branch) == landed.commit
    assert git(source, "rev-parse", f"{landed.commit}^") == landing.base
    assert repositories.read_commit_tree(str(source), landed.commit) == patched
    assert git(source, "log", "-1", "--format=%s", landed.commit) == (
        "relu: cutile-rs implementation converted from cuTile Python"
    )
    trailers = git(source, "log", "-1", "--format=%(trailers:only,unfold)", landed.commit).splitlines()
    assert trailers[:4] == [
        "Farm-Correctness: certified 2/2 rows",
        "Farm-Executed: certified 2/2 rows",
        "Farm-Geomean: certified 2/2 rows",
        f"Farm-Evidence: sha256:{'e' * 64}",
    ]
    assert trailers[5:] == [
        "Farm-Versions: cutile 0.2.0, rustc 1.95",
        "Farm-Run: r-1",
        "Farm-Job: r-1.relu",
        f"Farm-Base: {landing.base}",
    ]


def test_landing_again_after_a_crash_gives_the_same_commit(repositories: Repositories, source: Path) -> None:
    landing, bare, patched = _inputs(repositories, source)
    patch = make_patch(bare, patched)
    first = land(repositories, landing, bare, patch)
    assert land(repositories, landing, bare, patch) == first
    later = land(repositories, replace(landing, run="r-2", when_s=1_800_000_500), bare, patch)
    assert later == Landed(commit=later.commit, branch=first.branch)
    assert later.commit != first.commit


def test_the_prefix_tells_certified_from_measured(repositories: Repositories, source: Path) -> None:
    landing, bare, patched = _inputs(repositories, source)
    measured = _landing(str(source), landing.base, Basis.MEASURED, Accept.MEASURED)
    assert branch_name(measured) == "farm/cutile-rs/relu"
    certified = replace(landing, accept=Accept.MEASURED)
    with pytest.raises(NotAccepted, match="is not measured"):
        land(repositories, certified, bare, make_patch(bare, patched))


@pytest.mark.parametrize("ruling", [ruling for ruling in Ruling if ruling is not Ruling.PASS])
def test_nothing_lands_without_all_three_gates(
    repositories: Repositories, source: Path, git: GitCommand, ruling: Ruling
) -> None:
    landing, bare, patched = _inputs(repositories, source)
    failed = (*landing.gates[:2], replace(landing.gates[2], ruling=ruling))
    for gates in (failed, landing.gates[:2]):
        with pytest.raises(NotAccepted, match="gate geomean"):
            land(repositories, replace(landing, gates=gates), bare, make_patch(bare, patched))
    assert git(source, "for-each-ref", "refs/heads/farm*") == ""


def test_a_patch_for_another_base_lands_nothing(repositories: Repositories, source: Path, git: GitCommand) -> None:
    landing, bare, patched = _inputs(repositories, source)
    with pytest.raises(PatchConflict):
        land(repositories, landing, bare | {"relu.rs": Entry(Mode.FILE, b"")}, make_patch(bare, patched))
    assert git(source, "for-each-ref", "refs/heads/farm*") == ""
