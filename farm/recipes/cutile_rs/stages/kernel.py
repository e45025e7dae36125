"""Stage B: translate, check the rule on outputs, compile every signature, compare its Tile IR."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farm.analysis import Analysis, Signature
from farm.errors import TileIRError
from farm.fault import Fault, Owner
from farm.layout import Layout, find_package
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, ValidatorExit, Verdict
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.instantiate import NotInstantiable, entry_for, request
from farm.recipes.cutile_rs.kernel import translate
from farm.recipes.cutile_rs.license import licensed
from farm.recipes.cutile_rs.plan import KernelPlan
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.tools import (
    blocked,
    environment,
    finding,
    load,
    place,
    save,
    tool_failed,
    workspace_tree,
)
from farm.tileir import compare, parse

PLAN = "plan.json"
IR_REPORT = "ir-report.json"
TOOL_LIMIT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One line of ir-report.json."""

    signature: str
    kernel: str
    entry: str
    same: bool
    rules: tuple[str, ...]
    difference: str | None


def write_kernel(order: BoxOrder, io: BoxIO, layout: Layout, op: Op) -> Reply:
    """Stage B's program: COMPILED only when every signature's Tile IR is the reference's."""
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
    folder = find_package(tree, layout).target_folder
    path = io.workspace / folder / f"{op.name}_kernel" / "kernel.rs"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plan.source, encoding="utf-8")
    save(io, PLAN, plan)
    rule = check_rule(io, path)
    if isinstance(rule, ProcessResult):
        return tool_failed("tilefarm-kc check", rule)
    if rule:
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, rule, place(rule[0]))
    return _compile(order, io, analysis, plan, path)


def check_host_file(io: BoxIO, path: Path) -> tuple[Finding, ...] | ProcessResult:
    """Device modules in a file of host code: they belong into kernel.rs, where the coding rules are checked."""
    answer = _checked(io, path)
    if isinstance(answer, ProcessResult):
        return answer
    return tuple(
        Finding(
            file=str(path.relative_to(io.workspace)),
            line=module["line"],
            column=None,
            construct=module["name"],
            message="a device module in host code",
            advice="move it into kernel.rs",
        )
        for module in answer["modules"]
    )


def check_rule(io: BoxIO, path: Path) -> tuple[Finding, ...] | ProcessResult:
    """What the kernel file does against the coding rules, read from its syntax tree."""
    answer = _checked(io, path)
    if isinstance(answer, ProcessResult):
        return answer
    file = str(path.relative_to(io.workspace))
    return tuple(
        Finding(
            file=file,
            line=found["line"],
            column=found["column"],
            construct=found["construct"],
            message=found["message"],
            advice=found["advice"],
        )
        for found in answer["findings"]
    )


def _checked(io: BoxIO, path: Path) -> dict[str, Any] | ProcessResult:
    argv = (str(io.toolchain / "native/bin/tilefarm-kc"), "check", str(path))
    ended = io.run(argv, cwd=io.workspace, env=environment(io), timeout_s=TOOL_LIMIT_S)
    answer = _answer(ended, ended.output)
    return ended if answer is None else answer


