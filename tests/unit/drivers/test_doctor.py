from pathlib import Path

import pytest

from drivers import doctor
from farm.errors import ToolchainMissing
from farm.views import CheckView

GIB = 2**30


def missing() -> dict[str, str]:
    raise ToolchainMissing


@pytest.mark.parametrize(
    ("check", "level"),
    [
        (doctor.python_version((3, 11)), "ok"),
        (doctor.python_version((3, 10)), "error"),
        (doctor.program("git", "install it", which=lambda _: "/usr/bin/git"), "ok"),
        (doctor.program("git", "install it", which=lambda _: None), "error"),
        (doctor.program("cargo", "install it", needed=False, which=lambda _: None), "warning"),
        (doctor.engine({"version": "20"}, None, None), "ok"),
        (doctor.engine({}, "no socket", "start Docker"), "error"),
        (doctor.free_space(Path("/s"), 5 * GIB, 6 * GIB), "ok"),
        (doctor.free_space(Path("/s"), 5 * GIB, 4 * GIB), "error"),
        (doctor.broker(lambda: None), "ok"),
        (doctor.broker(lambda: ()), "ok"),
        (doctor.broker(lambda: ("no append-only file",)), "error"),
        (doctor.recipes({"a": (), "b": ("x",)}), "error"),
        (doctor.recipes({"a": ()}), "ok"),
        (doctor.gpu(()), "warning"),
        (doctor.gpu(("/dev/nvidia0",)), "ok"),
        (doctor.ledger(lambda: 3), "ok"),
        (doctor.toolchain(lambda: {"torch": "2"}), "ok"),
    ],
)
def test_each_check_has_its_level_and_says_what_to_do_unless_all_is_well(check: CheckView, level: str) -> None:
    assert check.level == level
    assert (check.next_step is None) == (level == "ok")
    assert check.detail


def test_a_check_that_raises_is_an_error_and_the_others_still_run() -> None:
    view = doctor.run_checks(
        (
            ("toolchain", lambda: doctor.toolchain(missing)),
            ("gpu", lambda: doctor.gpu(())),
        )
    )
    assert not view.healthy
    assert [check.level for check in view.checks] == ["error", "warning"]
    assert view.checks[0].next_step == "run `farm toolchain install`."


def test_warnings_alone_keep_a_machine_healthy() -> None:
    assert doctor.run_checks((("gpu", lambda: doctor.gpu(())),)).healthy
