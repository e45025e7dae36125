"""Who boxes run as, and how a folder becomes theirs to write."""

import os
from pathlib import Path
from typing import NamedTuple


class BoxUser(NamedTuple):
    """The user inside a box."""

    uid: int  #: never 0
    gid: int  #: never 0


#: Nobody: what boxes of a worker with root's rights run as.
NOBODY = BoxUser(65534, 65534)


def box_user(uid: int, gid: int) -> BoxUser:
    """The user for boxes of a worker with these ids: nobody for root, else the worker itself.

    A worker without root's rights cannot give files away; its boxes have the rights it has, and no more.
    """
    return NOBODY if uid == 0 else BoxUser(uid, gid)


def give(folder: Path, user: BoxUser) -> None:
    """Make `folder` and everything in it the user's, links themselves included and never followed."""
    if user.uid == os.getuid():
        return
    os.chown(folder, user.uid, user.gid)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(parent, name), user.uid, user.gid, follow_symlinks=False)
