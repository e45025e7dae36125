"""The conversion of a text file to an equal one: as small as a whole conversion can be."""

from farm.bundle import OpNames
from farm.changeset import Violation, check
from farm.errors import RepositoryError, Unsupported, UsageError
from farm.gates import GateReport
from farm.hiding import Bare
from farm.op import Op
from farm.orders import BoxOrder, BuildReport, StageRecord
from farm.patch import Patch
from farm.pipeline.stage import Finding, Stage
from farm.recipes import BoxIO, StageProgram, Validated, Validator, box_validator
from farm.recipes.plain_copy import judge as gate
from farm.recipes.plain_copy import stages
from farm.recipes.plain_copy.layout import SUFFIX, Layout
from farm.recipes.unvalidated import Unvalidated
from farm.tree import Tree

NOTHING_TO_RUN = "plain-copy makes nothing that a GPU could run; its jobs end with --accept certified"


class PlainCopy(Unvalidated):
    """The conversion for one layout. `farm.recipes.Conversion` says what each method promises."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def inventory(self, tree: Tree) -> tuple[Op, ...]:
        """See Conversion."""
        folder = f"{self._layout.source_folder}/"
        names = [path.removeprefix(folder).removesuffix(SUFFIX) for path in tree if path.startswith(folder)]
        ops = tuple(self._op(tree, name) for name in sorted(names) if self._layout.text(name) in tree)
        if not ops:
            raise RepositoryError(f"the repository has no {folder}*{SUFFIX}; check --repo and --recipe")
        return ops

    def bare(self, tree: Tree, op: Op) -> Bare:
        """See Conversion. The text itself is a copy of the copy, so it is declared a look-alike."""
        return Bare(
            tree={path: entry for path, entry in tree.items() if path not in op.target_files},
            withheld=(),
            hidden={path: tree[path] for path in op.target_files},
            symbols=(),
            siblings=op.source_files,
            change_set=(self._layout.copy(op.name),),
        )

    def check(self, bare: Bare, op: Op, patch: Patch) -> tuple[Violation, ...]:
        """See Conversion."""
        return check(patch, bare.change_set)

    def program(self, stage: Stage) -> StageProgram | None:
        """See Conversion."""
        match stage:
            case Stage.A:
                return lambda order, io: stages.read(order, io, self._layout)
            case Stage.B:
                return lambda order, io: stages.write(order, io, self._layout)
            case Stage.D:
                return lambda order, io: stages.compare(order, io, self._layout)
            case Stage.E:
                return stages.verify
            case Stage.C | Stage.F:
                return None

    def validators(self, stage: Stage) -> tuple[Validator, ...]:
        """See Conversion."""
        return (box_validator(stages.COPY),) if stage in (Stage.B, Stage.D) else ()

    def validate(self, name: str, order: BoxOrder, io: BoxIO) -> Validated:
        """See Conversion."""
        if name != stages.COPY:
            raise UsageError(f"no validator is called {name!r}: {stages.COPY}")
        return stages.copied(order, io, self._layout)

    def contract(self, order: BoxOrder, io: BoxIO, records: tuple[StageRecord, ...]) -> tuple[Finding, ...]:
        """See Conversion."""
        found = stages.copied(order, io, self._layout)
        return found.findings

    def judge(self, order: BoxOrder, io: BoxIO) -> GateReport:
        """See Conversion."""
        return gate.judge(order, io, self._layout)

    def build(self, order: BoxOrder, io: BoxIO) -> BuildReport:
        """See Conversion."""
        raise Unsupported(NOTHING_TO_RUN)

    def judged(self, bare: Bare, op: Op, patch: Patch) -> Patch:
        """See Conversion."""
        raise Unsupported(NOTHING_TO_RUN)

    def names(self, tree: Tree, op: Op) -> OpNames:
        """See Conversion."""
        raise Unsupported(NOTHING_TO_RUN)

    def _op(self, tree: Tree, name: str) -> Op:
        copy = self._layout.copy(name)
        return Op(
            name=name,
            registered=(name,),
            source_files=(self._layout.text(name),),
            kernels=(),
            tests=(),
            target_files=(copy,) if copy in tree else (),
        )


def build(layout: Layout) -> PlainCopy:
    """The conversion for a layout; see farm.recipes.load."""
    return PlainCopy(layout)
