"""Loops, branches and combiners to nodes with bodies."""

from typing import TYPE_CHECKING, cast

from farm.tileir.arithmetic import integer_of
from farm.tileir.graph import Branch, Loop, Node, Origin, Region, Role
from farm.tileir.model import Op, Use
from farm.tileir.rules import RuleId
from farm.tileir.scope import unreadable
from farm.tileir.simplify import Level
from farm.tileir.types import Type, read_type, tile

if TYPE_CHECKING:
    from farm.tileir.lower import Lowering

_EFFECT = read_type("effect")
_LEAVING = frozenset({"continue", "break", "return"})


class RegionLowering:
    """Lowers what has a body, for one Lowering."""

    def __init__(self, lowering: "Lowering") -> None:
        self._lowering = lowering
        self._graph = lowering.graph
        self._loops: list[Loop] = []

    def loop(self, op: Op, region: Region, origin: Origin) -> None:
        """A `for` or `loop`: built again as long as carried values turn out to be unchanged."""
        lowering = self._lowering
        keyed = {item.key: item for item in op.items}
        scope = lowering.scope
        bounds = tuple(scope.use(use) for key in ("in", "to", "step") if key in keyed for use in _uses(op, key))
        inits = tuple(scope.use(use) for use in _uses(op, "iter_values"))
        unchanged: dict[int, Node] = {}
        mark = lowering.facts.mark()
        while True:
            loop = self._attempt(op, bounds, inits, unchanged, region, origin)
            found = self._unchanged(loop, unchanged)
            if not found:
                break
            lowering.s.note(RuleId.CARRIED_UNCHANGED)
            lowering.facts.reset(mark)
            unchanged.update(found)
        if op.name == "loop" or any(effect.op != "continue" for effect in loop.body.effects):
            region.effects.append(loop)
        results: list[Node] = []
        for at, type_ in enumerate(_result_types(op)):
            if op.name == "for" and at in unchanged:
                results.append(unchanged[at])
            else:
                results.append(self._graph.pure("loop_result", (at,), (loop,), type_, origin))
        scope.define_all(op, tuple(results))

    def _attempt(
        self,
        op: Op,
        bounds: tuple[Node, ...],
        inits: tuple[Node, ...],
        unchanged: dict[int, Node],
        region: Region,
        origin: Origin,
    ) -> Loop:
        lowering = self._lowering
        attrs = tuple(str(word) for item in op.items if item.key is None for word in item.words)
        roles = (Role.BOUND,) * len(bounds)
        loop = cast(Loop, self._graph.unique(op.name, attrs, bounds, _EFFECT, origin, region, roles, Loop))
        loop.body = Region(region, loop, 0)
        loop.inits, loop.continues, loop.breaks = inits, [], []
        values = list(op.regions[0].args)
        outer = lowering.scope.enter()
        loop.index = None
        if op.name == "for":
            index = values.pop(0)
            loop.index = self._argument("index", loop, index.type, Origin(f"%{index.name}", index.span, op.source))
            lowering.scope.define(index, (loop.index,))
        args: list[Node] = []
        for at, value in enumerate(values):
            place = Origin(f"%{value.name}", value.span, op.source)
            args.append(self._argument("arg", loop, value.type, place, at))
            lowering.scope.define(value, (unchanged.get(at, args[at]),))
        loop.args = tuple(args)
        self._loops.append(loop)
        ops = op.regions[0].ops
        lowering.block(ops, loop.body)
        if not ops or ops[-1].name not in _LEAVING:
            self._leave("continue", (), loop.body, origin)
        self._loops.pop()
        leaving = [(leave, len(args)) for leave in loop.continues]
        leaving += [(leave, len(_result_types(op))) for leave in loop.breaks]
        if any(len(leave.operands) != count for leave, count in leaving) or len(inits) != len(args):
            raise unreadable(op.span, f"this `{op.name}` does not pass on as many values as it carries")
        lowering.scope.leave(outer)
        return loop

    def _argument(self, kind: str, loop: Loop, type_: Type, origin: Origin, at: int = 0) -> Node:
        return self._graph.unique(kind, (at,), (loop,), type_, origin, loop.body)

    def _unchanged(self, loop: Loop, known: dict[int, Node]) -> dict[int, Node]:
        if self._lowering.level < Level.MEANING:
            return {}
        return {
            at: loop.inits[at]
            for at, arg in enumerate(loop.args)
            if at not in known
            and all(at < len(leaving.operands) and leaving.operands[at] is arg for leaving in loop.continues)
        }

    def terminator(self, op: Op, region: Region, origin: Origin) -> None:
        """A `continue`, `break`, or early `return`."""
        operands = tuple(self._lowering.scope.use(use) for use in op.uses)
        if op.name != "return" and not self._loops:
            raise unreadable(op.span, f"`{op.name}` stands outside a loop")
        self._leave(op.name, operands, region, origin)

    def _leave(self, name: str, operands: tuple[Node, ...], region: Region, origin: Origin) -> None:
        roles = (Role.NEXT,) * len(operands)
        node = self._graph.unique(name, (), operands, _EFFECT, origin, region, roles)
        region.effects.append(node)
        if name == "continue":
            self._loops[-1].continues.append(node)
        elif name == "break":
            self._loops[-1].breaks.append(node)

    def branch(self, op: Op, region: Region, origin: Origin) -> None:
        """An `if`: a selection where that means the same, else a node with two bodies."""
        lowering = self._lowering
        condition = lowering.scope.use(next(op.uses))
        bodies = [inner.ops for inner in op.regions] + [()] * (2 - len(op.regions))
        outcome = integer_of(condition)
        if outcome is not None and lowering.level >= Level.MEANING:
            ops = bodies[0] if outcome else bodies[1]
            if not ops or ops[-1].name not in _LEAVING:
                lowering.s.note(RuleId.IF_CONSTANT)
                lowering.scope.define_all(op, self._body(ops, region) or ())
                return
        roles = (Role.CONDITION,)
        node = cast(Branch, self._graph.unique("if", (), (condition,), _EFFECT, origin, region, roles, Branch))
        node.bodies = (Region(region, node, 0), Region(region, node, 1))
        node.yields = [self._body(ops, body) for ops, body in zip(bodies, node.bodies, strict=True)]
        lowering.s.region = region
        count = len(_result_types(op))
        if any(values is not None and len(values) != count for values in node.yields):
            raise unreadable(op.span, f"a branch of this `if` does not yield {count} values")
        if any(body.effects for body in node.bodies):
            region.effects.append(node)
        results = [self._chosen(node, at, type_, origin) for at, type_ in enumerate(_result_types(op))]
        lowering.scope.define_all(op, tuple(results))

    def _body(self, ops: tuple[Op, ...], region: Region) -> tuple[Node, ...] | None:
        lowering = self._lowering
        outer = lowering.scope.enter()
        yields = bool(ops) and ops[-1].name == "yield"
        lowering.block(ops[:-1] if yields else ops, region)
        found: tuple[Node, ...] | None = ()
        if yields:
            found = tuple(lowering.scope.use(use) for use in ops[-1].uses)
        elif ops and ops[-1].name in _LEAVING:
            found = None
        lowering.scope.leave(outer)
        return found

    def _chosen(self, node: Branch, at: int, type_: Type, origin: Origin) -> Node:
        s = self._lowering.s
        then, other = node.yields
        if self._lowering.level >= Level.MEANING and then is not None and other is not None:
            if then[at] is other[at]:
                s.note(RuleId.SELECT)
                return then[at]
            effects = any(body.effects for body in node.bodies)
            inner = any(value.home.inside(body) for value in (then[at], other[at]) for body in node.bodies)
            if type_.shape is not None and not effects and not inner:
                s.note(RuleId.IF_SELECT)
                condition = s.splat(node.operands[0], tile(type_.shape, "i1"), origin)
                return s.make("select", (), (condition, then[at], other[at]), type_, origin)
        return self._graph.pure("if_result", (at,), (node,), type_, origin)

    def combiner(self, op: Op, region: Region, origin: Origin) -> None:
        """A `reduce` or `scan`: what its combiner yields is part of its data flow."""
        lowering = self._lowering
        attrs, operands, roles = lowering.parts(op)
        if len(op.regions) != 1:
            raise unreadable(op.span, f"`{op.name}` has no combiner")
        outer = lowering.scope.enter()
        depth = lowering.combiner_depth
        lowering.combiner_depth += 1
        for at, value in enumerate(op.regions[0].args):
            place = Origin(f"%{value.name}", value.span, op.source)
            lowering.scope.define(value, (self._graph.pure("combined", (depth, at), (), value.type, place),))
        effects = len(region.effects)
        yields = self._body(op.regions[0].ops, region)
        if yields is None or len(region.effects) != effects:
            raise unreadable(op.span, f"the combiner of `{op.name}` has effects")
        lowering.combiner_depth -= 1
        lowering.scope.leave(outer)
        attrs = (*attrs, f"operands={len(operands)}")
        roles = (*roles, *(Role.COMBINER for _ in yields))
        type_ = op.results[0].type if op.results else _EFFECT
        node = self._graph.pure(op.name, attrs, operands + yields, type_, origin, roles)
        single = len(_result_types(op)) == 1
        lowering.scope.define_all(op, (node,) if single else lowering.results(op, node, origin))


def _uses(op: Op, key: str) -> list[Use]:
    return [word for item in op.items if item.key == key for word in item.words if isinstance(word, Use)]


def _result_types(op: Op) -> list[Type]:
    return list(op.result_types) if op.result_types else [v.type for v in op.results for _ in range(v.count)]
