"""Structural hashes of nodes: they guide the matching and prove nothing."""

from collections.abc import Callable

from farm.tileir.graph import Branch, Loop, Node, Region
from farm.tileir.lower import Lowering
from farm.tileir.ops import commutes

_MASK = (1 << 64) - 1
_ROUNDS = 3


def listed_effects(region: Region) -> list[Node]:
    """Every effect in a region and inside its loops and branches, in order."""
    found: list[Node] = []
    for effect in region.effects:
        found.append(effect)
        if isinstance(effect, Loop):
            found += listed_effects(effect.body)
        elif isinstance(effect, Branch):
            for body in effect.bodies:
                found += listed_effects(body)
    return found


def dependencies(node: Node) -> tuple[Node, ...]:
    """What a node depends on, carried values and yields included."""
    if isinstance(node, Loop):
        return (
            *node.operands,
            *node.inits,
            *(value for leaving in node.continues for value in leaving.operands),
        )
    if isinstance(node, Branch):
        return (*node.operands, *(value for values in node.yields if values for value in values))
    return node.operands


def live_nodes(lowering: Lowering) -> set[int]:
    """Ids of the nodes that an effect depends on."""
    found: set[int] = set()
    stack = listed_effects(lowering.graph.top)
    while stack:
        node = stack.pop()
        if node.id in found:
            continue
        found.add(node.id)
        stack += dependencies(node)
        if isinstance(node, Loop):
            stack += node.breaks
    return found


def colour_nodes(lowering: Lowering, parameter: Callable[[int], int]) -> list[int]:
    """A hash for each node by id; `parameter` gives that of each parameter."""
    nodes = lowering.graph.nodes
    colours = [0] * len(nodes)
    following: dict[int, int] = {}  # of each loop argument, from the round before
    for _ in range(_ROUNDS if any(isinstance(node, Loop) for node in nodes) else 1):
        for node in nodes:
            colours[node.id] = _colour(node, colours, following, parameter)
        for node in nodes:
            if isinstance(node, Loop):
                for at, arg in enumerate(node.args):
                    following[arg.id] = hash(
                        tuple(colours[c.operands[at].id] for c in node.continues if at < len(c.operands))
                    )
    return colours


def _colour(node: Node, colours: list[int], following: dict[int, int], parameter: Callable[[int], int]) -> int:
    if node.op == "param":
        return hash((parameter(int(str(node.attrs[0]))), node.type.text))
    if node.op in ("arg", "loop_result"):
        loop = node.operands[0]
        assert isinstance(loop, Loop)
        at = int(str(node.attrs[0]))
        if node.op == "loop_result" and loop.op == "loop":
            leaving = tuple(colours[leave.operands[at].id] for leave in loop.breaks)
            return hash((node.op, node.type.text, leaving))
        init = colours[loop.inits[at].id]
        return hash((node.op, node.type.text, init, following.get(loop.args[at].id, 0)))
    if node.op == "if_result":
        branch = node.operands[0]
        assert isinstance(branch, Branch)
        at = int(str(node.attrs[0]))
        chosen = tuple(colours[values[at].id] for values in branch.yields if values)
        return hash((node.op, colours[branch.operands[0].id], chosen))
    operands = [colours[operand.id] for operand in node.operands]
    if node.op == "join_tokens":
        operands.sort()
    elif len(operands) > 1 and commutes(node.op, node.attrs) and operands[0] > operands[1]:
        operands[:2] = operands[1], operands[0]
    return hash((node.op, node.attrs, node.type.text, tuple(operands)))


def parameter_colours(lowering: Lowering) -> list[int]:
    """A hash for each parameter of the ways in which it is used, without its position."""
    colours = colour_nodes(lowering, lambda _: 0)
    live = live_nodes(lowering)
    context = [0] * len(lowering.graph.nodes)
    for order, effect in enumerate(listed_effects(lowering.graph.top)):
        context[effect.id] = hash(("effect", order))
    for node in reversed(lowering.graph.nodes):
        if node.id not in live:
            continue
        swappable = commutes(node.op, node.attrs)
        for at, operand in enumerate(dependencies(node)):
            place = -1 if node.op == "join_tokens" or (swappable and at < 2) else at
            if isinstance(node, (Loop, Branch)) and at >= len(node.operands):
                place = -2
            use = hash((context[node.id], colours[node.id], node.op, place))
            context[operand.id] = (context[operand.id] + use) & _MASK
    return [hash((param.type.text, context[param.id])) for param in lowering.params]
