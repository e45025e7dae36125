"""From a bundle and what came back of it to rulings; several runs of one bundle count together. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from farm.bundle import Bundle, BundleSubject
from farm.measured.model import Measured, Plan, Settings
from farm.measured.ruling import Record, rule
from farm.results import Gathered, MachineFacts, Results, merged


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that was measured of one subject on one kind of machine."""

    bundle: Bundle
    settings: Settings
    records: tuple[Record, ...]
    runs: tuple[Results, ...]  #: the runs that they come from

    @cached_property
    def measured(self) -> Measured:
        """What the gates say."""
        return rule(self.records, self.settings)


def cases(bundle: Bundle, runs: Iterable[Gathered]) -> Iterator[Case]:
    """One case a subject and kind of machine, in the bundle's order; runs of other bundles are passed over.

    Measurements of different machines are never mixed: a gate passes on one of them or on none.
    """
    by_machine: dict[str, list[Gathered]] = {}
    for run in runs:
        if run.results.bundle == bundle.digest:
            by_machine.setdefault(repr(run.results.machine), []).append(run)
    for subject in bundle.subjects:
        for group in by_machine.values():
            own = [run for run in group if any(key[0] == subject.id for key in run.parts)]
            if own:
                yield _case(bundle, subject, own)


def case_of(bundle: Bundle, runs: Sequence[Gathered], subject: str) -> Case | None:
    """The case of one subject: of the machine that passes it, else of the last one that measured it."""
    found = [case for case in cases(bundle, runs) if case.settings.subject == subject]
    return next((case for case in found if case.measured.passed), found[-1] if found else None)


def _case(bundle: Bundle, subject: BundleSubject, runs: Sequence[Gathered]) -> Case:
    machine = runs[0].results.machine
    settings = Settings(
        subject=subject.id,
        op=subject.op,
        patch_sha256=subject.patch_sha256,
        gpu=machine.gpu or "no GPU",
        toolchain=toolchain(bundle, machine),
        entries=subject.names.entries,
        source_kernels=subject.names.source_kernels,
        plan=Plan(limit=bundle.gates.geomean_at_least),
    )
    own = tuple(record for record in merged(runs) if record.subject == subject.id)
    return Case(bundle=bundle, settings=settings, records=own, runs=tuple(run.results for run in runs))


def toolchain(bundle: Bundle, machine: MachineFacts) -> dict[str, str]:
    """Versions that results are keyed by: what built the library, and what ran."""
    driver = {} if machine.driver is None else {"driver": machine.driver}
    built = {f"built-{name}": version for name, version in bundle.versions.items() if name not in machine.versions}
    return {**built, **machine.versions, **driver, "python": machine.python}
