"""The embedded image: nothing but folders and a few files of /etc; a box gets the host's /usr read-only.

The Dockerfile beside this module is for clusters, where images are built and pushed.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from containers.engine import Mount

#: Folders of the host that a box sees, where the host has them as folders.
HOST_FOLDERS = ("usr", "bin", "lib", "lib32", "lib64", "libx32")

#: What of the host's /etc a compiler needs: which `cc` is meant, where libraries lie.
HOST_ETC = ("etc/alternatives", "etc/ld.so.cache")

#: sbin is the image's own: the engine puts its init there, which a mount of the host's would hide.
_FOLDERS = ("work", "out", "farm", "tmp", "etc", "proc", "sys", "dev", "run", "sbin", "var", "var/tmp")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/hosts": "127.0.0.1 localhost\n",
}


@dataclass(frozen=True, kw_only=True)
class EmbeddedImage:
    """An image to be imported from a tar, and the host's folders that make it usable."""

    tag: str  #: `tilefarm-embedded:<digest of the tar>`
    tar: bytes
    mounts: tuple[Mount, ...]


def embedded(host: Path = Path("/")) -> EmbeddedImage:
    """The image that fits this host's layout of /usr; the same host gives the same bytes."""
    links, mounts = {}, []
    for name in HOST_FOLDERS:
        path = host / name
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_dir():
            mounts.append(Mount(source=path, target=f"/{name}"))
    mounts += [Mount(source=host / name, target=f"/{name}") for name in HOST_ETC if (host / name).exists()]
    tar = _tar(links, tuple(mount.target.lstrip("/") for mount in mounts))
    return EmbeddedImage(
        tag=f"tilefarm-embedded:{hashlib.sha256(tar).hexdigest()[:16]}", tar=tar, mounts=tuple(mounts)
    )


def _tar(links: dict[str, str], mount_points: tuple[str, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted({*_FOLDERS, *(point for point in mount_points if point != "etc/ld.so.cache")}):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(entry)
        for name, target in sorted(links.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for name, text in sorted({**_FILES, "etc/ld.so.cache": ""}.items()):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o644, len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()
