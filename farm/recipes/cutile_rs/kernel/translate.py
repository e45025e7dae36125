"""The translator's door: an op's kernels into one kernel.rs, or the findings that stand in its way."""

from collections.abc import Mapping
from dataclasses import dataclass

from farm.analysis import Analysis, KernelSource, Signature
from farm.fault import Fault
from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.kernel.entry import EntryWriter, Written
from farm.recipes.cutile_rs.kernel.names import snake
from farm.recipes.cutile_rs.kernel.refusal import Refusal, Split
from farm.recipes.cutile_rs.kernel.source import Sources
from farm.recipes.cutile_rs.kernel.wrap import wrapped
from farm.recipes.cutile_rs.plan import KernelPlan

#: More entries than this for one kernel are no translation any more.
MOST_ENTRIES = 12

#: Sources are anybody's: values that an evaluation does not foresee end it with one of these.
UNFORESEEN = (AttributeError, TypeError, ValueError, IndexError, ArithmeticError, AssertionError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Translation:
    """Either a plan, or the findings that stand in its way with the fault that they amount to."""

    plan: KernelPlan | None
    findings: tuple[Finding, ...]
    fault: Fault | None  #: DSL_LIMIT or UNSUPPORTED, with findings


def translate(op: str, sources: Mapping[str, str], analysis: Analysis) -> Translation:
    """Translate every traced kernel of `op`. `sources` holds the texts of its files by path."""
    known = Sources(sources)
    written: list[Written] = []
    findings: list[Finding] = []
    faults: list[Fault] = []
    taken: set[str] = set()
    for kernel in analysis.kernels:
        lanes = tuple(s for s in analysis.signatures if s.kernel == kernel.name)
        if not lanes:
            continue
        try:
            written += _entries(known, kernel, lanes, analysis.gpu, taken)
        except Refusal as refusal:
            path = refusal.path or kernel.file
            findings.append(refusal.finding(path, sources.get(path, "")))
            faults.append(refusal.fault)
        except (SyntaxError, KeyError) as error:
            findings.append(_unreadable(kernel, error))
            faults.append(Fault.UNSUPPORTED)
        except UNFORESEEN as error:
            findings.append(_unforeseen(kernel, error))
            faults.append(Fault.UNSUPPORTED)
    if not written and not findings:
        findings.append(_nothing(op))
        faults.append(Fault.UNSUPPORTED)
    if findings:
        fault = Fault.DSL_LIMIT if set(faults) == {Fault.DSL_LIMIT} else Fault.UNSUPPORTED
        return Translation(plan=None, findings=tuple(findings), fault=fault)
    module = f"{snake(op)}_module"
    plan = KernelPlan(
        op=op,
        module=module,
        source=_text(op, module, written, analysis),
        entries=tuple(item.entry for item in written),
    )
    return Translation(plan=plan, findings=(), fault=None)


def _entries(
    sources: Sources, kernel: KernelSource, lanes: tuple[Signature, ...], gpu: str, taken: set[str]
) -> list[Written]:
    """The kernel's entries: one, or one for each set of signatures that cannot share one."""
    waiting = [lanes]
    done: list[tuple[tuple[Signature, ...], Written]] = []
    while waiting:
        group = waiting.pop(0)
        try:
            done.append((group, EntryWriter(sources, kernel, group, gpu).write("entry")))
        except Split as split:
            parts: dict[str, list[Signature]] = {}
            for lane, outcome in zip(group, split.outcomes, strict=True):
                parts.setdefault(outcome, []).append(lane)
            if len(parts) < 2:
                raise Refusal(split.node, "this depends on more than is known", "make it a ct.Constant") from None
            waiting += [tuple(part) for part in parts.values()]
            if len(waiting) + len(done) > MOST_ENTRIES:
                raise Refusal(
                    split.node,
                    f"the traced cases would need more than {MOST_ENTRIES} entries: {split}",
                    "pass the value as a runtime scalar or an integer ct.Constant",
                ) from None
    done.sort(key=lambda item: -len(item[1].entry.when))
    base = snake(kernel.function)
    base = base if "kernel" in base else f"{base}_kernel"
    found = []
    for number, (group, _) in enumerate(done, start=1):
        name = base if len(done) == 1 else f"{base}_{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(EntryWriter(sources, kernel, group, gpu).write(name))
    return found


def _text(op: str, module: str, written: list[Written], analysis: Analysis) -> str:
    files = sorted({kernel.file for kernel in analysis.kernels})
    helpers: dict[str, str] = {}
    for item in written:
        helpers |= item.helpers
    lines = [f"// {op}: translated from {', '.join(files)}.", "", "#[cutile::module]", f"pub mod {module} {{"]
    lines += ["    use cutile::core::*;", ""]
    for name in sorted(helpers, key=lambda n: (not n.startswith("widen"), n)):
        lines += [*helpers[name].rstrip("\n").split("\n"), ""]
    for item in written:
        lines += [f"    {line}".rstrip() for line in item.lines]
        lines.append("")
    while lines[-1] == "":
        lines.pop()
    return wrapped("\n".join([*lines, "}"]))


def _unreadable(kernel: KernelSource, error: SyntaxError | KeyError) -> Finding:
    line = error.lineno if isinstance(error, SyntaxError) else None
    return Finding(
        file=kernel.file,
        line=line,
        column=error.offset if isinstance(error, SyntaxError) else None,
        construct=None,
        message=f"the source file cannot be read: {error}",
        advice="correct the file, or name every file of the op in the analysis",
    )


def _unforeseen(kernel: KernelSource, error: Exception) -> Finding:
    return Finding(
        file=kernel.file,
        line=kernel.line,
        column=1,
        construct=kernel.function,
        message=f"the translator does not understand a construct of this kernel ({type(error).__name__}: {error})",
        advice="write it with the functions and statements that farm/recipes/cutile_rs/kernel/README.md lists",
    )


def _nothing(op: str) -> Finding:
    return Finding(
        file=None,
        line=None,
        column=None,
        construct=op,
        message="no traced launch runs a kernel of this op",
        advice="write rows that launch its kernels",
    )
