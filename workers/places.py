"""Where a job's things lie in the state folder."""

import re
from dataclasses import dataclass
from pathlib import Path

from farm.job import Job


@dataclass(frozen=True, kw_only=True)
class Places:
    """The folders of one attempt of one job."""

    root: Path  #: everything of this attempt

    @property
    def workspace(self) -> Path:
        """The pipeline's tree, as the box left it."""
        return self.root / "work"

    @property
    def out(self) -> Path:
        """What the pipeline's box wrote."""
        return self.root / "out"

    @property
    def order(self) -> Path:
        """The pipeline's order."""
        return self.root / "order.json"

    @property
    def token(self) -> Path:
        """The secret with which the pipeline's box asks the gateway; there if agents may work in it."""
        return self.root / "token"

    @property
    def parked(self) -> Path:
        """Why the pipeline's box stopped before its work was done; gone when it may go on."""
        return self.root / "parked.json"

    @property
    def leak_scan(self) -> Path:
        """What the leak scan before the attempt found."""
        return self.root / "leak-scan.json"

    @property
    def prepared(self) -> Path:
        """Written last by PREPARING."""
        return self.root / "prepared.json"

    @property
    def gate_work(self) -> Path:
        """The bare base plus the patch."""
        return self.root / "gate-work"

    @property
    def gate_out(self) -> Path:
        """What the gate box wrote."""
        return self.root / "gate-out"

    @property
    def gate_order(self) -> Path:
        """The gate box's order; written last by CAPTURED."""
        return self.root / "gate-order.json"

    @property
    def gpu_bundle(self) -> Path:
        """What a GPU box is given: the attempt's bundle."""
        return self.root / "gpu-bundle"

    def gpu_run(self, number: int) -> Path:
        """Folder of one run of that bundle: `order.json`, `out`."""
        return self.root / f"gpu-{number}"

    @property
    def pushes(self) -> Path:
        """One byte for each push that the remote did not take."""
        return self.root / "pushes"


def jobs_folder(state: Path) -> Path:
    """Where each job that moves has a folder of its id's name."""
    return state / "jobs"


def places(state: Path, job: Job) -> Places:
    """The folders of the job's current attempt; a transient retry begins in a folder of its own."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", job.id)
    return Places(root=jobs_folder(state) / name / f"{job.attempt}-{job.transients}")
