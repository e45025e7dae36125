"""Changes of a module that keep its meaning, made at random."""

import random
from collections.abc import Iterable
from dataclasses import replace

from farm.tileir import Module
from farm.tileir.model import Item, Op, Region, Use, Value
from farm.tileir.ops import PURE, commutes

_LEAVING = frozenset({"return", "continue", "break", "yield"})


def shuffled(module: Module, seed: int) -> Module:
    """The module with other names, another order of pure operations, copies, leftovers and exchanged operands."""
    chance = random.Random(seed)
    entry = module.entries[0]
    names: dict[str, str] = {}
    body = _region(entry.body, chance, names)
    params = tuple(_renamed(param, chance, names) for param in entry.params)
    return Module(globals=(), entries=(replace(entry, params=params, body=_with_names(body, names)),))


def _region(region: Region, chance: random.Random, names: dict[str, str]) -> Region:
    ops: list[Op] = []
    for op in region.ops:
        regions = tuple(_region(inner, chance, names) for inner in op.regions)
        ops.append(_exchanged(replace(op, regions=regions), chance))
        if op.name == "constant" and chance.random() < 0.3:
            ops.append(replace(op, results=tuple(replace(v, name=v.name + ".left") for v in op.results)))
        for value in op.results:
            _renamed(value, chance, names)
    for value in region.args:
        _renamed(value, chance, names)
    return replace(region, ops=tuple(_reordered(ops, chance)))


def _renamed(value: Value, chance: random.Random, names: dict[str, str]) -> Value:
    name = names.setdefault(value.name, f"v{len(names)}.{chance.randrange(100)}")
    return replace(value, name=name)


def _with_names(region: Region, names: dict[str, str]) -> Region:
    def word(found: Use | str) -> Use | str:
        return found if isinstance(found, str) else replace(found, name=names[found.name])

    def item(found: Item) -> Item:
        return replace(found, words=tuple(word(inner) for inner in found.words))

    def values(found: Iterable[Value]) -> tuple[Value, ...]:
        return tuple(replace(value, name=names.get(value.name, value.name)) for value in found)

    ops = tuple(
        replace(
            op,
            items=tuple(item(found) for found in op.items),
            results=values(op.results),
            regions=tuple(_with_names(inner, names) for inner in op.regions),
        )
        for op in region.ops
    )
    return replace(region, args=values(region.args), ops=ops)


def _exchanged(op: Op, chance: random.Random) -> Op:
    words = tuple(word for item in op.items for word in item.words if isinstance(word, str))
    places = [at for at, item in enumerate(op.items) if isinstance(item.words[0], Use) and item.key is None]
    if not commutes(op.name, words) or len(places) < 2 or chance.random() < 0.5:
        return op
    items = list(op.items)
    first, second = places[:2]
    items[first], items[second] = (
        replace(items[first], words=items[second].words),
        replace(items[second], words=items[first].words),
    )
    return replace(op, items=tuple(items))


def _reordered(ops: list[Op], chance: random.Random) -> list[Op]:
    """Another order in which every value is defined before its use and effects keep theirs."""
    defined = {value.name for op in ops for value in op.results}
    waiting = list(ops)
    done: set[str] = set()
    found: list[Op] = []
    while waiting:
        effects = [op for op in waiting if op.name not in PURE and op.name != "assume"]
        ready = [
            op
            for op in waiting
            if _needs(op) & defined <= done
            and (op.name in PURE or op.name == "assume" or op is effects[0])
            and not (op.name in _LEAVING and len(waiting) > 1)
        ]
        chosen = chance.choice(ready)
        waiting.remove(chosen)
        found.append(chosen)
        done |= {value.name for value in chosen.results}
    return found


def _needs(op: Op) -> set[str]:
    found = {use.name for use in op.uses}
    for region in op.regions:
        for inner in region.ops:
            found |= _needs(inner)
    return found
