"""Two measurements of one patch: do they say the same? Pure."""

from typing import NamedTuple

from farm.gates import GateName
from farm.measured.model import Measured


class Comparison(NamedTuple):
    """What a replay says about an evidence."""

    differences: tuple[str, ...]  #: a sentence each; none: the replay confirms the evidence
    notes: tuple[str, ...]  #: what could not be compared


def compare(evidence: Measured, replay: Measured) -> Comparison:
    """Whether all gates rule the same and the geomeans' intervals overlap.

    Speeds of different GPUs are not compared: intervals are those of one kind of device.
    """
    if (evidence.op, evidence.patch_sha256) != (replay.op, replay.patch_sha256):
        return Comparison((f"the replay is of another patch, {replay.op} {replay.patch_sha256[:12]}",), ())
    found = []
    for name in GateName:
        before, now = evidence.gate(name), replay.gate(name)
        if before.ruling is not now.ruling:
            found.append(
                f"{name.value}: {before.ruling.value} in the evidence, now {now.ruling.value} ({now.summary})"
            )
    if evidence.gpu != replay.gpu:
        note = f"the evidence is of {evidence.gpu}, the replay of {replay.gpu}: their speeds are not compared"
        return Comparison(tuple(found), (note,))
    if None in (evidence.low, evidence.high, replay.low, replay.high):
        return Comparison(tuple(found), ("there are no two geomeans to compare",))
    if (evidence.low or 0.0) > (replay.high or 0.0) or (replay.low or 0.0) > (evidence.high or 0.0):
        found.append(
            f"geomean {_interval(evidence)} in the evidence, now {_interval(replay)}: the intervals do not overlap"
        )
    return Comparison(tuple(found), ())


def _interval(of: Measured) -> str:
    return f"{of.ratio:.3f} [{of.low:.3f}, {of.high:.3f}]"
