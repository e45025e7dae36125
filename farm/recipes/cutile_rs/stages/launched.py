"""Tile IR of launched modules against the reference's, each pair once, and whose it is where they differ."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from farm.analysis import CandidateLaunch, Signature
from farm.errors import TileIRError
from farm.gates import SignatureProof
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.instances import INSTANCES, Instances, declared
from farm.recipes.cutile_rs.launches import Parameters
from farm.recipes.cutile_rs.stages.compiling import GENERATED, IR_REPORT, Compared
from farm.recipes.cutile_rs.stages.tools import load
from farm.tileir import Comparison, compare, parse
from farm.tileir.difference import DifferenceKind
from farm.tree import sha256


class Standing(StrEnum):
    """What a launched module is to the reference."""

    SAME = "same"  #: the same program
    DECLARED = "declared"  #: another one, as instances.json has it
    HOST = "host"  #: another one, though kernel.rs compiles to the reference's: it is launched otherwise
    KERNEL = "kernel"  #: another one


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What stage B left: where kernel.rs differs on purpose, and where it compiles to the reference's Tile IR."""

    declared: Mapping[str, str] = field(default_factory=dict)  #: signature to why
    same: frozenset[str] = frozenset()  #: signatures


#: A gate believes nobody.
NOTHING_SAID = Compiled()


def compiled(io: BoxIO, kernel: Path) -> Compiled:
    """What stage B left in the artifact folder, as far as it can be read and is of the kernel.rs that is there."""
    try:
        said = declared(load(io.out / INSTANCES, Instances))
        report = load(io.out / IR_REPORT, tuple[Compared, ...])
        source = sha256(kernel.read_bytes())
    except (OSError, ValueError):
        return NOTHING_SAID
    return Compiled(
        declared=said, same=frozenset(item.signature for item in report if item.same and item.source == source)
    )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One signature's launched module."""

    proof: SignatureProof
    standing: Standing
    #: candidate's parameter to the reference's; None: not known
    parameters: tuple[int | None, ...] | None


@dataclass(kw_only=True)
class LaunchedModules:
    """Looks at modules as they are launched."""

    reference: Path  #: folder that the signatures' texts are relative to
    candidate: Path  #: folder of the launched modules' texts
    gpu: str
    compiled: Compiled
    known: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def look(self, signature: Signature, made: CandidateLaunch) -> Seen:
        """What is launched for the signature."""
        key = (signature.id, made.sha256)
        if key not in self.known:
            self.known[key] = self._look(signature, made)
        return self.known[key]

    def parameters(self) -> Parameters:
        """What `compare_rows` wants: roles of parameters by signature and module."""
        return {
            key: seen.parameters
            for key, seen in self.known.items()
            if seen.standing in (Standing.SAME, Standing.DECLARED)
        }

    def _look(self, signature: Signature, made: CandidateLaunch) -> Seen:
        found = self._compare(signature.ir, made.ir)
        proof = SignatureProof(
            signature=signature.id,
            kernel=signature.kernel,
            entry=made.entry,
            same=isinstance(found, Comparison) and found.same,
            rules=tuple(sorted(found.rules)) if isinstance(found, Comparison) else (),
            difference=_said(found),
        )
        if isinstance(found, Comparison) and found.same:
            return Seen(proof=proof, standing=Standing.SAME, parameters=found.parameters)
        if signature.id in self.compiled.declared:
            return self._declared(proof, found, self._compare(f"{GENERATED}/{signature.id}.mlir", made.ir))
        standing = Standing.HOST if signature.id in self.compiled.same else Standing.KERNEL
        return Seen(proof=proof, standing=standing, parameters=None)

    def _declared(self, proof: SignatureProof, found: Comparison | str, mine: Comparison | str) -> Seen:
        """A difference that is declared, if what is launched is what kernel.rs was compiled to.

        Promises may differ from launch to launch of one signature: the launcher takes them from the arguments.
        """
        if isinstance(mine, Comparison) and (mine.same or _in_promises(mine)):
            known = isinstance(found, Comparison) and _in_promises(found)
            parameters = found.parameters if isinstance(found, Comparison) and known else None
            return Seen(proof=proof, standing=Standing.DECLARED, parameters=parameters)
        text = f"{proof.entry} was launched otherwise than {INSTANCES} has it compiled: {_said(mine)}"
        return Seen(proof=replace(proof, difference=text), standing=Standing.HOST, parameters=None)

    def _compare(self, left: str, right: str) -> Comparison | str:
        try:
            ours = parse((self.reference / left).read_text(encoding="utf-8"))
            theirs = parse((self.candidate / right).read_text(encoding="utf-8"))
            return compare(ours, theirs, gpu=self.gpu)
        except (TileIRError, OSError) as error:
            return str(error)


def _in_promises(found: Comparison) -> bool:
    """Whether two programs differ in promises alone; then it is known which parameter is which."""
    return found.difference is not None and found.difference.kind is DifferenceKind.FACT


def _said(found: Comparison | str) -> str | None:
    if isinstance(found, str):
        return found
    return None if found.difference is None else str(found.difference)
