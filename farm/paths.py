"""Which paths a tree may hold: what git would refuse to check out somewhere is refused here."""

#: Code points that HFS+ leaves out when it compares names.
_HFS_IGNORED = frozenset({0x200C, 0x200D, 0x200E, 0x200F, 0xFEFF, *range(0x202A, 0x202F), *range(0x206A, 0x2070)})
#: NTFS short names of `.git` and `.gitmodules`.
_SHORT_NAMES = {".git": ("git~1",), ".gitmodules": tuple(f"gitmod~{n}" for n in range(1, 5))}


def path_bytes(path: str) -> bytes:
    """The bytes of a path, undecodable ones restored; the order of trees is the order of these."""
    return path.encode("utf-8", "surrogateescape")


def is_disguise(component: str, name: str) -> bool:
    """Whether some file system opens `name` (`.git`, `.gitmodules`) when asked for `component`."""
    visible = "".join(c for c in component if ord(c) not in _HFS_IGNORED).casefold()
    for candidate in (component.casefold(), visible):
        for part in candidate.replace("\\", "/").split("/"):
            stem = part.split(":", 1)[0].rstrip(" .")
            if stem == name or stem in _SHORT_NAMES[name]:
                return True
    return False


def path_problem(path: str) -> str | None:
    """Why a tree may not hold this path, or None."""
    if not path or "\0" in path:
        return "an empty path or one with a zero byte"
    if path.startswith("/"):
        return "an absolute path"
    for component in path.split("/"):
        if component in ("", ".", ".."):
            return "a path with an empty, `.` or `..` part"
        if is_disguise(component, ".git"):
            return "a path named .git"
        if len(path_bytes(component)) > 255:
            return "a name longer than 255 bytes"
    return None


def parents(path: str) -> list[str]:
    """The folders above a path, outermost first: `a/b/c` gives `a`, `a/b`."""
    found = []
    at = path.find("/")
    while at >= 0:
        found.append(path[:at])
        at = path.find("/", at + 1)
    return found
