"""Stage B's program: translate; then what it wrote is judged as anyone's would be."""

from dataclasses import replace
from pathlib import Path

from farm.analysis import Analysis
from farm.fault import Fault, Owner
from farm.layout import Layout, find_package
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Reply, ValidatorExit, Verdict
from farm.recipes import BoxIO
from farm.recipes.cutile_rs.instances import INSTANCES, instances_of
from farm.recipes.cutile_rs.instantiate import NotInstantiable
from farm.recipes.cutile_rs.kernel import translate
from farm.recipes.cutile_rs.license import licensed
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.compiling import judge_entries, judge_kernel
from farm.recipes.cutile_rs.stages.tools import blocked, finding, load, place, save, workspace_tree
from farm.tree import Tree

PLAN = "plan.json"


def write_kernel(order: BoxOrder, io: BoxIO, layout: Layout, op: Op) -> Reply:
    """COMPILED only when every signature's Tile IR is the reference's."""
    analysis = load(io.out / ANALYSIS, Analysis)
    tree = workspace_tree(io)
    sources = {
        path: entry.data.decode("utf-8", "surrogateescape") for path, entry in tree.items() if path.endswith(".py")
    }
    translation = translate(op.name, sources, analysis)
    if translation.plan is None:
        fault = translation.fault or Fault.UNSUPPORTED
        summary = f"not translated: {place(translation.findings[0])}"
        return blocked(Verdict.BLOCKED, Owner.KERNEL, fault, translation.findings, summary)
    plan = replace(translation.plan, source=licensed(translation.plan.source, tree, op))
    path = kernel_file(io, tree, layout, op)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plan.source, encoding="utf-8")
    save(io, PLAN, plan)
    try:
        save(io, INSTANCES, instances_of(plan.entries, analysis))
    except NotInstantiable as error:
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, (finding(str(error)),), str(error))
    entries = judge_entries(io, path)
    if entries.owner is not None:
        return entries
    kernel = judge_kernel(order, io, analysis, path)
    if kernel.owner is not None:
        return kernel
    exits = tuple(
        ValidatorExit(name=name, exit_code=0, message=reply.summary)
        for name, reply in (("entry", entries), ("kernel", kernel))
    )
    return replace(kernel, validators=exits, artifacts=(PLAN, *kernel.artifacts))


def kernel_file(io: BoxIO, tree: Tree, layout: Layout, op: Op) -> Path:
    """Where the op's kernels are in the workspace."""
    return io.workspace / find_package(tree, layout).target_folder / f"{op.name}_kernel" / "kernel.rs"
