"""How far an agent may go in a visit. Pure."""

from containers.box.agent.conversation import Spent
from farm.orders import AgentChoice


def last(choice: AgentChoice, spent: Spent) -> str | None:
    """Why the next call has to be the last one of the visit, or None."""
    if spent.calls + 1 >= choice.calls:
        return f"{choice.calls} calls are all"
    if spent.seconds >= choice.minutes * 60:
        return f"{choice.minutes:g} minutes are over"
    if spent.tokens + 2 * spent.last_tokens >= choice.tokens:
        return f"{choice.tokens} tokens are nearly used"
    return None


def left_s(choice: AgentChoice, spent: Spent) -> float:
    """How long a tool may run at most, seconds: little more than the visit has left."""
    return max(30.0, choice.minutes * 60 - spent.seconds)
