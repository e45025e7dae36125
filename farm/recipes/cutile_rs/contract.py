"""The output contract: what a finished route has left behind, each thing with the stage that owns it.

Asked once, when the route is complete, and of nothing but files: a validator has judged each at its stage, here
they must all be there together, of one state of the candidate, and say what the stages' verdicts say. Seventeen on
the straight path of agents (A, B, D, E); with C its report is one more. A stage that a program did leaves its
record where an agent leaves a log.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.layout import find_package
from farm.orders import StageRecord
from farm.pipeline.stage import ExecutorKind, Finding, Stage, Verdict
from farm.recipes import Exit, Validated
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.compare import IR_DIAGNOSIS
from farm.recipes.cutile_rs.stages.compiling import GENERATED
from farm.recipes.cutile_rs.stages.host import PROOF, ProofReport
from farm.recipes.cutile_rs.stages.performance import REPORT, SIDES, Performance, side_file, side_problem
from farm.recipes.cutile_rs.stages.tools import load, workspace_tree
from farm.recipes.cutile_rs.validators.analysis import analysis
from farm.recipes.cutile_rs.validators.case import Case
from farm.recipes.cutile_rs.validators.diagnosis import ir_diagnosis
from farm.recipes.cutile_rs.validators.host import symbol
from farm.recipes.cutile_rs.validators.performance import performance
from farm.recipes.cutile_rs.validators.registration import registration
from farm.recipes.cutile_rs.validators.tileir import generated_ir, reference_ir
from farm.tree import Tree

OUT = "out:"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing that a finished route leaves behind, as it was found."""

    name: str
    path: str  #: in the workspace or, after `out:`, in the artifact folder
    stage: Stage  #: whose it is
    problem: str | None  #: None: it is there and is what it should be


def owed(items: Sequence[Item]) -> tuple[Finding, ...]:
    """What is wrong with the items, each with the stage that owes it."""
    return tuple(
        Finding(
            file=item.path,
            line=None,
            column=None,
            construct=None,
            message=f"{item.name} of stage {item.stage.value}, {item.path}: {item.problem}",
            advice=f"stage {item.stage.value} owes it: see its role and its validators",
        )
        for item in items
        if item.problem is not None
    )


def contract(case: Case, records: Sequence[StageRecord]) -> tuple[Item, ...]:
    """Every item, good or not. Reads files and starts no process. A scripted stage owes nothing."""
    ran = {record.stage: record for record in records}
    items = [*_files(case, workspace_tree(case.io)), *_artifacts(case)]
    if Stage.C in ran:
        problem = _problem(ir_diagnosis(case))
        items.append(Item(name="IR report", path=OUT + IR_DIAGNOSIS, stage=Stage.C, problem=problem))
    items += [
        _report(case, PROOF, "correctness report", Stage.D, ran),
        _report(case, REPORT, "performance report", Stage.E, ran),
    ]
    for side in SIDES:
        problem = side_problem(case.order, case.io.out, side)
        items.append(Item(name=f"{side} record", path=OUT + side_file(side), stage=Stage.E, problem=problem))
    items += [_log(case.io.out, records, stage) for stage in sorted({*ran, Stage.A, Stage.B, Stage.D, Stage.E})]
    scripted = {stage for stage, record in ran.items() if record.executor is ExecutorKind.SCRIPTED}
    return tuple(item for item in items if item.stage not in scripted)


