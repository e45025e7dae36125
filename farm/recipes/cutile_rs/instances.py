"""instances.json: for each signature of the source, which entry of kernel.rs stands for it, and with what.

Whoever writes kernel.rs writes this too, program or agent, so that every signature can be compiled and compared
before there is host code. It is a claim and needs no trust: a wrong one compiles to another Tile IR than the
reference's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from farm.analysis import Analysis, Signature
from farm.recipes.cutile_rs.instantiate import NotInstantiable, argument, entry_for, generic_values
from farm.recipes.cutile_rs.plan import Entry, EntryParam, ParamRole

INSTANCES = "instances.json"

_ARGUMENT = re.compile(
    r"(?P<role>pointer|tensor|extent|stride|scalar) (?P<source>[A-Za-z_]\w*)(?: (?P<axis>\d+))?", re.ASCII
)


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One signature's entry."""

    signature: str  #: `Signature.id`
    entry: str  #: function in kernel.rs
    generics: tuple[str, ...]  #: values in the order of the entry's generics, e.g. `f16`, `1024`, `true`
    #: parameter of the entry to where its value comes from: `pointer x`, `tensor x`, `extent x 0`, `stride x 1`,
    #: `scalar eps`, with the names of the Python kernel's parameters
    args: dict[str, str]
    #: why the Tile IR has to be another than the reference's; empty: it is the reference's
    differs: str = ""


@dataclass(frozen=True, kw_only=True)
class Instances:
    """The whole file."""

    instances: tuple[Instance, ...]
    schema: int = 1


def instances_of(entries: Sequence[Entry], analysis: Analysis) -> Instances:
    """What the translator's entries come to. Raises NotInstantiable."""
    found = []
    for signature in analysis.signatures:
        entry = entry_for(entries, signature)
        if entry is None:
            raise NotInstantiable(f"no entry is meant for signature {signature.id} of {signature.kernel}")
        found.append(instance_of(entry, signature))
    return Instances(instances=tuple(found))


def instance_of(entry: Entry, signature: Signature) -> Instance:
    """The translator's entry for one signature. Raises NotInstantiable."""
    return Instance(
        signature=signature.id,
        entry=entry.name,
        generics=generic_values(entry, signature),
        args={param.name: _spelled(param) for param in entry.params},
    )


def request(entry: Entry, signature: Signature) -> dict[str, Any]:
    """The compile server's record for the translator's entry. Raises NotInstantiable."""
    return wanted(instance_of(entry, signature), signature)


def wanted(instance: Instance, signature: Signature) -> dict[str, Any]:
    """The `Wanted` record of the compile server for an instance. Raises NotInstantiable."""
    return {
        "id": signature.id,
        "entry": instance.entry,
        "generics": list(instance.generics),
        "args": {name: argument(_read(name, text), signature) for name, text in instance.args.items()},
        "occupancy": signature.hints.get("occupancy"),
        "num_ctas": signature.hints.get("num_ctas"),
    }


def by_signature(instances: Instances, analysis: Analysis) -> dict[str, Instance]:
    """The instance of every signature. Raises NotInstantiable naming one that has none, or more than one."""
    found: dict[str, Instance] = {}
    for instance in instances.instances:
        if instance.signature in found:
            raise NotInstantiable(f"{INSTANCES}: signature {instance.signature} has two instances")
        found[instance.signature] = instance
    for signature in analysis.signatures:
        if signature.id not in found:
            raise NotInstantiable(f"{INSTANCES}: signature {signature.id} of {signature.kernel} has no instance")
    return found


def declared(instances: Instances) -> dict[str, str]:
    """The signatures whose Tile IR is said to differ on purpose, each with why."""
    return {item.signature: item.differs.strip() for item in instances.instances if item.differs.strip()}


def _spelled(param: EntryParam) -> str:
    axis = "" if param.axis is None else f" {param.axis}"
    return f"{param.role.value} {param.source}{axis}"


def _read(name: str, text: str) -> EntryParam:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        raise NotInstantiable(
            f"{INSTANCES}: argument {name} is {text!r}, not `pointer x`, `tensor x`, `extent x 0`, `stride x 0` "
            "or `scalar x`"
        )
    axis = None if match["axis"] is None else int(match["axis"])
    return EntryParam(name=name, role=ParamRole(match["role"]), source=match["source"], axis=axis)
