"""How many rows a parametrised test has for one backend, by evaluating literal parametrisations.

Only literals, comprehensions over literals and a few builtins are evaluated; anything else is not
literal and has no count. Attributes such as `torch.float16` are opaque values, equal by their text.
"""

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from farm.recipes.cutile_rs.syntax import argument, string


class NotLiteral(Exception):
    """The expression cannot be evaluated by reading it."""


@dataclass(frozen=True)
class Opaque:
    """A value known by its text only."""

    text: str


@dataclass(frozen=True)
class Param:
    """A `pytest.param(...)`."""

    values: tuple[object, ...]


Scope = Mapping[str, object]

_CALLS: dict[str, Callable[..., object]] = {
    "range": lambda *a: list(range(*a)),
    "list": list,
    "tuple": tuple,
    "len": len,
    "zip": lambda *a: list(zip(*a, strict=False)),
    "product": lambda *a: list(itertools.product(*a)),
}
_BINARY: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
}
_COMPARE: dict[type[ast.cmpop], Callable[..., bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


def evaluate(node: ast.expr, scope: Scope) -> object:
    """The value of an expression. Raises NotLiteral."""
    try:
        return _evaluate(node, scope)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise NotLiteral(str(error)) from error


def _evaluate(node: ast.expr, scope: Scope) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        value = scope.get(node.id, NotLiteral)
        if value is NotLiteral:
            raise NotLiteral(node.id)
        return value
    if isinstance(node, ast.Attribute):
        return Opaque(ast.unparse(node))
    if isinstance(node, (ast.List, ast.Tuple)):
        items = list(_items(node, scope))
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return list(_comprehension(node.elt, node.generators, scope))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_evaluate(node.left, scope), _evaluate(node.right, scope))
    if isinstance(node, ast.UnaryOp):
        return _unary(node, scope)
    if isinstance(node, ast.BoolOp):
        values = (_evaluate(value, scope) for value in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare):
        return _compare(node, scope)
    if isinstance(node, ast.IfExp):
        return _evaluate(node.body if _evaluate(node.test, scope) else node.orelse, scope)
    if isinstance(node, ast.Call):
        return _call(node, scope)
    raise NotLiteral(ast.unparse(node))


def _items(node: ast.List | ast.Tuple, scope: Scope) -> Iterator[object]:
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = _evaluate(element.value, scope)
            if not isinstance(value, (list, tuple)):
                raise NotLiteral(ast.unparse(element))
            yield from value
        else:
            yield _evaluate(element, scope)


def _comprehension(elt: ast.expr, generators: list[ast.comprehension], scope: Scope) -> Iterator[object]:
    if not generators:
        yield _evaluate(elt, scope)
        return
    first, *rest = generators
    values = _evaluate(first.iter, scope)
    if not isinstance(values, (list, tuple)):
        raise NotLiteral(ast.unparse(first.iter))
    for value in values:
        inner = {**scope, **_bind(first.target, value)}
        if all(_evaluate(test, inner) for test in first.ifs):
            yield from _comprehension(elt, rest, inner)


def _bind(target: ast.expr, value: object) -> dict[str, object]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (list, tuple)):
        if len(target.elts) != len(value):
            raise NotLiteral(ast.unparse(target))
        pairs = zip(target.elts, value, strict=True)
        return {name: bound for t, v in pairs for name, bound in _bind(t, v).items()}
    raise NotLiteral(ast.unparse(target))


def _unary(node: ast.UnaryOp, scope: Scope) -> object:
    value = _evaluate(node.operand, scope)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
        return -value
    raise NotLiteral(ast.unparse(node))


def _compare(node: ast.Compare, scope: Scope) -> bool:
    values = [_evaluate(operand, scope) for operand in (node.left, *node.comparators)]
    pairs = zip(values, node.ops, values[1:], strict=False)
    return all(_COMPARE[type(op)](left, right) for left, op, right in pairs)


def _call(node: ast.Call, scope: Scope) -> object:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "param":
        return Param(tuple(_evaluate(arg, scope) for arg in node.args))
    if name not in _CALLS or node.keywords or name in scope:
        raise NotLiteral(ast.unparse(node))
    return _CALLS[name](*(_evaluate(arg, scope) for arg in node.args))


def scope_of(body: list[ast.stmt], outer: Scope, backend: str) -> dict[str, object]:
    """The literal names that statements bind, on a machine where `backend` alone is available."""
    scope = dict(outer)
    for statement in body:
        if isinstance(statement, ast.If):
            available = _availability(statement.test)
            if available is not None:
                chosen = statement.body if available == backend else statement.orelse
                scope = scope_of(chosen, scope, backend)
                continue
        for name, value in _bindings(statement):
            try:
                scope[name] = NotLiteral if value is None else evaluate(value, scope)
            except NotLiteral:
                scope[name] = NotLiteral
    return scope


def _availability(test: ast.expr) -> str | None:
    if isinstance(test, ast.Call) and len(test.args) == 1 and "available" in ast.unparse(test.func):
        return string(test.args[0])
    return None


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
        yield from ((t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, statement.value
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = ast.Name(id=statement.target.id, ctx=ast.Load())
        yield name.id, ast.BinOp(left=name, op=statement.op, right=statement.value)
    else:
        stores = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        yield from ((node.id, None) for node in stores)


@dataclass(frozen=True, kw_only=True)
class Parametrization:
    """One `pytest.mark.parametrize` of a function or class."""

    names: tuple[str, ...]
    values: ast.expr


def parametrizations(decorators: list[ast.expr]) -> tuple[Parametrization, ...]:
    """The parametrisations among decorators."""
    found = []
    for call in decorators:
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.parametrize"):
            names, values = argument(call, 0, "argnames"), argument(call, 1, "argvalues")
            if names is not None and values is not None:
                found.append(Parametrization(names=_names(names), values=values))
    return tuple(found)


def _names(node: ast.expr) -> tuple[str, ...]:
    text = string(node)
    if text is not None:
        return tuple(name.strip() for name in text.split(",") if name.strip())
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    return tuple(name for name in map(string, elements) if name)


def count_rows(marks: tuple[Parametrization, ...], scope: Scope, backend: str) -> int | None:
    """Rows of one backend under these parametrisations, or None when one of them is not literal."""
    total = 1
    try:
        for mark in marks:
            values = evaluate(mark.values, scope)
            if not isinstance(values, (list, tuple)):
                return None
            total *= sum(_is_row(value, mark.names, backend) for value in values)
    except NotLiteral:
        return None
    return total


def _is_row(value: object, names: tuple[str, ...], backend: str) -> bool:
    if "backend" not in names:
        return True
    values = value.values if isinstance(value, Param) else value if len(names) > 1 else (value,)
    if not isinstance(values, (list, tuple)) or len(values) != len(names):
        raise NotLiteral("row of another length than the names")
    return bool(values[names.index("backend")] == backend)
