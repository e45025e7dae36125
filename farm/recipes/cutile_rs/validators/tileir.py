"""Tile IR texts in the artifact folder: those of the reference, and those that kernel.rs gives."""

from collections.abc import Iterator

from farm.analysis import Analysis, Signature
from farm.errors import TileIRError
from farm.fault import Owner
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.analyse import ANALYSIS
from farm.recipes.cutile_rs.stages.compiling import IR_REPORT, Compared, compare_texts, generated_text
from farm.recipes.cutile_rs.stages.tools import finding, load
from farm.recipes.cutile_rs.validators.analysis import read_analysis
from farm.recipes.cutile_rs.validators.case import Case, bad, good
from farm.tileir import parse
from farm.tree import sha256


def reference_ir(case: Case) -> Validated:
    """Every signature has a text that parses to one entry, and the bytecode that it was printed from."""
    analysis = read_analysis(case)
    if isinstance(analysis, Validated):
        return analysis
    found = tuple(item for signature in analysis.signatures for item in _reference(case, signature))
    if found:
        return bad(Owner.ENV, f"{found[0].file}: {found[0].message}", *found)
    return good(f"{len(analysis.signatures)} reference texts, each with its bytecode")


def _reference(case: Case, signature: Signature) -> Iterator[Finding]:
    advice = f"the trace writes it together with {ANALYSIS}: trace the op anew"
    try:
        text = (case.io.out / signature.ir).read_text(encoding="utf-8")
        parsed = parse(text)
        if len(parsed.entries) != 1:
            yield finding(f"{len(parsed.entries)} entries instead of one", advice, signature.ir)
        if sha256((case.io.out / signature.bytecode).read_bytes()) != signature.sha256:
            yield finding(f"another sha256 than signature {signature.id} has", advice, signature.bytecode)
    except OSError as error:
        yield finding(f"signature {signature.id}: {error.strerror or error}", advice, signature.ir)
    except (TileIRError, UnicodeDecodeError) as error:
        yield finding(str(error), advice, signature.ir)


def generated_ir(case: Case) -> Validated:
    """Every signature's generated text is there, and ir-report.json says of it what a comparison says now."""
    analysis = read_analysis(case)
    if isinstance(analysis, Validated):
        return analysis
    advice = "run `validate compiles`: it writes the texts below ir/generated and the report"
    try:
        report = load(case.io.out / IR_REPORT, tuple[Compared, ...])
    except OSError as error:
        found = finding(f"{error.strerror or error}", advice, IR_REPORT)
        return bad(Owner.KERNEL, f"{IR_REPORT}: {found.message}", found)
    except ValueError as error:
        return bad(Owner.KERNEL, f"{IR_REPORT}: {error}", finding(str(error), advice, IR_REPORT))
    problems = tuple(_compared(case, analysis, report))
    if problems:
        return bad(Owner.KERNEL, f"{problems[0].file}: {problems[0].message}", *problems)
    same = sum(item.same for item in report)
    return good(f"{same} of {len(report)} generated texts are the reference's; {IR_REPORT} says so")


def _compared(case: Case, analysis: Analysis, report: tuple[Compared, ...]) -> Iterator[Finding]:
    advice = "run `validate compiles`, which compares and writes the report"
    said = {item.signature: item for item in report}
    known = {signature.id for signature in analysis.signatures}
    for name in sorted(set(said) - known):
        yield finding(f"signature {name} is not in {ANALYSIS}", advice, IR_REPORT)
    for signature in analysis.signatures:
        text = generated_text(case.io, signature)
        name = str(text.relative_to(case.io.out))
        item = said.get(signature.id)
        if item is None:
            yield finding(f"nothing is said of signature {signature.id}", advice, IR_REPORT)
            continue
        try:
            truth = compare_texts(case.io, signature, text, item.entry, case.order.gpu)
        except (OSError, UnicodeDecodeError) as error:
            yield finding(f"signature {signature.id}: {error}", advice, name)
            continue
        if truth.same != item.same:
            what = "the same" if truth.same else f"different ({truth.difference})"
            yield finding(f"signature {signature.id} is {what}, the report says otherwise", advice, IR_REPORT)
