"""Options that several commands have."""

from typing import Annotated

import typer

from drivers.requests import repo_from_here
from farm.job import Accept
from farm.pipeline.stage import ExecutorKind


def _for_people(kind: ExecutorKind | None) -> ExecutorKind | None:
    if kind is ExecutorKind.SCRIPTED:
        raise typer.BadParameter("scripted is for tests; give program, agent or auto")
    return kind


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, see docs/cli-json.md.")]
Repo = Annotated[
    str, typer.Option("--repo", help="Target repo: URL, path, or builtin:NAME.", callback=repo_from_here)
]
Base = Annotated[
    str | None, typer.Option("--base", help="Branch, tag or commit to start from.", show_default="default branch")
]
RecipeName = Annotated[str, typer.Option("--recipe", help="Conversion kind, by name or its folder.")]
Attempts = Annotated[
    int | None, typer.Option("--attempts", min=1, help="Most attempts a job.", show_default="the recipe's")
]
AcceptBy = Annotated[
    Accept,
    typer.Option("--accept", help="Proof before a commit: measured on a GPU, or certified without one."),
]
Executors = Annotated[
    ExecutorKind | None,
    typer.Option(
        "--executors",
        help="Who performs every stage: program, agent, or auto (the agent where the program gives up).",
        show_default="the recipe's",
        callback=_for_people,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="USD", help="Most that model calls may cost, US dollars.", show_default="the settings'"
    ),
]
PushTo = Annotated[
    str | None,
    typer.Option(
        "--push-to",
        help="Where branches go.",
        show_default="the target repo",
        callback=lambda text: None if text is None else repo_from_here(text),
    ),
]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Job id, or an op: its newest job.")]

DEFAULT_REPO = "builtin:minigym"
DEFAULT_RECIPE = "cutile-rs"
