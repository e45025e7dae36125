"""Expressions of the source language: names, operators, attributes, calls."""

import ast
import math
from typing import Any

from farm.recipes.cutile_rs.kernel import dtypes
from farm.recipes.cutile_rs.kernel.build import Builder
from farm.recipes.cutile_rs.kernel.calls import Calls
from farm.recipes.cutile_rs.kernel.model import (
    Api,
    Array,
    Dim,
    DType,
    Function,
    Items,
    Known,
    Method,
    Node,
    Range,
)
from farm.recipes.cutile_rs.kernel.refusal import Refusal
from farm.recipes.cutile_rs.kernel.source import Assigned, PyModule, Sources

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Div: "truediv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Is: "eq", ast.IsNot: "ne",
}  # fmt: skip
BUILTINS = ("range", "min", "max", "abs", "len", "int", "float", "bool", "print")


class Expressions:
    """Evaluates expressions; statements are the subclass's part."""

    def __init__(self, sources: Sources, path: str, builder: Builder, env: dict[str, Any]) -> None:
        self.sources = sources
        self.path = path
        self.build = builder
        self.env = env
        self.calls = Calls(builder)

    def known(self, value: Any) -> Known:
        """A literal."""
        return Known((value,) * self.build.lanes)

    def expression(self, node: ast.expr) -> Any:
        """The value of an expression. Raises Refusal, Split."""
        outer, self.build.place = self.build.place, node
        try:
            return self._expression(node)
        finally:
            self.build.place = outer

    def _expression(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return self.known(value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return Items(tuple(self.expression(element) for element in elements))
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(node, self.expression(owner), name)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(node, op, self.expression(left), self.expression(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self.unary(node, op, self.expression(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.comparison(node, op, self.expression(left), self.expression(right))
            case ast.BoolOp(op=op, values=values):
                return self.logic(node, op, [self.expression(value) for value in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.expression(test)
                if isinstance(condition, Known):
                    return self.expression(body if self.decide(node, condition) else orelse)
                raise Refusal(node, "a conditional expression on a runtime value", "use ct.where")
            case ast.Subscript(value=owner, slice=index):
                return self.subscript(node, self.expression(owner), index)
            case ast.Call():
                return self.call(node)
            case _:
                kind = type(node).__name__
                raise Refusal(
                    node, f"the translator has no rule for this {kind}", "write it with operators and calls"
                )

    def decide(self, place: ast.AST, condition: Known) -> bool:
        """The outcome of a known condition."""
        raise NotImplementedError

    def inline(self, call: ast.Call, definition: ast.FunctionDef, path: str, arguments: dict[str, Any]) -> Any:
        """The value of a helper function's call."""
        raise NotImplementedError

    def name(self, node: ast.expr, name: str) -> Any:
        """What a name means here."""
        if name in self.env:
            return self.env[name]
        found = self.sources.lookup(self.path, name)
        if isinstance(found, Assigned):
            saved = self.env, self.path
            self.env, self.path = {}, found.path
            try:
                return self.expression(found.value)
            finally:
                self.env, self.path = saved
        if found is not None:
            return found
        if name in BUILTINS:
            return PyModule(name)
        raise Refusal(node, f"{name} has no value here", "define it before, with one type on every path")

    def attribute(self, node: ast.expr, owner: Any, name: str) -> Any:
        """`owner.name`."""
        match owner:
            case Api(name=""):
                return self.build.same(dtypes.SPELLINGS[name]) if name in dtypes.SPELLINGS else Api(name)
            case Api(name=prefix):
                return Api(f"{prefix}.{name}")
            case PyModule(name="cuda") if name == "tile":
                return Api("")
            case PyModule(name="torch") if name in dtypes.SPELLINGS:
                return self.build.same(dtypes.SPELLINGS[name])
            case PyModule(name="math") if isinstance(getattr(math, name, None), float):
                return self.known(getattr(math, name))
            case PyModule(name=prefix):
                return PyModule(f"{prefix}.{name}")
            case Array(dtype=dtype) if name == "dtype":
                return dtype
            case Array(rank=rank) if name == "ndim":
                return self.known(rank)
            case Array(name=array, rank=rank) if name in ("shape", "strides"):
                op = "extent" if name == "shape" else "stride"
                return Items(tuple(self.calls.measure(op, array, axis) for axis in range(rank)))
            case Node(type=type_) if type_ is not None and name == "dtype":
                return type_.dtype
            case Node(type=type_) if type_ is not None and name == "shape":
                return Items(tuple(_dim_value(dim) for dim in type_.shape))
            case Node(type=type_) if type_ is not None and name == "ndim":
                return self.known(len(type_.shape))
            case Node() | Array():
                return Method(owner, name)
            case _:
                raise Refusal(node, f"no rule for the attribute {name}", "use a value the kernel computes")

    def operation(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        """A binary operator."""
        fn = OPERATORS.get(type(op))
        if isinstance(left, Items) and isinstance(right, Items) and fn == "add":
            return Items(left.items + right.items)
        if fn is None or not all(isinstance(side, (Node, Known)) for side in (left, right)):
            raise Refusal(node, "no rule for this operator on these values", "use numbers and tiles")
        return self.calls.arithmetic(fn, left, right)

    def unary(self, node: ast.AST, op: ast.unaryop, operand: Any) -> Any:
        """A unary operator."""
        if isinstance(operand, Known) and isinstance(op, ast.Not):
            source = None if operand.source is None else f"(not {operand.source})"
            return Known(tuple(not v for v in operand.lanes), None, source)
        fn = {ast.USub: "neg", ast.Invert: "invert", ast.Not: "invert"}.get(type(op))
        if isinstance(op, ast.UAdd):
            return operand
        if fn is None or not isinstance(operand, (Node, Known)):
            raise Refusal(node, "no rule for this operator on this value", "use numbers and tiles")
        if isinstance(op, ast.Not) and isinstance(operand, Node):
            operand = self.build.convert(operand, self.build.same("bool"))
        return self.build.unary(fn, operand)

    def comparison(self, node: ast.AST, op: ast.cmpop, left: Any, right: Any) -> Any:
        """One comparison."""
        fn = COMPARE.get(type(op))
        if fn is None:
            raise Refusal(node, "no rule for this comparison", "use ==, !=, <, <=, > or >=")
        if isinstance(left, DType) and isinstance(right, DType):
            equal = tuple((a == b) == (fn == "eq") for a, b in zip(left.lanes, right.lanes, strict=True))
            texts = [
                f"dtype({self.build.generics[d.lanes][1]})" if d.lanes in self.build.generics else repr(d.code)
                for d in (left, right)
            ]
            varies = any(d.lanes in self.build.generics for d in (left, right))
            return Known(
                equal, None, f"({texts[0]} {'==' if fn == 'eq' else '!='} {texts[1]})" if varies else None
            )
        if isinstance(left, (Api, Items)) or isinstance(right, (Api, Items)):
            return self.known((left == right) == (fn == "eq"))
        sides = [side if isinstance(side, (Node, Known)) else self.known(side) for side in (left, right)]
        if any(isinstance(s, Known) and None in s.lanes for s in sides):
            plain = [s.lanes if isinstance(s, Known) else (0,) * self.build.lanes for s in sides]
            equal = tuple((a == b) == (fn == "eq") for a, b in zip(*plain, strict=True))
            source = next((s.source for s in sides if isinstance(s, Known) and s.source), None)
            sign = "is" if fn == "eq" else "is not"
            return Known(equal, None, None if source is None else f"({source} {sign} None)")
        return self.build.compared(fn, sides[0], sides[1])

    def logic(self, node: ast.AST, op: ast.boolop, values: list[Any]) -> Any:
        """`and` and `or` of known values, or of scalar conditions."""
        fn = "and" if isinstance(op, ast.And) else "or"
        result = values[0]
        for value in values[1:]:
            if isinstance(result, Known) and isinstance(value, Known):
                pairs = zip(result.lanes, value.lanes, strict=True)
                lanes = tuple((a and b) if fn == "and" else (a or b) for a, b in pairs)
                parts = [k.source or repr(bool(k.lanes[0])) for k in (result, value)]
                varies = result.source or value.source
                result = Known(lanes, None, f"({parts[0]} {fn} {parts[1]})" if varies else None)
            elif isinstance(result, (Node, Known)) and isinstance(value, (Node, Known)):
                result = self.build.binary(fn, result, value)
            else:
                raise Refusal(node, f"no rule for `{fn}` of these values", "compare two scalars")
        return result

    def subscript(self, node: ast.expr, owner: Any, index: ast.expr) -> Any:
        """`owner[index]`: an item of a tuple, or new axes of a tile."""
        if isinstance(owner, Items):
            position = self.expression(index)
            if isinstance(position, Known) and isinstance(position.lanes[0], int):
                place = self.build.agreed(position)
                if -len(owner.items) <= place < len(owner.items):
                    return owner.items[place]
        if isinstance(owner, Node):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return self.calls.new_axes(owner, parts)
        if isinstance(owner, Api) and owner.name.split(".")[0] == "Constant":
            return owner
        raise Refusal(node, "no rule for this subscript", "use ct.gather, ct.load or ct.reshape")

    def call(self, node: ast.Call) -> Any:
        """A call of the API, of a helper function or of a method."""
        function = self.expression(node.func)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise Refusal(node, "a call with * or **", "write the arguments out")
        args = [self.expression(argument) for argument in node.args]
        keywords = {k.arg: self.expression(k.value) for k in node.keywords if k.arg}
        match function:
            case Api(name=name):
                return self.calls.api(node, name, args, keywords)
            case DType():
                return self.calls.api(node, "astype", [*args, function], keywords)
            case Function(definition=definition, path=path):
                bound = self._bound(node, definition, path, args, keywords)
                return self.inline(node, definition, path, bound)
            case Method(owner=owner, name=name):
                return self.calls.api(node, name, [owner, *args], keywords)
            case PyModule(name="range"):
                zero, one = self.known(0), self.known(1)
                full = {1: [zero, *args, one], 2: [*args, one], 3: args}.get(len(args))
                if full is None or not all(isinstance(bound, (Node, Known)) for bound in full):
                    raise Refusal(node, "no rule for this range", "give start, stop and step as integers")
                return Range(*full)
            case PyModule(name=name):
                return self.calls.python(node, name, args)
            case _:
                raise Refusal(node, "this is no function the translator knows", "call ct.* or a helper function")

    def _bound(
        self, call: ast.Call, definition: ast.FunctionDef, path: str, args: list[Any], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        names = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
        if definition.args.vararg or definition.args.kwarg or len(args) > len(names):
            raise Refusal(call, f"{definition.name} cannot be called like this", "give its arguments by name")
        values = dict(zip(names, args, strict=False)) | keywords
        pairs = list(
            zip(names[len(names) - len(definition.args.defaults) :], definition.args.defaults, strict=True)
        )
        pairs += [
            (a.arg, d) for a, d in zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True) if d
        ]
        saved = self.env, self.path
        self.env, self.path = {}, path
        try:
            values = {name: self.expression(default) for name, default in pairs if name not in values} | values
        finally:
            self.env, self.path = saved
        missing = [a.arg for a in (*definition.args.args, *definition.args.kwonlyargs) if a.arg not in values]
        if missing:
            raise Refusal(call, f"{definition.name} is called without {missing[0]}", "give all its arguments")
        return values


def _dim_value(dim: Dim) -> Known:
    named = None if dim.code.isdigit() else dim.code
    return Known(dim.lanes, named, named)