def _files(case: Case, tree: Tree) -> Iterator[Item]:
    """The files of the change set, and the library's symbol."""
    package = find_package(tree, case.layout)
    name = case.op.name
    folder = f"{package.target_folder}/{name}_kernel"
    for what, path, stage in (
        ("kernels", f"{folder}/kernel.rs", Stage.B),
        ("C functions", f"{folder}/ffi.rs", Stage.D),
        ("wrapper", f"{package.target_folder}/{name}.py", Stage.D),
    ):
        problem = None if path in tree and tree[path].data.strip() else "it is not there, or empty"
        yield Item(name=what, path=path, stage=stage, problem=problem)
    registered = registration(case)
    modules = package.path(case.layout.modules)
    wrong = {str(found.file): found.message for found in registered.findings}
    in_crate = wrong.pop(modules, None)
    others = "; ".join(f"{file}: {message}" for file, message in wrong.items()) or None
    place = package.path(case.layout.registration)
    yield Item(name="registration and tests' parameter", path=place, stage=Stage.D, problem=others)
    yield Item(name="module of the crate", path=modules, stage=Stage.D, problem=in_crate)
    yield Item(name="library symbol", path=OUT + PROOF, stage=Stage.D, problem=_problem(symbol(case)))


def _artifacts(case: Case) -> Iterator[Item]:
    yield Item(name="analysis", path=OUT + ANALYSIS, stage=Stage.A, problem=_problem(analysis(case)))
    yield Item(name="reference IR", path=OUT + "ir/reference", stage=Stage.A, problem=_problem(reference_ir(case)))
    yield Item(name="generated IR", path=OUT + GENERATED, stage=Stage.B, problem=_problem(generated_ir(case)))


def _report(case: Case, file: str, name: str, stage: Stage, ran: Mapping[Stage, StageRecord]) -> Item:
    """A report that is there, holds together, and agrees with its stage's last verdict."""
    try:
        problem = _correctness(case, ran) if file == PROOF else _performance(case, ran)
    except (OSError, ValueError) as error:
        problem = f"it cannot be read: {error}"
    return Item(name=name, path=OUT + file, stage=stage, problem=problem)


def _correctness(case: Case, ran: Mapping[Stage, StageRecord]) -> str | None:
    report = load(case.io.out / PROOF, ProofReport)
    if report.verdict not in (Verdict.ALL_PASS, Verdict.DEFERRED):
        return f"it says {report.verdict.value}: {report.summary}"
    said = ran[Stage.D].reply.verdict if Stage.D in ran else None
    if said is Verdict.ALL_PASS and report.verdict is not Verdict.ALL_PASS and not _measured(case):
        return "D said ALL_PASS, and no row ran on a GPU: DEFERRED is what can be said"
    return None


def _performance(case: Case, ran: Mapping[Stage, StageRecord]) -> str | None:
    found = performance(case)
    if found.exit is not Exit.GOOD:
        return found.message
    report = load(case.io.out / REPORT, Performance)
    said = ran[Stage.E].reply.verdict if Stage.E in ran else None
    if report.deferred is not None and said is Verdict.DONE:
        return f"E said DONE, and nothing was measured: {report.deferred}"
    if report.deferred is None and said is Verdict.DEFERRED:
        return "E said DEFERRED, and figures are there"
    return None


def _measured(case: Case) -> bool:
    return load(case.io.out / REPORT, Performance).deferred is None


def _log(out: Path, records: Sequence[StageRecord], stage: Stage) -> Item:
    """The log of a stage's last visit, or its record where a program did it."""
    own = [record for record in records if record.stage is stage]
    if not own:
        return Item(
            name=f"log of {stage.value}",
            path=f"{OUT}logs/{stage.value}-1.log",
            stage=stage,
            problem="the stage never ran",
        )
    last = own[-1]
    name = f"{stage.value}-{last.visit}"
    if last.executor is ExecutorKind.PROGRAM:
        return Item(name=f"record of {stage.value}", path=f"{OUT}stages/{name}.json", stage=stage, problem=None)
    path = f"logs/{name}.log"
    there = (out / path).is_file() and (out / path).stat().st_size > 0
    return Item(
        name=f"log of {stage.value}",
        path=OUT + path,
        stage=stage,
        problem=None if there else "it is not there, or empty",
    )


def _problem(found: Validated) -> str | None:
    return None if found.exit is Exit.GOOD else found.message
