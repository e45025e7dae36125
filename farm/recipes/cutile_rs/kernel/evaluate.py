"""Walks a kernel's statements and builds its operations."""

import ast
from typing import Any

from farm.recipes.cutile_rs.kernel.build import Builder
from farm.recipes.cutile_rs.kernel.dtypes import of_constant
from farm.recipes.cutile_rs.kernel.expressions import Expressions
from farm.recipes.cutile_rs.kernel.model import Block, Items, Known, Node, Range, TileType
from farm.recipes.cutile_rs.kernel.refusal import Refusal, Split
from farm.recipes.cutile_rs.kernel.source import Sources

#: How deep helper functions may call each other.
CALL_DEPTH = 32


class Returned(Exception):
    """A helper function's return statement was reached."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Evaluator(Expressions):
    """Evaluates one kernel function for all lanes of an entry."""

    def __init__(self, sources: Sources, path: str, builder: Builder, env: dict[str, Any]) -> None:
        super().__init__(sources, path, builder, env)
        self.depth = 0

    def run(self, body: list[ast.stmt]) -> None:
        """Evaluate statements in order."""
        for statement in body:
            self.build.place = statement
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        """Evaluate one statement. Raises Refusal for what the translator has no rule for."""
        match statement:
            case ast.Assign(targets=[target], value=value):
                self.bind(target, self.expression(value))
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.bind(target, self.expression(value))
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                left = self.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
                self.bind(target, self.operation(statement, op, left, self.expression(value)))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self.expression(value)
            case ast.For(target=ast.Name(id=name), iter=iterator, orelse=[]):
                self.loop(statement, name, iterator)
            case ast.If():
                self.branch(statement)
            case ast.Return(value=value):
                raise Returned(Known((None,) * self.build.lanes) if value is None else self.expression(value))
            case ast.Assert():
                pass
            case _:
                kind = type(statement).__name__.lower()
                raise Refusal(
                    statement,
                    f"the translator has no rule for a `{kind}` statement",
                    "write it with assignments, `if`, `for .. in range(..)` and helper functions",
                )

    def bind(self, target: ast.expr, value: Any) -> None:
        """Give `value` the name (or names) of an assignment's left side."""
        match target:
            case ast.Name(id=name):
                if isinstance(value, Node) and value.name is None:
                    value.name = name
                self.env[name] = value
            case ast.Tuple(elts=elements) if isinstance(value, Items) and len(elements) == len(value.items):
                for element, item in zip(elements, value.items, strict=True):
                    self.bind(element, item)
            case _:
                raise Refusal(target, "this cannot be assigned to", "assign to a plain name")

    # ---- branches ------------------------------------------------------------------------

    def branch(self, statement: ast.If) -> None:
        """A decision: while translating when the condition is known, else when the kernel runs."""
        condition = self.expression(statement.test)
        if isinstance(condition, Known):
            self.run(statement.body if self.decide(statement, condition) else statement.orelse)
            return
        if not isinstance(condition, Node) or condition.type is None or condition.type.shape != ():
            raise Refusal(statement.test, "this is no condition", "compare two scalars")
        before = dict(self.env)
        taken, then_env = self.inside(statement.body, before)
        other, else_env = self.inside(statement.orelse, before)
        names = [
            name
            for name in sorted(set(then_env) | set(else_env))
            if then_env.get(name) is not before.get(name) or else_env.get(name) is not before.get(name)
        ]
        carried = [n for n in names if n in before and n in then_env and n in else_env]
        node = self.build.add("if", None, condition)
        node.body, node.other = taken, other
        self.env = before
        for name in names:
            if name not in carried:
                self.env.pop(name, None)
                continue
            start = self.typed(before[name])
            ends = [self.typed_in(block, env[name]) for block, env in ((taken, then_env), (other, else_env))]
            if any(end is None or start is None or end.type != start.type for end in ends):
                self.env.pop(name, None)
                continue
            assert start is not None
            result = self.carry(node, start, name)
            taken.results.append(ends[0])  # type: ignore[arg-type]
            other.results.append(ends[1])  # type: ignore[arg-type]
            self.env[name] = result
        self.move_before(node)

    def decide(self, place: ast.AST, condition: Known) -> bool:
        """The outcome of a known condition; the entry relies on it from now on. Raises Split."""
        outcomes = tuple(bool(value) for value in condition.lanes)
        if condition.source is not None:
            texts = tuple(condition.source if o else f"not {condition.source}" for o in outcomes)
            if len(set(outcomes)) > 1:
                raise Split(place, texts)
            self.build.guards[texts[0]] = None
        return outcomes[0]

    # ---- loops ---------------------------------------------------------------------------

    def loop(self, statement: ast.For, name: str, iterator: ast.expr) -> None:
        """A `for` over a range, with whatever the body changes carried along."""
        span = self.expression(iterator)
        if not isinstance(span, Range):
            raise Refusal(iterator, "only range(..) can be looped over", "write `for i in range(..)`")
        whole = self.build.same("i32")
        start, stop, step = (self.build.convert(bound, whole) for bound in (span.start, span.stop, span.step))
        before = dict(self.env)
        assigned = sorted(_assigned(statement.body) & set(before))
        starts = {n: node for n in assigned if (node := self.typed(before[n])) is not None}
        node = self.build.add("for", None, start, stop, step)
        index = Node("index", TileType(whole, ()), name=name, place=statement)
        arguments = {n: Node("argument", s.type, name=n, place=statement) for n, s in starts.items()}
        node.body, env = self.inside(statement.body, before | arguments | {name: index})
        node.attrs["index"] = index
        self.env = before
        for n in _assigned(statement.body):
            self.env.pop(n, None)
        for n, start_node in starts.items():
            end = self.typed_in(node.body, env.get(n))
            if end is None or end.type != start_node.type:
                if _uses(node.body, arguments[n]):
                    raise Refusal(
                        statement,
                        f"{n} has another type at the end of the loop's body than before the loop",
                        "convert it before the loop",
                    )
                continue
            if end is arguments[n]:
                _replace(node.body, end, start_node)
                self.env[n] = before[n]
                continue
            node.body.arguments.append(arguments[n])
            node.body.results.append(end)
            self.env[n] = self.carry(node, start_node, n)
        self.move_before(node)

    def inside(self, body: list[ast.stmt], env: dict[str, Any]) -> tuple[Block, dict[str, Any]]:
        """The block that `body` becomes, and the names at its end."""
        outer, self.build.block = self.build.block, Block()
        saved, self.env = self.env, dict(env)
        try:
            self.run(body)
            return self.build.block, self.env
        finally:
            self.build.block, self.env = outer, saved

    def carry(self, node: Node, start: Node, name: str) -> Node:
        """One more value that a loop or branch changes."""
        node.operands += (start,)
        result = Node("result", start.type, (node,), {"index": len(node.attrs.setdefault("results", []))}, name)
        node.attrs["results"].append(result)
        return result

    def typed(self, value: Any) -> Node | None:
        """A value as an operation's result, where it is one or can become one."""
        if isinstance(value, Known) and all(isinstance(v, (int, float)) for v in value.lanes):
            kinds = {of_constant(v) for v in value.lanes}
            return self.build.constant(value, self.build.same(kinds.pop())) if len(kinds) == 1 else None
        return value if isinstance(value, Node) and value.type is not None else None

    def typed_in(self, block: Block, value: Any) -> Node | None:
        """Like `typed`, with a constant placed at the end of `block`."""
        outer, self.build.block = self.build.block, block
        try:
            return self.typed(value)
        finally:
            self.build.block = outer

    def move_before(self, node: Node) -> None:
        """Put `node` behind the constants that were made for it."""
        nodes = self.build.block.nodes
        nodes.remove(node)
        nodes.append(node)

    # ---- helper functions ----------------------------------------------------------------

    def inline(self, call: ast.Call, definition: ast.FunctionDef, path: str, arguments: dict[str, Any]) -> Any:
        """The value of a helper function's call, with its operations in place."""
        if self.depth >= CALL_DEPTH:
            raise Refusal(call, "helper functions call each other too deeply", "write a loop")
        saved = self.env, self.path
        self.env, self.path, self.depth = dict(arguments), path, self.depth + 1
        try:
            self.run(definition.body)
        except Returned as returned:
            return returned.value
        except Refusal as refusal:
            refusal.path = refusal.path or path
            raise
        finally:
            (self.env, self.path), self.depth = saved, self.depth - 1
        return Known((None,) * self.build.lanes)


def _assigned(body: list[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _nodes(block: Block) -> list[Node]:
    found = []
    for node in block.nodes:
        found.append(node)
        for inner in (node.body, node.other):
            found += _nodes(inner) if inner else []
    return found


def _uses(block: Block, value: Node) -> bool:
    return any(value in node.operands or _in_results(node, value) for node in _nodes(block))


def _in_results(node: Node, value: Node) -> bool:
    return any(value in inner.results for inner in (node.body, node.other) if inner)


def _replace(block: Block, old: Node, new: Node) -> None:
    for node in _nodes(block):
        node.operands = tuple(new if operand is old else operand for operand in node.operands)
        for inner in (node.body, node.other):
            if inner:
                inner.results = [new if result is old else result for result in inner.results]