def _compile(order: BoxOrder, io: BoxIO, analysis: Analysis, plan: KernelPlan, path: Path) -> Reply:
    entries = {}
    for signature in analysis.signatures:
        entry = entry_for(plan.entries, signature)
        if entry is None:
            message = f"no entry is meant for signature {signature.id} of {signature.kernel}"
            return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, (finding(message),), message)
        entries[signature.id] = entry
    generated = io.out / "ir" / "generated"
    generated.mkdir(parents=True, exist_ok=True)
    try:
        wanted = [request(entries[signature.id], signature) for signature in analysis.signatures]
    except NotInstantiable as error:
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, (finding(str(error)),), str(error))
    question = io.out / "compile-request.json"
    question.write_text(
        json.dumps({"file": str(path), "gpu": order.gpu, "out": str(generated), "entries": wanted}),
        encoding="utf-8",
    )
    tool = (str(io.toolchain / "native/bin/tilefarm-kc"), "compile", str(question))
    answered = io.out / "compile-answer.json"  # a file: it holds more text than a log keeps
    argv = ("/bin/sh", "-c", 'exec "$0" "$@" > compile-answer.json', *tool)
    ended = io.run(argv, cwd=io.out, env=environment(io), timeout_s=TOOL_LIMIT_S)
    answer = _answer(ended, answered.read_text(encoding="utf-8") if answered.exists() else "")
    if answer is None:
        return tool_failed("tilefarm-kc compile", ended)
    file = str(path.relative_to(io.workspace))
    errors = tuple(_error(file, result) for result in answer["results"] if result["error"] is not None)
    if errors:
        panic = any((r["error"] or {}).get("kind") == "panic" for r in answer["results"])
        fault = Fault.COMPILER_BUG if panic else Fault.KERNEL
        return blocked(Verdict.FAIL_COMPILE, Owner.KERNEL, fault, errors, f"does not compile: {place(errors[0])}")
    compared = [
        _compare(order, io, signature, entries[signature.id].name, Path(result["bytecode"]))
        for signature, result in zip(analysis.signatures, answer["results"], strict=True)
    ]
    save(io, IR_REPORT, compared)
    wrong = tuple(
        finding(f"{item.kernel}, signature {item.signature}: {item.difference}")
        for item in compared
        if not item.same
    )
    if wrong:
        summary = f"{len(wrong)} of {len(compared)} signatures differ: {wrong[0].message}"
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, wrong, summary)
    return Reply(
        verdict=Verdict.COMPILED,
        owner=None,
        fault=None,
        fail_class=None,
        validators=(
            ValidatorExit(name="entry-rule", exit_code=0, message="no banned parameter"),
            ValidatorExit(name="compile", exit_code=0, message=f"{len(compared)} signatures compile"),
            ValidatorExit(
                name="ir", exit_code=0, message=f"{len(compared)} signatures have the reference's Tile IR"
            ),
        ),
        artifacts=(PLAN, IR_REPORT),
        summary=f"{len(plan.entries)} entries, {len(compared)} signatures compile to the reference's Tile IR",
    )


def _compare(order: BoxOrder, io: BoxIO, signature: Signature, entry: str, bytecode: Path) -> Compared:
    text = bytecode.with_suffix(".mlir")
    argv = (str(io.toolchain / "cuda/bin/tileirdisasm"), "-g", str(bytecode))
    ended = io.run(argv, cwd=io.out, env=environment(io), timeout_s=TOOL_LIMIT_S)
    same, rules, difference = False, tuple[str, ...](), None
    if ended.exit_code != 0:
        difference = f"tileirdisasm refuses the bytecode: {ended.output.strip()}"
    else:
        text.write_text(ended.output, encoding="utf-8")
        try:
            left = parse((io.out / signature.ir).read_text(encoding="utf-8"))
            result = compare(left, parse(text.read_text(encoding="utf-8")), gpu=order.gpu)
            same, rules = result.same, result.rules
            difference = None if result.difference is None else str(result.difference)
        except TileIRError as error:
            difference = str(error)
    return Compared(
        signature=signature.id, kernel=signature.kernel, entry=entry, same=same, rules=rules, difference=difference
    )


def _answer(ended: ProcessResult, output: str) -> dict[str, Any] | None:
    """The tool's JSON; None when it did not give one."""
    if ended.timed_out or ended.exit_code not in (0, 1):
        return None
    try:
        answer: dict[str, Any] = json.loads(output[output.find("{") :])
    except json.JSONDecodeError:
        return None
    return answer


def _error(file: str, result: dict[str, Any]) -> Finding:
    error = result["error"]
    return Finding(
        file=file,
        line=error.get("line"),
        column=error.get("column"),
        construct=result["id"],
        message=f"{error['kind']}: {error['message']}",
        advice=None,
    )
