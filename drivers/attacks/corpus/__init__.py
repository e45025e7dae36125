"""The attacks, as data. Nothing that judges reads names or sentences of theirs."""

from drivers.attacks.corpus import files, patches, probed, recorded, reviewed, rows, tampering, timed
from drivers.attacks.model import Attack, OnPaper

#: Candidates that are run here.
CANDIDATES: tuple[Attack, ...] = (
    *patches.ATTACKS,
    *rows.ATTACKS,
    *tampering.ATTACKS,
    *probed.ATTACKS,
    *timed.ATTACKS,
)
#: Attacks on what a GPU's collector reports, and on files.
ON_PAPER: tuple[OnPaper, ...] = (*recorded.ATTACKS, *files.ATTACKS, *reviewed.ATTACKS)
