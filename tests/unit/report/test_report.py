import json
from html.parser import HTMLParser
from pathlib import Path

from farm import codec
from farm.fault import Fault
from farm.job import Job, JobState
from farm.report.evidence import AttemptEvidence, gate_results
from farm.report.model import Report, build_report
from farm.report.render import render_report, write_report
from tests.builders import RUN, job
from tests.unit.report.builders import certified, stage_b_failed

ACCEPTED = job("relu", JobState.ACCEPTED, commit="c" * 40, branch="farm-certified/cutile-rs/relu")
FAILED = job("wave", JobState.FAILED, fault=Fault.UNSUPPORTED, summary="the kernel uses sin")


def report(jobs: tuple[Job, ...] = (ACCEPTED, FAILED), wave: AttemptEvidence | None = None) -> Report:
    attempts = {ACCEPTED.id: (certified(),), FAILED.id: (wave or stage_b_failed(),)}
    return build_report(RUN, jobs, attempts, versions={"python": "3.11"}, written_at=1_700_000_500.0)


def test_the_report_counts_rows_signatures_time_and_versions() -> None:
    made = report()
    assert made.counts == {"accepted": 1, "failed": 1}
    assert made.exit_code == 4
    assert made.versions == {"python": "3.11", "tileiras": "13.5"}
    relu, wave = made.jobs
    assert (relu.rows_same, relu.signatures_same, relu.signatures_total, relu.seconds) == (1, 1, 1, 12.0)
    assert relu.trace is None
    assert wave.trace is not None
    assert wave.rows_same is None


def test_gates_that_nobody_ran_are_shown_as_not_run() -> None:
    assert [g.ruling.value for g in gate_results((certified(),))] == ["pass", "not_run", "pass"]
    assert [g.ruling.value for g in gate_results(())] == ["not_run"] * 3


def test_the_json_form_comes_back_as_the_same_report() -> None:
    made = report()
    assert codec.decode(Report, json.loads(render_report(made).json)) == made


def test_the_markdown_keeps_one_line_an_op_whatever_a_message_holds() -> None:
    attempt = stage_b_failed()
    assert attempt.result is not None
    text = render_report(report()).markdown
    table = [line for line in text.splitlines() if line.startswith(("| relu", "| wave"))]
    assert len(table) == 2
    assert "cccccccccccc" in table[0]
    assert "pass (certified)" in table[0]


class Links(HTMLParser):
    """Collects what a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.tags: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in {"src", "href"} and value:
                self.targets.append(value)
            if name == "id" and value:
                self.ids.add(value)


def test_the_page_is_self_contained_and_its_links_lead_somewhere() -> None:
    page = Links()
    page.feed(render_report(report()).html)
    assert not page.tags & {"script", "img", "link", "iframe"}
    assert page.targets == ["#wave"]
    assert "wave" in page.ids


def test_markup_in_a_message_stays_text() -> None:
    hostile = job("wave", JobState.FAILED, fault=Fault.INFRA, summary="<script>alert(1)</script>")
    made = build_report(RUN, (hostile,), {}, versions={}, written_at=0.0)
    html = render_report(made).html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_report_is_written_in_three_forms_and_may_be_written_again(tmp_path: Path) -> None:
    for _ in range(2):
        path = write_report(report(), tmp_path / "r-1")
    assert path.name == "report.html"
    assert sorted(p.name for p in path.parent.iterdir()) == ["report.html", "report.json", "report.md"]
