"""A refused command leaves nothing of what it made; one that succeeds keeps it."""

from pathlib import Path

from workers.tentative import Tentative


def make(folder: Path, text: str = "mine") -> None:
    folder.mkdir(parents=True)
    (folder / "f").write_text(text)


def test_what_is_kept_lies_in_its_place_and_nothing_else_is_left(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    tentative = Tentative(state)
    place = state / "mirrors" / "x.git"
    make(tentative.begin(place))
    assert (tentative.at(place) / "f").read_text() == "mine"
    assert not place.exists()
    tentative.keep()
    assert (tentative.at(place), (place / "f").read_text()) == (place, "mine")
    assert sorted(path.name for path in state.iterdir()) == ["mirrors"]
    tentative.discard()
    assert place.exists()


def test_what_somebody_else_has_put_there_meanwhile_stays(tmp_path: Path) -> None:
    tentative = Tentative(tmp_path)
    place = tmp_path / "mirrors" / "x.git"
    make(tentative.begin(place))
    make(place, "theirs")
    tentative.keep()
    assert (place / "f").read_text() == "theirs"


def test_a_state_folder_that_was_not_there_goes_again_with_its_parents(tmp_path: Path) -> None:
    state = tmp_path / "a" / "b"
    tentative = Tentative(state, beside=(state / "git.config",))
    make(tentative.begin(state / "mirrors" / "x.git"))
    (state / "git.config").write_text("")
    tentative.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_state_folder_that_holds_something_else_stays_whole(tmp_path: Path) -> None:
    state = tmp_path / "state"
    tentative = Tentative(state, beside=(state / "git.config",))
    make(tentative.begin(state / "mirrors" / "x.git"))
    for name in ("git.config", "ledger.db"):
        (state / name).write_text("")
    tentative.discard()
    assert sorted(path.name for path in state.iterdir()) == ["git.config", "ledger.db"]


def test_a_state_folder_that_was_there_stays(tmp_path: Path) -> None:
    tentative = Tentative(tmp_path, beside=(tmp_path / "git.config",))
    make(tentative.begin(tmp_path / "x.git"))
    (tmp_path / "git.config").write_text("")
    tentative.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["git.config"]
