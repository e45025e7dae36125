"""The executor `agent`: a conversation per visit; its reply is read, and compared with what the validators say."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from containers.box.agent.caching import marked
from containers.box.agent.conversation import Answer, Conversation, Json
from containers.box.agent.limits import left_s
from containers.box.agent.loop import Refused, begin, begin_repair, talk
from containers.box.agent.model import ModelClient
from containers.box.agent.prompts import Prompts
from containers.box.agent.tools import TOOLS, Tools
from containers.box.agent.trimming import trimmed
from containers.box.executors import Performed, Turn, finding_path
from farm.agents import REPAIR, START, SYSTEM, AgentRole
from farm.fault import Fault, Owner
from farm.orders import AgentChoice, AgentOrder, BoxOrder, Parking
from farm.pipeline.handover import FINISHED
from farm.pipeline.machine import Malformed
from farm.pipeline.protocol import Claim, parse_reply
from farm.pipeline.stage import ExecutorKind, Reply, Stage, ValidatorExit, Verdict
from farm.pipeline.table import GOOD
from farm.recipes import BoxIO, Conversion

#: Folder of the conversations, in the artifact folder.
FOLDER = "agents"


class AgentExecutor:
    """Performs stages by models. Nothing is asked twice that was answered before the box was killed."""

    def __init__(
        self,
        conversion: Conversion,
        recipe: Path,
        roles: Mapping[Stage, AgentRole],
        verdicts: Mapping[Stage, frozenset[Verdict]],
        agents: AgentOrder,
        client: ModelClient | None = None,
    ) -> None:
        self._conversion = conversion
        self._recipe = recipe
        self._roles = roles
        self._verdicts = verdicts
        self._agents = agents
        self._client = client
        self._prompts = Prompts(recipe)

    def perform(self, turn: Turn, order: BoxOrder, io: BoxIO) -> Performed:
        """See Executor."""
        choice = self._agents.choices.get(turn.stage)
        if choice is None or turn.stage not in self._roles:
            blocked = _blocked(f"the recipe has no agent for stage {turn.stage.value}", Fault.UNSUPPORTED)
            return Performed(answer=blocked, by=ExecutorKind.AGENT)
        folder = io.out / FOLDER / str(turn)
        first = Conversation(folder)
        conversation = first
        if turn.repair is None:
            begin(first, choice, self._prompts, self._start(turn, order, io))
        else:
            conversation = Conversation(folder.with_name(f"{turn}-repair"), first)
            begin_repair(conversation, first, self._prompts.text(REPAIR, reason=turn.repair))
        io.log(f"{turn} by {choice.model}{', repair' if turn.repair else ''}")
        ended = self._talk(conversation, choice, turn, order, io)
        spent = conversation.spent
        done = self._judged(ended, turn, order, io)
        io.log(f"{turn}: {spent.calls} calls, {spent.tokens} tokens: {_said(done)}")
        return replace(done, calls=spent.calls, tokens=spent.tokens)

    def _talk(
        self, conversation: Conversation, choice: AgentChoice, turn: Turn, order: BoxOrder, io: BoxIO
    ) -> str | Malformed | Parking | Refused:
        head = conversation.head(lambda: self._head(choice, order, io))
        headers = {
            "x-farm-stage": turn.stage.value,
            "x-farm-visit": str(turn.visit),
            "x-farm-repair": "0" if turn.repair is None else "1",
        }
        tools = Tools(workspace=io.workspace, out=io.out, recipe=self._recipe, toolchain=io.toolchain)
        self._client = self._client or ModelClient(self._agents)
        client = self._client

        def ask(said: Conversation) -> Answer | Parking | Refused:
            messages = trimmed(said.messages(), _keeps)
            return client.ask(marked({**head, "messages": messages}), headers)

        def act(said: Conversation, answer: Answer) -> list[Json]:
            for call in answer.calls:
                io.log(f"tool {call['name']} {str(call['input'])[:500]}")
            return tools.act(said, answer, left_s(choice, said.spent))

        return talk(conversation, choice, ask, act, self._prompts)

    def _head(self, choice: AgentChoice, order: BoxOrder, io: BoxIO) -> Json:
        system = self._prompts.text(
            SYSTEM, source=order.source, target=order.target, workspace=str(io.workspace), out=str(io.out)
        )
        head: Json = {
            "model": choice.model,
            "max_tokens": choice.max_tokens,
            "system": [{"type": "text", "text": system}],
            "tools": list(TOOLS),
        }
        if choice.thinking_budget is not None:
            head["thinking"] = {"type": "enabled", "budget_tokens": choice.thinking_budget}
        if choice.effort is not None:
            head["output_config"] = {"effort": choice.effort}
        return head

    def _start(self, turn: Turn, order: BoxOrder, io: BoxIO) -> str:
        facts: list[tuple[str, object]] = [
            ("stage", turn.stage.value),
            ("visit", turn.visit),
            ("attempt", order.attempt),
            ("op", order.op),
            ("verdicts", ", ".join(sorted(self._verdicts[turn.stage]))),
            ("workspace", io.workspace),
            ("out", io.out),
        ]
        if order.previous_trace is not None:
            facts.append(("trace of the attempt before", order.previous_trace))
        said = sorted(path for path in finding_path(io.out, turn).parent.glob("*.json"))
        if said:
            facts.append(("findings", ", ".join(map(str, said))))
        role = self._roles[turn.stage]
        read = [str(self._recipe / name) for name in (role.role, *role.read)]
        return self._prompts.text(START, facts=facts, read=read)

    def _judged(
        self, ended: str | Malformed | Parking | Refused, turn: Turn, order: BoxOrder, io: BoxIO
    ) -> Performed:
        if isinstance(ended, Malformed | Parking):
            return Performed(answer=ended, by=ExecutorKind.AGENT)
        if isinstance(ended, Refused):
            reply = _blocked(ended.summary, Fault.ENV)
            if ended.by_model:
                reply = _blocked(ended.summary, Fault.AGENT, Owner.KERNEL)
            return Performed(answer=reply, by=ExecutorKind.AGENT)
        claim = parse_reply(ended, self._verdicts[turn.stage])
        if isinstance(claim, Malformed):
            return Performed(answer=claim, by=ExecutorKind.AGENT)
        exits = self._validated(turn.stage, io) if claim.verdict in GOOD else ()
        if any(item.exit_code != 0 for item in exits):
            reply = self._conversion.contradicted(turn.stage, exits)
            return Performed(answer=reply, by=ExecutorKind.AGENT, contradiction=_contradiction(claim, exits))
        reply = Reply(
            verdict=claim.verdict,
            owner=claim.owner,
            fault=_fault(turn.stage, claim),
            fail_class=claim.fail_class,
            validators=exits,
            summary=claim.summary,
        )
        return Performed(answer=reply, by=ExecutorKind.AGENT)

    def _validated(self, stage: Stage, io: BoxIO) -> tuple[ValidatorExit, ...]:
        """The stage's validators, run by us: all of them, so that the next visit knows everything."""
        exits = []
        for validator in self._conversion.validators(stage):
            ended = io.run(validator.argv, cwd=io.workspace, env=dict(os.environ), timeout_s=validator.limit_s)
            last = ended.output.strip().splitlines()[-1:] or [""]
            code = 2 if ended.timed_out else ended.exit_code
            message = f"env: no end after {validator.limit_s:.0f} s" if ended.timed_out else last[0]
            exits.append(ValidatorExit(name=validator.name, exit_code=code, message=message))
        return tuple(exits)


