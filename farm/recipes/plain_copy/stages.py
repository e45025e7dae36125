"""What the pipeline's box does for a copy: A reads, B writes, D compares, E has nothing to time."""

import json

from farm.fault import Fault, Owner
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply, Verdict
from farm.recipes import BoxIO, Exit, Validated
from farm.recipes.plain_copy.layout import Layout
from farm.tree import sha256

ANALYSIS = "analysis.json"
#: Name of the one validator.
COPY = "copy"


def read(order: BoxOrder, io: BoxIO, layout: Layout) -> Reply:
    """Note what the text is."""
    data = (io.workspace / layout.text(order.op)).read_bytes()
    (io.out / ANALYSIS).write_text(json.dumps({"sha256": sha256(data), "bytes": len(data)}), encoding="utf-8")
    return _good(Verdict.PASS, f"{len(data)} bytes to copy", ANALYSIS)


def write(order: BoxOrder, io: BoxIO, layout: Layout) -> Reply:
    """Write the copy."""
    target = io.workspace / layout.copy(order.op)
    target.parent.mkdir(exist_ok=True)
    target.write_bytes((io.workspace / layout.text(order.op)).read_bytes())
    return _good(Verdict.COMPILED, f"wrote {layout.copy(order.op)}")


def compare(order: BoxOrder, io: BoxIO, layout: Layout) -> Reply:
    """Compare the copy with what the text was when it was read."""
    analysis = json.loads((io.out / ANALYSIS).read_text(encoding="utf-8"))
    found = sha256((io.workspace / layout.copy(order.op)).read_bytes())
    if found == analysis["sha256"]:
        return _good(Verdict.ALL_PASS, "the copy has the text's bytes")
    summary = f"the copy's sha256 is {found}, the text's was {analysis['sha256']}"
    return Reply(verdict=Verdict.FAIL, owner=Owner.HOST, fault=Fault.AGENT, fail_class=None, summary=summary)


def copied(order: BoxOrder, io: BoxIO, layout: Layout) -> Validated:
    """The validator: the copy is there and has the text's bytes."""
    copy = io.workspace / layout.copy(order.op)
    if not copy.is_file():
        return _bad(layout.copy(order.op), "it is not there")
    if copy.read_bytes() != (io.workspace / layout.text(order.op)).read_bytes():
        return _bad(layout.copy(order.op), "it has other bytes than the text")
    return Validated(exit=Exit.GOOD, message="the copy has the text's bytes")


def _bad(file: str, what: str) -> Validated:
    found = Finding(
        file=file, line=None, column=None, construct=None, message=what, advice="copy the text byte for byte"
    )
    return Validated(exit=Exit.BAD, message=f"host: {file}: {what}", findings=(found,))


def verify(order: BoxOrder, io: BoxIO) -> Reply:
    """A copy has no speed."""
    io.log(f"{order.op}: nothing to measure")
    return _good(Verdict.DONE, "nothing to measure")


def _good(verdict: Verdict, summary: str, *artifacts: str) -> Reply:
    return Reply(verdict=verdict, owner=None, fault=None, fail_class=None, summary=summary, artifacts=artifacts)
