"""`farm doctor`: whether this machine can run jobs, one named check after the other.

A check is a function without arguments that looks at one thing; what it looks at is bound when the
list is made (`drivers.cli.wiring`), so that checks are tested with plain values.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farm.errors import FarmError
from farm.views import CheckView, DoctorView
from workers.gateway.client import Health, Probed

Check = Callable[[], CheckView]


def run_checks(checks: Sequence[tuple[str, Check]]) -> DoctorView:
    """Run all checks. One that raises FarmError is an error with that message."""
    done = tuple(_run(name, check) for name, check in checks)
    return DoctorView(healthy=all(c.level != "error" for c in done), checks=done)


def _run(name: str, check: Check) -> CheckView:
    try:
        return check()
    except FarmError as error:
        what, _, advice = str(error).partition("; ")
        return CheckView(name=name, level="error", detail=what, next_step=advice or None)


def python_version(found: tuple[int, int]) -> CheckView:
    """Python 3.11 or newer."""
    text = f"{found[0]}.{found[1]}"
    if found < (3, 11):
        return CheckView(name="python", level="error", detail=text, next_step="install Python 3.11 or newer")
    return CheckView(name="python", level="ok", detail=text, next_step=None)


def program(
    name: str, advice: str, *, needed: bool = True, which: Callable[[str], str | None] = shutil.which
) -> CheckView:
    """A program on PATH."""
    path = which(name)
    if path is not None:
        return CheckView(name=name, level="ok", detail=path, next_step=None)
    return CheckView(name=name, level="error" if needed else "warning", detail="not on PATH", next_step=advice)


def engine(facts: Mapping[str, str], problem: str | None, advice: str | None) -> CheckView:
    """The container engine answers; `facts` name its version and what it runs on."""
    if problem is not None:
        return CheckView(name="engine", level="error", detail=problem, next_step=advice)
    detail = ", ".join(f"{name} {value}" for name, value in facts.items())
    return CheckView(name="engine", level="ok", detail=detail, next_step=None)


def toolchain(load: Callable[[], Mapping[str, str]]) -> CheckView:
    """The conversion toolchain; `load` gives its versions or raises ToolchainMissing."""
    versions = ", ".join(f"{name} {version}" for name, version in load().items())
    return CheckView(name="toolchain", level="ok", detail=versions, next_step=None)


def free_space(folder: Path, needed_bytes: int, free_bytes: int) -> CheckView:
    """Room for a job in the state folder."""
    detail = f"{free_bytes / 2**30:.1f} GiB free in {folder}, a job wants {needed_bytes / 2**30:.1f} GiB"
    if free_bytes < needed_bytes:
        advice = f"free space in {folder}, or name another state folder"
        return CheckView(name="space", level="error", detail=detail, next_step=advice)
    return CheckView(name="space", level="ok", detail=detail, next_step=None)


def broker(problems: Callable[[], Sequence[str] | None]) -> CheckView:
    """Redis keeps what it is given; `problems` lists what keeps it from that, None: it is not started yet.

    Raises BrokerUnavailable when a Redis that was given does not answer.
    """
    found = problems()
    if found is None:
        detail = "not running; `farm submit` or `farm up` starts the embedded one"
        return CheckView(name="redis", level="ok", detail=detail, next_step=None)
    if found:
        advice = "correct its configuration, then restart it"
        return CheckView(name="redis", level="error", detail="; ".join(found), next_step=advice)
    return CheckView(name="redis", level="ok", detail="answers, append-only, no eviction", next_step=None)


def ledger(count_runs: Callable[[], int]) -> CheckView:
    """The ledger opens; `count_runs` raises LedgerUnavailable when it does not."""
    return CheckView(name="ledger", level="ok", detail=f"opens, {count_runs()} runs", next_step=None)


def recipes(problems: Mapping[str, Sequence[str]]) -> CheckView:
    """Every recipe is free of mistakes; `problems` by recipe name."""
    broken = {name: found for name, found in problems.items() if found}
    if broken:
        detail = "; ".join(f"{name}: {len(found)} mistakes" for name, found in broken.items())
        advice = "`farm recipe check NAME` lists them"
        return CheckView(name="recipes", level="error", detail=detail, next_step=advice)
    return CheckView(name="recipes", level="ok", detail=", ".join(problems) or "none", next_step=None)


def gateway(health: Health | None, problem: str | None) -> CheckView:
    """The relay to the model API; `problem`: why none could be started, None: one could."""
    if health is None and problem is not None:
        what, _, advice = problem.partition("; ")
        return CheckView(name="gateway", level="warning", detail=f"no agents: {what}", next_step=advice)
    if health is None:
        detail = "not running; a run whose agents may have to work starts it"
        return CheckView(name="gateway", level="ok", detail=detail, next_step=None)
    if not health.broker:
        return CheckView(name="gateway", level="error", detail="runs without its Redis", next_step="`farm up`")
    detail = f"runs, {health.active} of {health.limit} calls under way"
    if health.rest_s or health.failing_s:
        detail += f"; the API has failed for {health.failing_s:.0f} s, nobody asks for {health.rest_s:.0f} s"
        return CheckView(
            name="gateway", level="warning", detail=detail, next_step="jobs wait and go on by themselves"
        )
    return CheckView(name="gateway", level="ok", detail=detail, next_step=None)


def model(probed: Probed) -> CheckView:
    """What came of one tiny call."""
    if not probed.works:
        advice = "correct gateway.url, the key or the account, then `farm down` and try again"
        return CheckView(name="model", level="error", detail=f"{probed.model}: {probed.why}", next_step=advice)
    detail = f"{probed.model} answers in {probed.seconds:.1f} s, for {probed.micro_usd} millionths of a dollar"
    return CheckView(name="model", level="ok", detail=detail, next_step=None)


def gpu(device_nodes: Sequence[str]) -> CheckView:
    """A GPU, without which measured gates wait."""
    if device_nodes:
        return CheckView(name="gpu", level="ok", detail=f"{len(device_nodes)} found", next_step=None)
    advice = "jobs end awaiting_gpu; `--accept certified` lands on certificates instead"
    return CheckView(name="gpu", level="warning", detail="none on this machine", next_step=advice)
