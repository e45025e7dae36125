"""Validators: programs that judge what a stage left behind, whoever did the stage.

Each is a function of a `Case`; stage programs do their own work through the same functions, so that a program and
an agent are measured alike. What their exits mean for an agent's claim is in `contradictions.py`.
"""

from collections.abc import Callable, Mapping

from farm.pipeline.stage import Stage
from farm.recipes import Validated
from farm.recipes.cutile_rs.validators.analysis import analysis
from farm.recipes.cutile_rs.validators.case import Case
from farm.recipes.cutile_rs.validators.diagnosis import ir_diagnosis, performance_diagnosis
from farm.recipes.cutile_rs.validators.host import host, symbol
from farm.recipes.cutile_rs.validators.kernel import compiles, entry, kernel
from farm.recipes.cutile_rs.validators.lint import lint
from farm.recipes.cutile_rs.validators.performance import performance
from farm.recipes.cutile_rs.validators.preflight import preflight
from farm.recipes.cutile_rs.validators.registration import registration
from farm.recipes.cutile_rs.validators.tileir import generated_ir, reference_ir

#: What agents call them, cheapest first within a stage.
VALIDATORS: Mapping[str, Callable[[Case], Validated]] = {
    "preflight": preflight,
    "analysis": analysis,
    "reference-ir": reference_ir,
    "entry": entry,
    "compiles": compiles,
    "kernel": kernel,
    "generated-ir": generated_ir,
    "ir-diagnosis": ir_diagnosis,
    "host": host,
    "symbol": symbol,
    "registration": registration,
    "lint": lint,
    "performance": performance,
    "performance-diagnosis": performance_diagnosis,
}

#: Which of them judge a stage, in the order in which they run: later ones read what earlier ones write.
OF_STAGE: Mapping[Stage, tuple[str, ...]] = {
    Stage.A: ("preflight", "analysis", "reference-ir"),
    Stage.B: ("entry", "compiles", "generated-ir", "lint"),
    Stage.C: ("reference-ir", "generated-ir", "ir-diagnosis"),
    Stage.D: ("registration", "lint", "entry", "kernel", "host", "symbol"),
    Stage.E: ("performance",),
    Stage.F: ("performance", "performance-diagnosis"),
}