def _keeps(call: Json) -> bool:
    """Whether a tool's output stays in the conversation however old it is: what was read of the recipe."""
    return call["name"] == "read" and "/recipe/" in str(call["input"].get("path", ""))


def _contradiction(claim: Claim, exits: Sequence[ValidatorExit]) -> str:
    red = ", ".join(f"{item.name} ended with {item.exit_code}" for item in exits if item.exit_code != 0)
    return f"{claim.verdict.value} was claimed; {red}"


def _fault(stage: Stage, claim: Claim) -> Fault | None:
    """What a failure is charged to. A diagnosis is finished work: the stage that it is about has failed.

    An agent that blames the environment is charged itself, since what is the environment's is tried again at no
    attempt's cost; what is really its fault a validator or the gateway says.
    """
    if claim.verdict in GOOD or (stage, claim.verdict, claim.owner) in FINISHED:
        return None
    return Fault.KERNEL if claim.owner is Owner.KERNEL else Fault.AGENT


def _blocked(summary: str, fault: Fault, owner: Owner = Owner.ENV) -> Reply:
    return Reply(verdict=Verdict.BLOCKED, owner=owner, fault=fault, fail_class=None, summary=summary)


def _said(done: Performed) -> str:
    answer = done.answer
    return f"{answer.verdict.value}: {answer.summary}" if isinstance(answer, Reply) else str(answer)
