"""Whether two entries are the same text but for names and locations."""

from farm.tileir.model import Entry, Op, Region, Use, Value


class _Names:
    """Which name of one side is which of the other."""

    def __init__(self) -> None:
        self.theirs: dict[str, str] = {}

    def define(self, ours: tuple[Value, ...], theirs: tuple[Value, ...]) -> bool:
        if len(ours) != len(theirs):
            return False
        for left, right in zip(ours, theirs, strict=True):
            if left.type != right.type or left.count != right.count:
                return False
            self.theirs[left.name] = right.name
        return True

    def same(self, ours: Use | str, theirs: Use | str) -> bool:
        if isinstance(ours, str) or isinstance(theirs, str):
            return ours == theirs
        return self.theirs.get(ours.name) == theirs.name and ours.index == theirs.index


def identical(reference: Entry, candidate: Entry) -> bool:
    """Whether the entries do the same operations on the same values in the same order."""
    names = _Names()
    return (
        reference.hints == candidate.hints
        and names.define(reference.params, candidate.params)
        and _same_region(reference.body, candidate.body, names)
    )


def _same_region(ours: Region, theirs: Region, names: _Names) -> bool:
    return (
        names.define(ours.args, theirs.args)
        and len(ours.ops) == len(theirs.ops)
        and all(_same_op(a, b, names) for a, b in zip(ours.ops, theirs.ops, strict=True))
    )


def _same_op(ours: Op, theirs: Op, names: _Names) -> bool:
    if (ours.name, ours.operand_types, ours.result_types) != (
        theirs.name,
        theirs.operand_types,
        theirs.result_types,
    ):
        return False
    if len(ours.items) != len(theirs.items) or len(ours.regions) != len(theirs.regions):
        return False
    for left, right in zip(ours.items, theirs.items, strict=True):
        if (left.key, left.bracketed, len(left.words)) != (right.key, right.bracketed, len(right.words)):
            return False
        if not all(names.same(a, b) for a, b in zip(left.words, right.words, strict=True)):
            return False
    regions = zip(ours.regions, theirs.regions, strict=True)
    return all(_same_region(a, b, names) for a, b in regions) and names.define(ours.results, theirs.results)
