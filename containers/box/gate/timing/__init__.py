"""Device time of both sides on one GPU: child processes, called in turn, records taken by the collector.

Needs `farm.measured.sequential` to know when enough was measured.
"""

from collections.abc import Callable, Sequence

from containers.box.gate.subject import Sink, Subject
from containers.box.gate.timing.bench import Advice, Bench, by_collector
from containers.box.gate.timing.recorder import Recorder
from containers.box.gate.timing.settings import Settings

__all__ = ["Settings", "run"]


def run(
    subject: Subject,
    *,
    limit_s: float,
    sink: Sink,
    settings: Settings | None = None,
    advise: Callable[[Sequence[str]], Advice] | None = None,
    record: Callable[[str], Recorder] | None = None,
) -> None:
    """Write ConfigFact and TimedCall records of one subject; the last fact of a configuration counts.

    `record(name)` makes the recorder of a child, `source`, `target` or `control`; the native collector unless
    given. `advise(configs)` says what is wanted after the first stage.
    """
    chosen = settings or Settings()
    Bench(subject, sink, chosen, limit_s, advise or _sequential(chosen), record or by_collector(subject)).run()


def _sequential(settings: Settings) -> Callable[[Sequence[str]], Advice]:
    from farm.measured.model import Plan
    from farm.measured.sequential import Sequential

    return lambda configs: Sequential(configs, Plan(blocks=settings.blocks, times=settings.most))
