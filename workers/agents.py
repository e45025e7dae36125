"""What boxes of this host need to let agents work, and when parked jobs go on."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from containers.access import box_user
from containers.box.files import read_json, write_json
from farm.agents import FILE, AgentRole, read_agents
from farm.errors import ConfigurationError
from farm.job import Job, ParkReason
from farm.ledger import Ledger
from farm.models import Model, ModelTable, Thinking
from farm.orders import AgentChoice, AgentOrder, Parking
from farm.pipeline.stage import ExecutorKind, Stage
from farm.settings import Settings
from workers.gateway.client import health
from workers.gateway.place import gateway_place
from workers.gateway.usable import budgets_of, gateway_problem, models_of

#: How deep a model thinks that takes a word for it, unless agents.toml says.
EFFORT = "medium"
#: A model that takes a number instead may think so many tokens, and half of a reply at most.
THINKING_TOKENS = 8192
ASKING = frozenset({ExecutorKind.AGENT, ExecutorKind.AUTO})


@dataclass(frozen=True, kw_only=True)
class Parked:
    """parked.json: why a pipeline's box stopped."""

    reason: ParkReason
    until: float | None  #: do not ask before, seconds since the epoch


class Agents:
    """Agents on this host."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self._settings = settings
        self._ledger = ledger

    @property
    def gateway(self) -> Path:
        """The folder of the gateway's socket, to be mounted. Raises ConfigurationError."""
        return gateway_place(self._settings.state).folder

    def order(self, executors: Mapping[Stage, ExecutorKind], recipe: Path) -> AgentOrder | None:
        """What a box is told of agents; None where none may work, or none can.

        Raises ConfigurationError for agents that name a model which is not there.
        """
        wanted = [stage for stage, kind in executors.items() if kind in ASKING]
        if not wanted or not (recipe / FILE).is_file() or gateway_problem(self._settings) is not None:
            return None
        roles = read_agents((recipe / FILE).read_text(encoding="utf-8"))
        models = models_of(self._settings)
        return AgentOrder(choices={stage: choice(roles[stage], models) for stage in wanted if stage in roles})

    def missing(self, executors: Mapping[Stage, ExecutorKind], recipe: Path) -> str | None:
        """Why a stage that is an agent's alone has none now; None: it has one, or there is no such stage."""
        if ExecutorKind.AGENT not in executors.values():
            return None
        if not (recipe / FILE).is_file():
            raise ConfigurationError(f"the recipe has no {FILE}, so it has no agents; use --executors program")
        return gateway_problem(self._settings)

    def give_token(self, job: Job, file: Path) -> None:
        """A new token of the job for its box alone, in a file that only the box's user can read."""
        self._ledger.revoke_tokens(job.id)
        user = box_user(os.geteuid(), os.getegid())
        new = file.with_name(f"{file.name}.new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w", encoding="utf-8") as out:
            out.write(self._ledger.issue_token(job.id))
        if os.geteuid() == 0:
            os.chown(new, user.uid, user.gid)
        os.replace(new, file)

    def take_token(self, job: Job) -> None:
        """No box of the job may ask any more."""
        self._ledger.revoke_tokens(job.id)

    def park(self, parking: Parking, file: Path) -> None:
        """Write down why a box stopped, unless that is done."""
        if not file.exists():
            until = None if parking.after_s is None else time.time() + parking.after_s
            write_json(file, Parked(reason=parking.reason, until=until))

    def may_go_on(self, job: Job, file: Path) -> bool:
        """Whether what a parked job waits for is there: an API that answers, or money for the call it wanted."""
        if not file.exists():
            return True
        parked = read_json(file, Parked)
        if parked.reason is ParkReason.BUDGET:
            return self._ledger.affordable(job.id, budgets_of(self._settings.gateway))
        if parked.until is not None and time.time() < parked.until:
            return False
        found = health(gateway_place(self._settings.state))
        return found is not None and found.answers


def choice(role: AgentRole, models: ModelTable) -> AgentChoice:
    """The model of an agent and its limits. Raises ConfigurationError for a model that is not there."""
    model = models.named(role.model)
    return AgentChoice(
        model=model.id,
        max_tokens=model.max_tokens,
        thinking_budget=min(THINKING_TOKENS, model.max_tokens // 2) if model.thinking is Thinking.BUDGET else None,
        effort=_effort(role, model),
        calls=role.calls,
        minutes=role.minutes,
        tokens=role.tokens,
    )


def _effort(role: AgentRole, model: Model) -> str | None:
    if model.thinking is not Thinking.EFFORT:
        return None
    wanted = role.effort or (EFFORT if EFFORT in model.efforts else model.efforts[len(model.efforts) // 2])
    if wanted not in model.efforts:
        raise ConfigurationError(
            f"{FILE}: {model.id} takes the efforts {', '.join(model.efforts)}, not {wanted!r}"
        )
    return wanted
