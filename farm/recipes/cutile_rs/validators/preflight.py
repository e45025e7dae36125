"""Whether the box can do the work at all: tools, their versions, a kernel compiled to the end, free space.

Runs before the first agent: what fails here no agent can help.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.kc import TOOL_LIMIT_S, compile_entries
from farm.recipes.cutile_rs.stages.tools import environment, finding
from farm.recipes.cutile_rs.validators.case import Case, good, not_run

#: What a build with its linked dependencies and the traces of an op leave behind, with room to spare.
FREE_BYTES = 1 << 30

#: Programs of the toolchain, and the argument with which they say their version; None: they have none.
TOOLS = {
    "native/bin/tilefarm-kc": None,
    "cuda/bin/tileiras": "--version",
    "cuda/bin/tileirdisasm": None,
    "rust/bin/rustc": "--version",
    "rust/bin/cargo": "--version",
}

#: The smallest kernel that loads, computes and stores.
CANARY = """\
#[cutile::module]
pub mod canary_module {
    use cutile::core::*;

    /// Adds one to the first element.
    #[cutile::entry()]
    pub unsafe fn canary<E: ElementType>(x: *mut E) {
        let at: PointerTile<*mut E, { [] }> = pointer_to_tile(x);
        let (old, read): (Tile<E, { [] }>, Token) = load_ptr_tko(
            at, ordering::Weak, None::<scope::TileBlock>, None::<Tile<bool, { [] }>>, None::<E>, None::<Token>,
            Latency::<0>,
        );
        let _written: Token = store_ptr_tko(
            at, old + old, ordering::Weak, None::<scope::TileBlock>, None::<Tile<bool, { [] }>>, Some(read),
            Latency::<0>,
        );
    }
}
"""


def preflight(case: Case) -> Validated:
    """Exit 0 when everything is there and the canary becomes a cubin; else 2, with all that is wrong."""
    found = [*_space(case), *_tools(case)]
    if not found:
        found = _canary(case)
    if found:
        problem = not_run(found[0].message, found[0].advice or "")
        return Validated(exit=problem.exit, message=problem.message, findings=tuple(found))
    versions = _versions(case)
    shown = ", ".join(
        f"{name} {versions[name]}" for name in ("rustc", "tileiras", "cuda-tile") if name in versions
    )
    return good(f"a kernel compiles for {case.order.gpu}; {shown}")


def _space(case: Case) -> list[Finding]:
    found = []
    for name, folder in (("workspace", case.io.workspace), ("artifacts", case.io.out), ("/tmp", Path("/tmp"))):
        free = shutil.disk_usage(folder).free
        if free < FREE_BYTES:
            found.append(finding(f"{name}: {free >> 20} MiB are free, {FREE_BYTES >> 20} are needed", "make room"))
    return found


def _tools(case: Case) -> list[Finding]:
    found = []
    versions = _versions(case)
    if not versions:
        found.append(
            finding("toolchain.json names no versions", "install the toolchain anew: farm toolchain install")
        )
    for name, option in TOOLS.items():
        path = case.io.toolchain / name
        if not path.exists():
            found.append(finding(f"the toolchain has no {name}", "install it anew: farm toolchain install"))
            continue
        if option is None:
            continue
        ended = case.io.run((str(path), option), cwd=case.io.out, env=environment(case.io), timeout_s=TOOL_LIMIT_S)
        wanted = versions.get(path.name)
        if ended.exit_code != 0:
            found.append(
                finding(f"{name} {option} exits {ended.exit_code}: {ended.output.strip()[-300:]}", "see the log")
            )
        elif wanted is not None and wanted.split()[0] not in ended.output:
            said = " ".join(ended.output.split())[:80]
            found.append(finding(f"{name} says {said!r}, the toolchain's record {wanted!r}", "install it anew"))
    return found


def _versions(case: Case) -> dict[str, str]:
    try:
        record: dict[str, Any] = json.loads((case.io.toolchain / "toolchain.json").read_text(encoding="utf-8"))
        return dict(record["versions"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _canary(case: Case) -> list[Finding]:
    folder = case.io.out / "preflight"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "canary.rs"
    source.write_text(CANARY, encoding="utf-8")
    entry = {
        "id": "canary",
        "entry": "canary",
        "generics": ["f32"],
        "args": {"x": {"kind": "pointer", "address": 4096}},
        "occupancy": None,
        "num_ctas": None,
    }
    results = compile_entries(case.io, source, case.order.gpu, folder, [entry])
    if not isinstance(results, list):
        return [finding(f"tilefarm-kc exits {results.exit_code}: {results.output.strip()[-300:]}", "see the log")]
    error = results[0]["error"]
    if error is not None:
        return [finding(f"the canary kernel does not compile: {error['message']}", "install the toolchain anew")]
    argv = (
        *(str(case.io.toolchain / "cuda/bin/tileiras"), "--gpu-name", case.order.gpu),
        *("-o", str(folder / "canary.cubin"), results[0]["bytecode"]),
    )
    ended = case.io.run(argv, cwd=folder, env=environment(case.io), timeout_s=TOOL_LIMIT_S)
    if ended.exit_code == 0:
        return []
    message = (
        f"tileiras refuses the canary for {case.order.gpu} (exit {ended.exit_code}): {ended.output.strip()[-300:]}"
    )
    return [finding(message, "the compiler's release does not fit: see `farm doctor`")]
