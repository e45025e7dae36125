"""The conversion cuTile Python -> cuTile Rust."""

from farm.bundle import OpNames
from farm.changeset import Violation
from farm.gates import GateReport
from farm.hiding import Bare
from farm.layout import Layout
from farm.op import Op
from farm.orders import BoxOrder, BuildReport
from farm.patch import Patch
from farm.pipeline.stage import Reply, Stage
from farm.recipes import BoxIO, StageProgram
from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.gating import judged, names
from farm.recipes.cutile_rs.inventory import inventory
from farm.recipes.cutile_rs.judge import build_alone, judge
from farm.recipes.cutile_rs.review import review
from farm.recipes.cutile_rs.stages.analyse import analyse
from farm.recipes.cutile_rs.stages.compare import compare_ir
from farm.recipes.cutile_rs.stages.host import write_and_prove
from farm.recipes.cutile_rs.stages.kernel import write_kernel
from farm.recipes.cutile_rs.stages.tools import workspace_tree
from farm.recipes.cutile_rs.stages.verify import verify
from farm.recipes.unvalidated import Unvalidated
from farm.tree import Tree


class CutileRs(Unvalidated):
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
                return compare_ir
            case Stage.D:
                return self._host
            case Stage.E:
                return verify
            case Stage.F:
                return None

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

    def _op(self, order: BoxOrder, io: BoxIO) -> Op:
        return next(op for op in inventory(workspace_tree(io), self._layout) if op.name == order.op)


def build(layout: Layout) -> CutileRs:
    """The conversion for a layout; see farm.recipes.load."""
    return CutileRs(layout)
