"""Reports and traces as text: templates beside this file, rendered strictly."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from farm import codec
from farm.report.model import Report
from farm.report.trace import Trace, describe


class Rendered(NamedTuple):
    """A report in its three forms."""

    html: str  #: self-contained: no script, no network
    markdown: str
    json: str


def render_report(report: Report) -> Rendered:
    """The report as HTML, Markdown and JSON."""
    templates = _templates()
    return Rendered(
        html=templates.get_template("report.html.j2").render(report=report),
        markdown=templates.get_template("report.md.j2").render(report=report),
        json=_json(report),
    )


def write_report(report: Report, folder: Path) -> Path:
    """Write report.html, report.md and report.json into `folder`, made if need be; the HTML file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    rendered = render_report(report)
    for name, text in (("html", rendered.html), ("md", rendered.markdown), ("json", rendered.json)):
        _replace(folder / f"report.{name}", text)
    return folder / "report.html"


def trace_markdown(trace: Trace) -> str:
    """The trace as Markdown."""
    return _templates().get_template("trace.md.j2").render(trace=trace)


def trace_json(trace: Trace) -> str:
    """The trace as JSON; `farm.codec.decode(Trace, ...)` reads it back."""
    return _json(trace)


def _json(value: object) -> str:
    return json.dumps(codec.encode(value), indent=2) + "\n"


def _replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        autoescape=select_autoescape(enabled_extensions=("html.j2",)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["when"] = _when
    environment.filters["duration"] = _duration
    environment.filters["cell"] = _cell
    environment.filters["describe"] = describe
    return environment


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def _cell(text: object) -> str:
    """Text that cannot end a Markdown table's cell or row."""
    return "-" if text is None else str(text).replace("|", "\\|").replace("\r", " ").replace("\n", " ")
