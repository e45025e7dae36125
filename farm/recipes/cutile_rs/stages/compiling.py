"""Compiles a kernel.rs for every signature of the source and compares its Tile IR with the reference's.

Stage B's program and the validators of B, C and D are this: who wrote the file makes no difference.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from farm.analysis import Analysis, Signature
from farm.codec import CodecError
from farm.errors import TileIRError
from farm.fault import Fault, Owner
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO, ProcessResult
from farm.recipes.cutile_rs.instances import INSTANCES, Instances, by_signature, wanted
from farm.recipes.cutile_rs.instantiate import NotInstantiable
from farm.recipes.cutile_rs.stages.kc import TOOL_LIMIT_S, check_rule, compile_entries, compile_error
from farm.recipes.cutile_rs.stages.tools import blocked, environment, finding, load, place, save, tool_failed
from farm.tileir import compare, parse
from farm.tree import sha256

IR_REPORT = "ir-report.json"
GENERATED = "ir/generated"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One line of ir-report.json."""

    signature: str
    kernel: str
    entry: str
    same: bool
    rules: tuple[str, ...]
    difference: str | None
    declared: str = ""  #: why it differs on purpose, as instances.json has it
    source: str = ""  #: sha256 of the kernel.rs that was compiled


def judge_entries(io: BoxIO, path: Path) -> Reply:
    """Whether the entries of a kernel.rs keep the coding rules; COMPILED says no more than that they do."""
    if not path.is_file():
        message = f"there is no {path.relative_to(io.workspace)}"
        found = finding(message, "write the op's kernels there")
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, (found,), message)
    rule = check_rule(io, path)
    if isinstance(rule, ProcessResult):
        return tool_failed("tilefarm-kc check", rule)
    if rule:
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, rule, place(rule[0]))
    return _compiled("no banned parameter, nothing outside of the kernel language", ())


def judge_kernel(order: BoxOrder, io: BoxIO, analysis: Analysis, path: Path) -> Reply:
    """COMPILED when every signature compiles, to the reference's Tile IR or to one that differs as declared."""
    compared = _compile_all(order, io, analysis, path)
    if isinstance(compared, Reply):
        return compared
    wrong = tuple(_different(item) for item in compared if not item.same and not item.declared)
    if wrong:
        summary = f"{len(wrong)} of {len(compared)} signatures differ: {wrong[0].message}"
        return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, wrong, summary)
    return _counted(compared)


def judge_compiles(order: BoxOrder, io: BoxIO, analysis: Analysis, path: Path) -> Reply:
    """COMPILED when every signature compiles; the summary says whose Tile IR is not the reference's."""
    compared = _compile_all(order, io, analysis, path)
    return compared if isinstance(compared, Reply) else _counted(compared)


def _compile_all(order: BoxOrder, io: BoxIO, analysis: Analysis, path: Path) -> Reply | tuple[Compared, ...]:
    """Compile and compare every signature, or say what failed. Writes ir/generated and ir-report.json."""
    file = str(path.relative_to(io.workspace))
    if not path.is_file():
        message = f"there is no {file}"
        return blocked(Verdict.FAIL_COMPILE, Owner.KERNEL, Fault.KERNEL, (finding(message),), message)
    try:
        instances = by_signature(load(io.out / INSTANCES, Instances), analysis)
        entries = [wanted(instances[signature.id], signature) for signature in analysis.signatures]
    except (OSError, ValueError) as error:  # no file, no JSON, not of the type, not instantiable
        return _no_instances(error)
    results = compile_entries(io, path, order.gpu, io.out / GENERATED, entries)
    if isinstance(results, ProcessResult):
        return tool_failed("tilefarm-kc compile", results)
    errors = tuple(compile_error(file, result) for result in results if result["error"] is not None)
    if errors:
        panic = any((result["error"] or {}).get("kind") == "panic" for result in results)
        fault = Fault.COMPILER_BUG if panic else Fault.KERNEL
        return blocked(Verdict.FAIL_COMPILE, Owner.KERNEL, fault, errors, f"does not compile: {place(errors[0])}")
    compared = tuple(
        replace(
            _compare(order, io, signature, instances[signature.id].entry, Path(result["bytecode"])),
            declared=instances[signature.id].differs.strip(),
            source=sha256(path.read_bytes()),
        )
        for signature, result in zip(analysis.signatures, results, strict=True)
    )
    save(io, IR_REPORT, compared)
    return compared


