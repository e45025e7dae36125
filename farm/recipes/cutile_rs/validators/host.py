"""The host code: built, called by the op's rows, and what the library exports."""

from farm.fault import Owner
from farm.layout import find_package
from farm.pipeline.stage import Finding
from farm.recipes import ProcessResult, Validated
from farm.recipes.cutile_rs import rust
from farm.recipes.cutile_rs.inventory import own_digest
from farm.recipes.cutile_rs.stages.host import PROOF, ProofReport, prove_host
from farm.recipes.cutile_rs.stages.kc import check_host_file
from farm.recipes.cutile_rs.stages.tools import load, place, tool_failed, workspace_tree
from farm.recipes.cutile_rs.validators.analysis import read_analysis
from farm.recipes.cutile_rs.validators.case import Case, bad, good, of_reply, wrong


def host(case: Case) -> Validated:
    """The crate builds, and on every row the library launches what the reference launches. Writes proof.json."""
    analysis = read_analysis(case)
    if isinstance(analysis, Validated):
        return analysis
    device = _device_modules(case)
    if device is not None:
        return device
    return of_reply(prove_host(case.order, case.io, case.layout, case.op, analysis))


def symbol(case: Case) -> Validated:
    """The library that was built from the tree as it is now exports the functions that ffi.rs declares."""
    tree = workspace_tree(case.io)
    package = find_package(tree, case.layout)
    file = f"{package.target_folder}/{case.op.name}_kernel/ffi.rs"
    if file not in tree:
        return wrong(Owner.HOST, f"there is no {file}", "write the op's C functions there", file)
    declared = rust.exports(tree[file].data.decode("utf-8", "replace"))
    if not declared:
        message = f"{file} exports no function"
        return wrong(Owner.HOST, message, '#[unsafe(no_mangle)] pub unsafe extern "C" fn ..', file)
    again = "run `validate host`: it builds the crate"
    try:
        report = load(case.io.out / PROOF, ProofReport)
    except (OSError, ValueError) as error:
        return wrong(Owner.HOST, f"{PROOF}: {error}", again, PROOF)
    if report.candidate != own_digest(tree, case.layout, case.op):
        return wrong(Owner.HOST, f"{PROOF} is of another state of the files", again, PROOF)
    missing = sorted(set(declared) - set(report.exports))
    if missing:
        message = f"{file} declares {', '.join(missing)}, which the built library does not export"
        return wrong(
            Owner.HOST, message, "include ffi.rs in the crate's lib.rs; take no cfg that leaves it out", file
        )
    return good(f"the library exports {', '.join(declared)}")


def _device_modules(case: Case) -> Validated | None:
    package = find_package(workspace_tree(case.io), case.layout)
    path = case.io.workspace / package.target_folder / f"{case.op.name}_kernel" / "ffi.rs"
    if not path.is_file():
        return None
    found = check_host_file(case.io, path)
    if isinstance(found, ProcessResult):
        return of_reply(tool_failed("tilefarm-kc check", found))
    findings: tuple[Finding, ...] = found
    return bad(Owner.HOST, place(findings[0]), *findings) if findings else None
