"""What model calls cost, as a view: by op and stage, and for each accepted op."""

from collections.abc import Iterable, Sequence

from farm.job import Job, JobState
from farm.ledger import Usage
from farm.views import UsageRowView, UsageView


def usage_view(
    usages: Sequence[Usage], jobs: Iterable[Job], *, run: str | None, budget_micro_usd: int | None
) -> UsageView:
    """The calls of some jobs, added up. Every job counts: what failed was paid for as well."""
    accepted = sum(job.state is JobState.ACCEPTED for job in jobs)
    places = sorted({(usage.op, usage.stage.value) for usage in usages})
    stages = sorted({usage.stage.value for usage in usages})
    total = _row("", "", usages)
    return UsageView(
        run=run,
        budget_micro_usd=budget_micro_usd,
        rows=tuple(
            _row(op, stage, [u for u in usages if (u.op, u.stage.value) == (op, stage)]) for op, stage in places
        ),
        stages=tuple(_row("", stage, [u for u in usages if u.stage.value == stage]) for stage in stages),
        total=total,
        accepted=accepted,
        # Rounded up as every cost is: what was paid is never shown as less.
        accepted_micro_usd=-(-total.cost_micro_usd // accepted) if accepted else None,
    )


def _row(op: str, stage: str, usages: Sequence[Usage]) -> UsageRowView:
    return UsageRowView(
        op=op,
        stage=stage,
        calls=len(usages),
        broken=sum(not usage.whole for usage in usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        cache_write_5m_tokens=sum(usage.cache_write_5m_tokens for usage in usages),
        cache_write_1h_tokens=sum(usage.cache_write_1h_tokens for usage in usages),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost_micro_usd=sum(usage.cost_micro_usd for usage in usages),
    )
