"""Optimisation hints: text like `default = {occupancy = 2}, sm_90 = {latency = 3}`."""

import re

from farm.tileir.model import Item, Module, Op, Region

_GROUP = re.compile(r"(\w+)\s*=\s*\{([^{}]*)\}")
_OTHER = "other"  # any target that nobody names


def read_hints(text: str) -> dict[str, dict[str, str]]:
    """Target name to hints; `default` is among the names."""
    found: dict[str, dict[str, str]] = {}
    for target, body in _GROUP.findall(text):
        pairs = (pair.partition("=") for pair in body.split(",") if pair.strip())
        found[target] = {key.strip(): value.strip() for key, _, value in pairs}
    return found


def named_targets(module: Module) -> set[str]:
    """Targets other than `default` that hints of a module are given for."""
    texts = [entry.hints or "" for entry in module.entries]
    for entry in module.entries:
        texts += _texts(entry.body)
    return {target for text in texts for target in read_hints(text) if target != "default"}


def compared_targets(reference: Module, candidate: Module) -> tuple[str, ...]:
    """The targets for which hints must agree: the candidate's, or all if it names none."""
    found = named_targets(candidate)
    return tuple(sorted(found or {*named_targets(reference), _OTHER}))


def effective(text: str | None, targets: tuple[str, ...]) -> str:
    """Canonical text of the hints that hold on these targets; empty where nothing is hinted."""
    groups = read_hints(text or "")
    by_target = {target: _canonical({**groups.get("default", {}), **groups.get(target, {})}) for target in targets}
    if len(set(by_target.values())) == 1:
        return next(iter(by_target.values()))
    return "; ".join(f"{target}: {hints}" for target, hints in by_target.items())


def _canonical(hints: dict[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in sorted(hints.items()))


def hint_text(item: Item) -> str | None:
    """The hints that an operation's item holds; None for another item."""
    if item.key != "optimization_hints" or not isinstance(item.words[0], str):
        return None
    return item.words[0].removeprefix("<").removesuffix(">")


def _texts(region: Region) -> list[str]:
    found: list[str] = []
    stack: list[Op] = list(region.ops)
    while stack:
        op = stack.pop()
        found += [text for item in op.items if (text := hint_text(item)) is not None]
        for inner in op.regions:
            stack += inner.ops
    return found
