"""The geomean gate: from configs and timed calls to a ruling with its table. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from farm.gates import Basis, GateName, GateResult, Ruling
from farm.measured.blocks import Block, blocks, samples
from farm.measured.calls import call_findings
from farm.measured.lines import config_flags, config_line, impossible
from farm.measured.model import ConfigLine, Finding, Flag, Plan, Settings
from farm.measured.records import ConfigFact, TimedCall
from farm.measured.statistics import Answer, Interval, answer, geomean

#: Configs whose problem is of these are no part of the frozen list: reported, and never held against the target.
_LEFT_OUT = ("source", "settings")


class GeomeanRuling(NamedTuple):
    """The gate and what it rests on."""

    result: GateResult
    interval: Interval | None  #: None: nothing could be estimated
    control: float | None
    configs: tuple[ConfigLine, ...]
    second: tuple[ConfigLine, ...]
    flags: tuple[Flag, ...]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the blocks of the frozen configs say so far."""

    least: int  #: blocks tried of the config with the fewest
    control_least: int  #: the same of the A/A control, over the configs that have one
    interval: Interval | None  #: None: a config has fewer than two blocks that count
    control: float | None
    answer: Answer
    problem: str | None  #: why no answer may be believed


def standing(calls: Sequence[TimedCall], configs: Sequence[str], plan: Plan) -> Standing:
    """Where the measuring of these configs is. `configs` is the frozen list and not empty."""
    timed = blocks(call for call in calls if not call.control and call.config in set(configs))
    control = blocks(call for call in calls if call.control)
    found, of_control = samples(timed), samples(control)
    enough = all(len(found.get(config, ())) >= 2 for config in configs)
    interval = geomean([found[config] for config in configs]) if enough else None
    even = geomean(list(of_control.values())).ratio if _all_counted(of_control) else None
    least = min(len(timed.get(config, ())) for config in configs)
    open_ = Answer.MORE if least < plan.blocks * plan.times else Answer.AMBIGUOUS
    return Standing(
        least=least,
        control_least=min((len(listed) for listed in control.values()), default=0),
        interval=interval,
        control=even,
        answer=open_
        if interval is None
        else answer(interval, limit=plan.limit, blocks=least, most=plan.blocks * plan.times),
        problem=_problem(timed, control, configs, plan, least, even),
    )


def _all_counted(found: Mapping[str, list[float]]) -> bool:
    return bool(found) and all(len(values) >= 2 for values in found.values())


def _problem(
    timed: Mapping[str, tuple[Block, ...]],
    control: Mapping[str, tuple[Block, ...]],
    configs: Sequence[str],
    plan: Plan,
    least: int,
    even: float | None,
) -> str | None:
    missing = [config for config in configs if config not in timed]
    if missing:
        return f"{len(missing)} of {len(configs)} configs were not timed: {', '.join(missing[:3])}"
    if least < plan.blocks:
        return f"{least} blocks measured, {plan.blocks} are the least"
    for name, found in (("", timed), ("A/A control, ", control)):
        for config, listed in found.items():
            dropped = sum(not block.counts for block in listed)
            if dropped > plan.dropped_share * len(listed):
                throttled = sum(block.throttled for block in listed)
                return f"{name}{config}: {dropped} of {len(listed)} blocks dropped, {throttled} of them throttled"
    if even is None:
        return "no A/A control was measured"
    if abs(even - 1.0) > plan.control_within:
        return f"A/A control at {even:.4f}, more than {plan.control_within:.0%} from 1"
    return None


