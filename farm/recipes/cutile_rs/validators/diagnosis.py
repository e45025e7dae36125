"""What the diagnosing stages hand to those that can change code: findings with a place and what to do."""

from farm.fault import Owner
from farm.pipeline.stage import Finding
from farm.recipes import Validated
from farm.recipes.cutile_rs.stages.compare import IR_DIAGNOSIS
from farm.recipes.cutile_rs.stages.tools import load
from farm.recipes.cutile_rs.validators.case import Case, bad, good, wrong

PERFORMANCE_DIAGNOSIS = "performance-diagnosis.json"
_FORM = 'write a JSON list of {"file", "line", "column", "construct", "message", "advice"}, null for no place'


def ir_diagnosis(case: Case) -> Validated:
    """C's report can be read, and every finding says what is wrong and what to do."""
    return _diagnosis(case, IR_DIAGNOSIS)


def performance_diagnosis(case: Case) -> Validated:
    """F's report likewise."""
    return _diagnosis(case, PERFORMANCE_DIAGNOSIS)


def _diagnosis(case: Case, file: str) -> Validated:
    try:
        found = load(case.io.out / file, tuple[Finding, ...])
    except OSError as error:
        return wrong(Owner.ENV, f"{file}: {error.strerror or error}", _FORM, file)
    except ValueError as error:
        return wrong(Owner.ENV, f"{file}: {error}", _FORM, file)
    mute = [number for number, item in enumerate(found, 1) if not (item.message.strip() and item.advice)]
    if mute:
        message = f"{file}: finding {mute[0]} lacks a message or what to do"
        return bad(Owner.ENV, message, *(item for number, item in enumerate(found, 1) if number in mute))
    return good(f"{len(found)} findings, each with what to do")