def compare_texts(io: BoxIO, signature: Signature, generated: Path, entry: str, gpu: str) -> Compared:
    """One signature's generated Tile IR text against the reference's. Raises OSError when one is not there."""
    same, rules, difference = False, tuple[str, ...](), None
    left_text = (io.out / signature.ir).read_text(encoding="utf-8")
    right_text = generated.read_text(encoding="utf-8")
    try:
        result = compare(parse(left_text), parse(right_text), gpu=gpu)
        same, rules = result.same, result.rules
        difference = None if result.difference is None else str(result.difference)
    except TileIRError as error:
        difference = str(error)
    return Compared(
        signature=signature.id, kernel=signature.kernel, entry=entry, same=same, rules=rules, difference=difference
    )


def generated_text(io: BoxIO, signature: Signature) -> Path:
    """Where the Tile IR text that kernel.rs gives for a signature lies."""
    return io.out / GENERATED / f"{signature.id}.mlir"


def _compare(order: BoxOrder, io: BoxIO, signature: Signature, entry: str, bytecode: Path) -> Compared:
    argv = (str(io.toolchain / "cuda/bin/tileirdisasm"), "-g", str(bytecode))
    ended = io.run(argv, cwd=io.out, env=environment(io), timeout_s=TOOL_LIMIT_S)
    text = generated_text(io, signature)
    if ended.exit_code == 0:
        text.write_text(ended.output, encoding="utf-8")
        return compare_texts(io, signature, text, entry, order.gpu)
    text.unlink(missing_ok=True)
    return Compared(
        signature=signature.id,
        kernel=signature.kernel,
        entry=entry,
        same=False,
        rules=(),
        difference=f"tileirdisasm refuses the bytecode: {ended.output.strip()}",
    )


def _no_instances(error: Exception) -> Reply:
    if isinstance(error, OSError):
        message = f"{INSTANCES}: {error.strerror or error}"
    elif isinstance(error, (NotInstantiable, CodecError)):
        message = str(error) if isinstance(error, NotInstantiable) else f"{INSTANCES}: {error}"
    else:
        message = f"{INSTANCES} is not JSON: {error}"
    advice = "say for every signature of analysis.json which entry it is, with which generics and arguments"
    return blocked(Verdict.FAIL_FIXABLE, Owner.KERNEL, Fault.KERNEL, (finding(message, advice),), message)


def _different(item: Compared) -> Finding:
    advice = f"write what the source does, or say in {INSTANCES} why it differs (`differs`)"
    return finding(f"{item.kernel}, signature {item.signature}: {item.difference}", advice)


def _counted(compared: tuple[Compared, ...]) -> Reply:
    """The reply for signatures that all compile."""
    names = len({item.entry for item in compared})
    other = [item for item in compared if not item.same]
    if not other:
        summary = f"{names} entries, {len(compared)} signatures compile to the reference's Tile IR"
        return _compiled(summary, (INSTANCES, IR_REPORT))
    said = sum(bool(item.declared) for item in other)
    summary = (
        f"{names} entries, {len(compared)} signatures compile; {len(other)} differ from the reference's Tile IR, "
        f"{said} of them as declared: {_different(other[0]).message}"
    )
    return replace(_compiled(summary, (INSTANCES, IR_REPORT)), findings=tuple(_different(i) for i in other))


def _compiled(summary: str, artifacts: tuple[str, ...]) -> Reply:
    return Reply(
        verdict=Verdict.COMPILED, owner=None, fault=None, fail_class=None, artifacts=artifacts, summary=summary
    )