def geomean_gate(facts: Iterable[ConfigFact], calls: Iterable[TimedCall], settings: Settings) -> GeomeanRuling:
    """Rule on the records of one subject. Cheats come before what the measuring lost, that before any ratio."""
    all_facts = list({fact.config: fact for fact in facts}.values())
    listed = [fact for fact in all_facts if not fact.second_reference and fact.problem_of not in _LEFT_OUT]
    frozen = [fact.config for fact in listed if fact.problem is None]
    seconds = {fact.config for fact in all_facts if fact.second_reference}
    all_calls = list(calls)
    first = [call for call in all_calls if call.config not in seconds]
    place = standing(first, frozen, settings.plan) if frozen else None
    why = next((f"{fact.config}: {fact.problem}" for fact in all_facts if fact.problem is not None), None)
    lines = tuple(config_line(fact, all_calls) for fact in all_facts if not fact.second_reference)
    cheats = [Finding(ruling=Ruling.FAIL, reason=what) for what in impossible(all_facts, lines, settings.gpu)]
    left_out = sum(fact.problem_of == "settings" for fact in all_facts)
    result = _result(listed, left_out, first, place, settings.plan, why, cheats)
    return GeomeanRuling(
        result=result,
        interval=place.interval if place else None,
        control=place.control if place else None,
        configs=lines,
        second=tuple(config_line(fact, all_calls) for fact in all_facts if fact.second_reference),
        flags=tuple(config_flags(all_facts, lines, first, settings.gpu)),
    )


def _result(
    listed: Sequence[ConfigFact],
    left_out: int,
    calls: Sequence[TimedCall],
    place: Standing | None,
    plan: Plan,
    why: str | None,
    cheats: Sequence[Finding],
) -> GateResult:
    findings = [*call_findings(calls), *cheats, *_untimed(listed), *_unknown(listed, calls)]
    for wanted in (Ruling.FAIL, Ruling.INFRA):
        reasons = [finding.reason for finding in findings if finding.ruling is wanted]
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return _gate(wanted, reasons[0] + more)
    if place is None:
        return _gate(Ruling.INFRA, "no config was timed" + (f": {why}" if why else ""))
    if place.problem is not None or place.interval is None:
        return _gate(Ruling.INFRA, place.problem or "too few blocks count")
    low, ratio, high = place.interval
    of = f" of {len(listed) + left_out}" if left_out else ""
    said = f"measured {ratio:.3f} [{low:.3f}, {high:.3f}] over {len(listed)}{of} configs"
    match place.answer:
        case Answer.PASS:
            return _gate(Ruling.PASS, said)
        case Answer.FAIL:
            return _gate(Ruling.FAIL, f"{said}, below {plan.limit}")
        case Answer.MORE:
            return _gate(Ruling.AMBIGUOUS, f"{said}, open after {place.least} blocks, more may be measured")
        case Answer.AMBIGUOUS:
            return _gate(Ruling.AMBIGUOUS, f"{said}, open after {place.least} blocks")


def _gate(ruling: Ruling, summary: str) -> GateResult:
    return GateResult(gate=GateName.GEOMEAN, ruling=ruling, basis=Basis.MEASURED, summary=summary)


def _untimed(listed: Sequence[ConfigFact]) -> list[Finding]:
    """Configs of the frozen list that could not be timed: the target's fault, or the measuring's."""
    found = []
    for ruling, whose in ((Ruling.FAIL, "target"), (Ruling.INFRA, None)):
        bad = [fact for fact in listed if fact.problem is not None and fact.problem_of == whose]
        if bad:
            who = "the target does not run" if whose else "not timed:"
            reason = f"{who} {len(bad)} of {len(listed)} configs: {bad[0].config}: {bad[0].problem}"
            found.append(Finding(ruling=ruling, reason=reason))
    return found


def _unknown(listed: Sequence[ConfigFact], calls: Sequence[TimedCall]) -> list[Finding]:
    """Calls of configs that are not in the frozen list: the records do not belong together."""
    known = {fact.config for fact in listed}
    strange = sorted({call.config for call in calls} - known)
    return (
        [Finding(ruling=Ruling.INFRA, reason=f"{strange[0]}: timed, and in no list of configs")] if strange else []
    )
