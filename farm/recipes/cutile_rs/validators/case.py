"""What validators are given and how they answer."""

from dataclasses import dataclass

from farm.fault import Owner
from farm.layout import Layout
from farm.op import Op
from farm.orders import BoxOrder
from farm.pipeline.stage import Finding, Reply
from farm.recipes import BoxIO, Exit, Validated
from farm.recipes.cutile_rs.stages.tools import finding


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is judged, and where."""

    order: BoxOrder
    io: BoxIO
    layout: Layout
    op: Op


def good(message: str) -> Validated:
    """What was looked at is as it should be."""
    return Validated(exit=Exit.GOOD, message=message)


def bad(owner: Owner, message: str, *findings: Finding) -> Validated:
    """It is not, and whose part that is."""
    return Validated(exit=Exit.BAD, message=f"{owner.value}: {_line(message)}", findings=findings)


def wrong(owner: Owner, message: str, advice: str, file: str | None = None) -> Validated:
    """One thing is wrong, about a file as a whole or about none."""
    return bad(owner, message, finding(message, advice, file))


def not_run(message: str, advice: str) -> Validated:
    """Nothing is known."""
    return Validated(
        exit=Exit.NOT_RUN, message=f"{Owner.ENV.value}: {_line(message)}", findings=(finding(message, advice),)
    )


def of_reply(reply: Reply) -> Validated:
    """What a stage program's reply amounts to: the same code judges a program's work and an agent's."""
    match reply.owner:
        case None:
            return Validated(exit=Exit.GOOD, message=_line(reply.summary), findings=reply.findings)
        case Owner.ENV:
            message = f"{Owner.ENV.value}: {_line(reply.summary)}"
            return Validated(exit=Exit.NOT_RUN, message=message, findings=reply.findings)
        case Owner.HOST | Owner.KERNEL:
            return bad(reply.owner, reply.summary, *reply.findings)


def _line(text: str) -> str:
    return " ".join(text.split())
