from dataclasses import fields, replace
from pathlib import Path

from farm.job import JobState
from tests.builders import job
from workers.places import Places, jobs_folder, places


def test_each_attempt_and_each_transient_retry_has_folders_of_its_own() -> None:
    first = job("relu", JobState.RUNNING)
    roots = {places(Path("/s"), replace(first, attempt=a, transients=t)).root for a in (1, 2) for t in (0, 1)}
    assert len(roots) == 4
    assert {root.parent for root in roots} == {jobs_folder(Path("/s")) / first.id}


def test_everything_of_an_attempt_is_below_its_folder_under_a_name_of_its_own() -> None:
    at = Places(root=Path("/s/jobs/x/1-0"))
    names = [name for name in vars(Places) if isinstance(vars(Places)[name], property)]
    paths = [getattr(at, name) for name in names]
    assert len(set(paths)) == len(paths) >= 8
    assert {path.parent for path in paths} == {at.root}
    assert [field.name for field in fields(at)] == ["root"]
