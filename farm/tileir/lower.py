"""An entry's text form to its data flow."""

from farm.tileir import hints
from farm.tileir.constants import read_number
from farm.tileir.facts import Facts
from farm.tileir.forms import Forms
from farm.tileir.graph import Graph, Node, Origin, Region, Role
from farm.tileir.memory import memory_roles, padded_load, with_token
from farm.tileir.model import Entry, Op
from farm.tileir.ops import ELEMENTWISE, LOADS, PURE
from farm.tileir.regions import RegionLowering
from farm.tileir.rules import RuleId
from farm.tileir.scope import Scope, unreadable
from farm.tileir.simplify import Level, Simplifier
from farm.tileir.types import Type, read_type

_EFFECT = read_type("effect")


class Lowering:
    """One side of a comparison: the graph of an entry, its facts and the rules that shaped it."""

    def __init__(
        self,
        entry: Entry,
        *,
        level: Level,
        targets: tuple[str, ...],
        forms: Forms,
        known: dict[int, int] | None = None,
    ) -> None:
        self.entry = entry
        self._forms = forms
        self.level = level
        self.graph = Graph()
        self.s = Simplifier(self.graph, level)
        self.facts = Facts()
        self.targets = targets
        self.scope = Scope()
        self.combiner_depth = 0
        self.regions = RegionLowering(self)
        self.params = tuple(
            self.graph.pure("param", (index,), (), param.type, Origin(f"%{param.name}", param.span, entry.source))
            for index, param in enumerate(entry.params)
        )
        for index, (param, node) in enumerate(zip(entry.params, self.params, strict=True)):
            value = node
            if known and index in known:
                self.s.note(RuleId.KNOWN_VALUE)
                number = read_number(param.type.element, str(known[index]))
                value = self.s.constant(number, param.type, node.origin)
            self.scope.define(param, (value,))
        self.hints = self.effective(entry.hints)
        ops = entry.body.ops
        self.block(ops[:-1] if ops and ops[-1].name == "return" else ops, self.graph.top)

    def effective(self, text: str | None) -> str:
        """Hints as they hold on the compared targets."""
        if text and any(target != "default" for target in hints.read_hints(text)):
            self.s.note(RuleId.HINT_TARGET)
        return hints.effective(text, self.targets)

    def block(self, ops: tuple[Op, ...], region: Region) -> None:
        """Lower operations into a region."""
        for op in ops:
            self.s.region = region
            try:
                self.op(op, region)
            except (IndexError, ValueError, StopIteration) as error:
                raise unreadable(op.span, f"`{op.name}` has not the parts that it must have") from error

    def op(self, op: Op, region: Region) -> None:
        """Lower one operation into a region."""
        origin = Origin(op.name, op.span, op.source)
        match op.name:
            case "assume":
                self._assume(op, region)
            case "constant":
                self.scope.define_all(op, (self._constant(op, origin),))
            case "join_tokens":
                self.scope.define_all(op, (self._joined(op, origin),))
            case "for" | "loop":
                self.regions.loop(op, region, origin)
            case "if":
                self.regions.branch(op, region, origin)
            case "reduce" | "scan":
                self.regions.combiner(op, region, origin)
            case "continue" | "break" | "return":
                self.regions.terminator(op, region, origin)
            case _ if op.name in PURE:
                self._pure(op, origin)
            case _:
                self._effect(op, region, origin)

    def parts(self, op: Op) -> tuple[tuple[str, ...], tuple[Node, ...], tuple[Role, ...]]:
        """Attributes, operands and their roles, in the order written."""
        form = self._forms.of(op)
        operands = tuple([self.scope.use(use) for use in form.uses])
        if self.level is Level.FLOW:
            self._check_types(op, operands)
        return form.attrs, operands, form.roles

    def hints_of(self, op: Op) -> str:
        """An operation's hints as they hold on the compared targets."""
        return self.effective(self._forms.of(op).hint)

    def results(self, op: Op, node: Node, origin: Origin) -> tuple[Node, ...]:
        """The nodes of an operation's results."""
        types = [value.type for value in op.results for _ in range(value.count)]
        return tuple(self.s.make("result", (str(at),), (node,), type_, origin) for at, type_ in enumerate(types))

    def _check_types(self, op: Op, operands: tuple[Node, ...]) -> None:
        known = {node.type for node in operands}
        if op.name not in ELEMENTWISE or op.result_types:
            known |= {value.type for value in op.results}
        elif any(node.type not in op.operand_types for node in operands):
            raise unreadable(op.span, f"an operand of `{op.name}` is no {op.operand_types[-1].text}")
        for type_ in op.operand_types:
            if type_ not in known:
                raise unreadable(op.span, f"`{op.name}` is written with {type_.text}, which no operand of it has")

    def _assume(self, op: Op, region: Region) -> None:
        self.s.note(RuleId.ASSUME)
        attrs, operands, _ = self.parts(op)
        if len(operands) != 1 or len(attrs) != 1:
            raise unreadable(op.span, "an assume takes one predicate and one value")
        self.facts.add(self.s, operands[0], attrs[0], region)
        self.scope.define_all(op, operands)

    def _constant(self, op: Op, origin: Origin) -> Node:
        type_ = op.results[0].type
        word = op.items[0].words[0] if op.items else None
        if not isinstance(word, str) or type_.shape is None:
            raise unreadable(op.span, "a constant takes a value and a tile type")
        element, _, text = word[1:-1].partition(":")
        if element.strip() != type_.element:
            raise unreadable(op.span, f"a constant of {element.strip()} cannot be {type_.text}")
        if "[" in text:
            return self.graph.pure("dense", (text.strip(),), (), type_, origin)
        try:
            number = read_number(type_.element, text)
        except ValueError:
            raise unreadable(op.span, f"`{text.strip()}` is no {type_.element}") from None
        return self.s.constant(number, type_, origin)

    def _joined(self, op: Op, origin: Origin) -> Node:
        _, operands, _ = self.parts(op)
        type_ = op.results[0].type
        if self.level < Level.MEANING:
            return self.graph.pure("join_tokens", (), operands, type_, origin, (Role.TOKEN,) * len(operands))
        flat: dict[int, Node] = {}
        for node in operands:
            inner = node.operands if node.op == "join_tokens" else (node,)
            flat.update({token.id: token for token in inner if token.op != "make_token"})
        if tuple(flat.values()) != operands:
            self.s.note(RuleId.JOIN_TOKENS)
        joined = tuple(flat[id_] for id_ in sorted(flat))
        if not joined:
            return self.graph.pure("make_token", (), (), type_, origin)
        if len(joined) == 1:
            return joined[0]
        return self.graph.pure("join_tokens", (), joined, type_, origin, (Role.TOKEN,) * len(joined))

    def _pure(self, op: Op, origin: Origin) -> None:
        attrs, operands, roles = self.parts(op)
        if not op.results:
            return
        if op.name in ("cmpi", "cmpf"):
            origin.predicate = attrs[0]
        type_ = op.results[0].type
        node = self.s.make(op.name, attrs, operands, type_, origin, roles)
        single = len(op.results) == 1 and op.results[0].count == 1 and op.name != "get_index_space_shape"
        self.scope.define_all(op, (node,) if single else self.results(op, node, origin))

    def _effect(self, op: Op, region: Region, origin: Origin) -> None:
        attrs, operands, roles = self.parts(op)
        roles = memory_roles(op.name, operands, roles)
        mask: Node | None = None
        padding: Node | None = None
        if self.level >= Level.MEANING:
            operands, roles = with_token(self.s, operands, roles)
            if op.name in LOADS:
                operands, roles, mask, padding = padded_load(self.s, operands, roles)
        node = self.graph.unique(op.name, attrs, operands, _EFFECT, origin, region, roles)
        node.hints = self.hints_of(op)
        region.effects.append(node)
        results = self.results(op, node, origin)
        if mask is not None and padding is not None and results:
            self.s.note(RuleId.LOAD_PAD)
            chosen = (mask, results[0], padding)
            roles = (Role.MASK, Role.VALUE, Role.PADDING)
            results = (self.s.make("select", (), chosen, results[0].type, origin, roles), *results[1:])
        self.scope.define_all(op, results)


def param_types(entry: Entry) -> tuple[Type, ...]:
    """Types of an entry's parameters."""
    return tuple(param.type for param in entry.params)
