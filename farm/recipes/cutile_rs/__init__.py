"""The conversion cuTile Python -> cuTile Rust."""

from farm.bundle import OpNames
from farm.changeset import Violation
from farm.errors import FarmError, UnknownOp, UsageError
from farm.gates import GateReport
from farm.hiding import Bare
from farm.layout import Layout
from farm.op import Op
from farm.orders import BoxOrder, BuildReport, StageRecord
from farm.patch import Patch
from farm.pipeline.stage import Finding, Reply, Stage, ValidatorExit
from farm.recipes import BoxIO, StageProgram, Validated, Validator, box_validator
from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.contract import contract, owed
from farm.recipes.cutile_rs.gating import judged, names
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.judge import build_alone, judge
from farm.recipes.cutile_rs.review import review
from farm.recipes.cutile_rs.stages.analyse import analyse
from farm.recipes.cutile_rs.stages.compare import compare_ir
from farm.recipes.cutile_rs.stages.host import write_and_prove
from farm.recipes.cutile_rs.stages.kernel import write_kernel
from farm.recipes.cutile_rs.stages.tools import finding, workspace_tree
from farm.recipes.cutile_rs.stages.verify import verify
from farm.recipes.cutile_rs.validators import OF_STAGE, VALIDATORS
from farm.recipes.cutile_rs.validators.case import Case
from farm.recipes.cutile_rs.validators.contradictions import contradicted
from farm.tree import Tree


class CutileRs:
    """The conversion for one layout. `farm.recipes.Conversion` says what each method promises."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def inventory(self, tree: Tree) -> tuple[Op, ...]:
        """See Conversion."""
        return inventory(tree, self._layout)

    def bare(self, tree: Tree, op: Op) -> Bare:
        """See Conversion."""
        return bare(tree, self._layout, op)

    def check(self, bare: Bare, op: Op, patch: Patch) -> tuple[Violation, ...]:
        """See Conversion."""
        return review(bare, self._layout, op, patch)

    def program(self, stage: Stage) -> StageProgram | None:
        """See Conversion."""
        match stage:
            case Stage.A:
                return lambda order, io: analyse(order, io, self._op(order, io))
            case Stage.B:
                return lambda order, io: write_kernel(order, io, self._layout, self._op(order, io))
            case Stage.C:
                return lambda order, io: compare_ir(order, io, self._layout, self._op(order, io))
            case Stage.D:
                return self._host
            case Stage.E:
                return verify
            case Stage.F:
                return None

    def validators(self, stage: Stage) -> tuple[Validator, ...]:
        """See Conversion."""
        return tuple(box_validator(name) for name in OF_STAGE[stage])

    def validate(self, name: str, order: BoxOrder, io: BoxIO) -> Validated:
        """See Conversion."""
        if name not in VALIDATORS:
            raise UsageError(f"no validator is called {name!r}: {', '.join(VALIDATORS)}")
        return VALIDATORS[name](self._case(order, io))

    def contradicted(self, stage: Stage, exits: tuple[ValidatorExit, ...]) -> Reply:
        """See Conversion."""
        return contradicted(stage, exits)

    def contract(self, order: BoxOrder, io: BoxIO, records: tuple[StageRecord, ...]) -> tuple[Finding, ...]:
        """See Conversion."""
        try:
            return owed(contract(self._case(order, io), records))
        except FarmError as error:  # the workspace is what an agent left
            return (finding(str(error), error.next_step),)

    def judge(self, order: BoxOrder, io: BoxIO) -> GateReport:
        """See Conversion."""
        return judge(order, io, self._layout)

    def build(self, order: BoxOrder, io: BoxIO) -> BuildReport:
        """See Conversion."""
        return build_alone(io, self._layout)

    def judged(self, bare: Bare, op: Op, patch: Patch) -> Patch:
        """See Conversion."""
        return judged(bare, self._layout, op, patch)

    def names(self, tree: Tree, op: Op) -> OpNames:
        """See Conversion."""
        return names(tree, self._layout, op)

    def _host(self, order: BoxOrder, io: BoxIO) -> Reply:
        return write_and_prove(order, io, self._layout, self._op(order, io))

    def _case(self, order: BoxOrder, io: BoxIO) -> Case:
        return Case(order=order, io=io, layout=self._layout, op=self._op(order, io))

    def _op(self, order: BoxOrder, io: BoxIO) -> Op:
        found = next((op for op in inventory(workspace_tree(io), self._layout) if op.name == order.op), None)
        if found is None:
            raise UnknownOp(f"the workspace has no op {order.op!r} any more: its source files may not be changed")
        return found


def build(layout: Layout) -> CutileRs:
    """The conversion for a layout; see farm.recipes.load."""
    return CutileRs(layout)
