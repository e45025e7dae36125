"""What an agent's failure is charged to."""

import pytest

from containers.box.agent.executor import _fault
from farm.fault import Fault, Owner
from farm.pipeline.protocol import Claim
from farm.pipeline.stage import Stage, Verdict


@pytest.mark.parametrize(
    ("stage", "verdict", "owner", "fault"),
    [
        (Stage.B, Verdict.COMPILED, None, None),
        (Stage.B, Verdict.FAIL_COMPILE, Owner.KERNEL, Fault.KERNEL),
        (Stage.D, Verdict.FAIL, Owner.HOST, Fault.AGENT),
        (Stage.D, Verdict.FAIL, Owner.KERNEL, None),
        (Stage.C, Verdict.FAIL_FIXABLE, Owner.KERNEL, None),
        (Stage.C, Verdict.BLOCKED, Owner.KERNEL, Fault.KERNEL),
        (Stage.A, Verdict.BLOCKED, Owner.ENV, Fault.AGENT),
    ],
)
def test_a_diagnosis_is_finished_work_and_the_environment_is_no_excuse(
    stage: Stage, verdict: Verdict, owner: Owner | None, fault: Fault | None
) -> None:
    claim = Claim(verdict=verdict, owner=owner, fail_class=None, summary="", exits=())
    assert _fault(stage, claim) is fault
