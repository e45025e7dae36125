from dataclasses import replace
from pathlib import Path

import pytest

from containers.access import NOBODY, box_user
from containers.images import embedded
from containers.lib import ensure_lib
from containers.spec import BoxFolders, BoxSettings, box_env, box_name, box_spec, check_place
from farm.errors import ToolchainMissing
from farm.orders import BoxOrder, Purpose
from tests import builders


@pytest.fixture
def order() -> BoxOrder:
    return builders.order()


@pytest.fixture
def settings(tmp_path: Path) -> BoxSettings:
    return BoxSettings(farm="f1", toolchain=builders.toolchain(tmp_path / "tc"))


@pytest.fixture
def folders(tmp_path: Path) -> BoxFolders:
    return BoxFolders(
        workspace=tmp_path / "w",
        out=tmp_path / "o",
        order=tmp_path / "order.json",
        lib=tmp_path / "lib",
        recipe=tmp_path / "recipe",
    )


def test_only_workspace_and_out_can_be_written(
    order: BoxOrder, folders: BoxFolders, settings: BoxSettings
) -> None:
    spec = box_spec(order, folders, settings)
    assert {mount.target for mount in spec.mounts if mount.writable} == {"/work", "/out"}
    assert {"/farm/order.json", "/farm/lib", "/farm/recipe"} <= {mount.target for mount in spec.mounts}


def test_names_differ_by_what_makes_boxes_differ(order: BoxOrder) -> None:
    others = (
        box_name("f2", order),
        box_name("f1", replace(order, attempt=2)),
        box_name("f1", replace(order, purpose=Purpose.GATE)),
        box_name("f1", order, "tip"),
    )
    assert len({box_name("f1", order), *others}) == 5
    assert box_name("f1", order) == box_name("f1", replace(order))


def test_long_names_stay_apart(order: BoxOrder) -> None:
    long = replace(order, job="r-1." + "x" * 200)
    names = {box_name("f1", long), box_name("f1", replace(long, attempt=2))}
    assert len(names) == 2
    assert all(len(name) <= 120 for name in names)


def test_the_working_tree_shadows_no_module(order: BoxOrder, folders: BoxFolders, settings: BoxSettings) -> None:
    assert box_spec(order, folders, settings).argv[1:] == ("-P", "-m", "containers.box")


def test_a_box_takes_nothing_of_the_hosts_environment(
    settings: BoxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    assert "secret" not in box_env(settings.toolchain).values()


def test_root_runs_boxes_as_nobody_and_others_as_themselves() -> None:
    assert box_user(0, 0) == NOBODY
    assert box_user(1000, 100) == (1000, 100)


def test_the_embedded_image_is_the_same_for_the_same_host_and_follows_its_layout(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "lib").mkdir()
    first = embedded(tmp_path)
    assert first == embedded(tmp_path)
    assert {mount.target for mount in first.mounts} == {"/usr", "/lib"}
    (tmp_path / "lib").rmdir()
    (tmp_path / "lib").symlink_to("usr/lib")
    assert embedded(tmp_path).tag != first.tag


def test_the_packages_of_a_box_are_made_once_and_hold_what_runs_inside(tmp_path: Path) -> None:
    folder = ensure_lib(tmp_path)
    assert (folder / "containers" / "box" / "__main__.py").is_file()
    assert {path.name for path in folder.iterdir()} == {"farm", "containers"}
    assert not (folder / "containers" / "native").exists()
    assert ensure_lib(tmp_path) == folder


def test_a_toolchain_where_a_box_has_its_own_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolchainMissing, match="lies below /tmp"):
        check_place(builders.toolchain(tmp_path))
