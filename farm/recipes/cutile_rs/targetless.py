"""A test file without its target-only lines: what a test says once the target backend does not exist.

Conditions are evaluated as far as the missing backend decides them (`backend == "<target>"` is false,
`is_backend_available("<target>")` is false); statements and operands that this makes dead go, list
elements that name the target go, and every other byte stays.
"""

import ast
from collections.abc import Iterator

from farm.errors import RepositoryError
from farm.recipes.cutile_rs.registration import drop_elements
from farm.recipes.cutile_rs.syntax import Edit, Source, apply_edits, bodies, string


def without_target(source: Source, target: str) -> bytes:
    """The file's bytes without the target. Raises RepositoryError when they would not be Python."""
    current = source
    while (data := apply_edits(current.data, _Remover(current, target).edits())) != current.data:
        try:
            current = Source(source.path, data)
        except RepositoryError as error:
            message = f"{source.path}: the lines about {target} cannot be taken out: {error}"
            raise RepositoryError(message) from error
    return _without_unused(current, source, "is_backend_available")


def _without_unused(source: Source, before: Source, name: str) -> bytes:
    """Drop the import of `name` when its last use went."""
    if not _uses(before, name) or _uses(source, name):
        return source.data
    edits = [
        source.lines(node)
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom) and [alias.asname or alias.name for alias in node.names] == [name]
    ]
    return apply_edits(source.data, edits)


def _uses(source: Source, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))


class _Remover:
    """Collects the edits of one file."""

    def __init__(self, source: Source, target: str) -> None:
        self.source = source
        self.target = target

    def edits(self) -> list[Edit]:
        found: list[Edit] = []
        for body in bodies(self.source.tree):
            dead = [node for node in body if self._dead(node)]
            for node in dead:
                found.append(self._removal(node, keep=len(dead) == len(body) and node is dead[0]))
            for node in body:
                if isinstance(node, ast.If) and node not in dead:
                    found += self._branch(node)
        for expression in ast.walk(self.source.tree):
            if isinstance(expression, ast.expr):
                found += self._expression(expression)
        return found

    def truth(self, node: ast.expr) -> bool | None:
        """The value of a condition when the target does not exist, or None when that leaves it open."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.truth(node.operand)
            return None if value is None else not value
        if isinstance(node, ast.BoolOp):
            values = [self.truth(value) for value in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in values:
                return decisive
            return not decisive if all(value is (not decisive) for value in values) else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node.left, node.ops[0], node.comparators[0])
        if isinstance(node, ast.Call) and len(node.args) == 1 and self._is_target(node.args[0]):
            return False if "available" in ast.unparse(node.func) else None
        return None

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
        if isinstance(op, (ast.Eq, ast.NotEq)) and self._is_target(left) != self._is_target(right):
            return isinstance(op, ast.NotEq)
        if isinstance(op, (ast.In, ast.NotIn)):
            values = right.elts if isinstance(right, (ast.List, ast.Tuple, ast.Set)) else []
            if self._is_target(left) or (values and all(map(self._is_target, values))):
                return isinstance(op, ast.NotIn)
        return None

    def _is_target(self, node: ast.AST) -> bool:
        return string(node) == self.target

    def _dead(self, node: ast.stmt) -> bool:
        """Whether a whole statement goes."""
        if isinstance(node, ast.If):
            return self.truth(node.test) is False and not node.orelse and not self._is_elif(node)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, kept = node.targets[0], self._kept_side(node.value)
            return isinstance(target, ast.Name) and isinstance(kept, ast.Name) and kept.id == target.id
        if isinstance(node, ast.AugAssign):
            return isinstance(node.op, ast.Add) and self._vanishes(node.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) == 1:
            call, added = node.value, node.value.args[0]
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            return (name == "append" and self._names_target(added)) or (name == "extend" and self._vanishes(added))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return any(self._always_skips(item) for item in node.decorator_list)
        return False

    def _always_skips(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.skipif") and node.args:
            return self.truth(node.args[0]) is True
        return False

    def _vanishes(self, node: ast.expr) -> bool:
        """Whether a list holds nothing but the target."""
        if isinstance(node, ast.IfExp) and self.truth(node.test) is False:
            return isinstance(node.orelse, (ast.List, ast.Tuple)) and not node.orelse.elts
        elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
        return bool(elements) and all(map(self._names_target, elements))

    def _kept_side(self, node: ast.expr) -> ast.expr | None:
        """What stays of a sum of lists one side of which vanishes, else None."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            if self._vanishes(node.right):
                return node.left
            if self._vanishes(node.left):
                return node.right
        return None

    def _names_target(self, node: ast.expr) -> bool:
        """Whether a list element is the target, or a row of the target."""
        if isinstance(node, ast.Tuple):
            return any(map(self._is_target, node.elts))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("param"):
            return any(map(self._is_target, node.args))
        return self._is_target(node)

    def _removal(self, node: ast.stmt, *, keep: bool) -> Edit:
        lines = self.source.lines(node)
        start = lines.start
        while (above := self.source.line_start(max(start - 1, 0))) < start:
            text = self.source.data[above:start].strip()
            if not text.startswith(b"#") or self.target.encode() not in text:
                break
            start = above
        text = self.source.indent(node) + b"pass" + self.source.newline if keep else b""
        return Edit(start=start, end=lines.end, text=text)

    def _is_elif(self, node: ast.If) -> bool:
        return self.source.data.startswith(b"elif", self.source.start(node))

    def _branch(self, node: ast.If) -> Iterator[Edit]:
        """Edits of an `if` that does not go as a whole."""
        truth, source = self.truth(node.test), self.source
        if truth is None:
            return
        start = source.start(node)
        if truth:
            if self._is_elif(node):
                colon = source.data.index(b":", source.end(node.test))
                yield Edit(start=start, end=colon, text=b"else")
                if node.orelse:
                    yield Edit(start=source.lines(node.body[-1]).end, end=source.lines(node).end)
            else:
                yield self._unwrapped(node, node.body)
        elif not node.orelse:
            yield Edit(start=source.line_start(start), end=source.lines(node).end)
        elif self._is_elif_list(node.orelse):
            following = source.start(node.orelse[0])
            keyword = b"" if self._is_elif(node) else b"if"
            yield Edit(start=start, end=following + (0 if self._is_elif(node) else 4), text=keyword)
        elif self._is_elif(node):
            yield Edit(start=start, end=source.data.index(b"else", source.lines(node.body[-1]).end))
        else:
            yield self._unwrapped(node, node.orelse)

    def _is_elif_list(self, body: list[ast.stmt]) -> bool:
        return len(body) == 1 and isinstance(body[0], ast.If) and self._is_elif(body[0])

    def _unwrapped(self, node: ast.If, body: list[ast.stmt]) -> Edit:
        """The whole `if` replaced by the statements of one branch."""
        source, whole = self.source, self.source.lines(node)
        first = source.line_start(source.start(body[0]))
        inner = source.data[first : source.lines(body[-1]).end]
        deep, flat = source.indent(body[0]), source.indent(node)
        lines = inner.splitlines(keepends=True)
        text = b"".join(flat + line.removeprefix(deep) if line.startswith(deep) else line for line in lines)
        return Edit(start=whole.start, end=whole.end, text=text)

    def _expression(self, node: ast.expr) -> Iterator[Edit]:
        source = self.source
        kept = self._kept_side(node)
        if kept is not None:
            yield Edit(start=source.start(node), end=source.end(node), text=source.text(kept).encode())
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            yield from self._elements(node)
        elif isinstance(node, ast.Dict):
            yield from self._pairs(node)
        elif isinstance(node, ast.IfExp) and self.truth(node.test) is not None:
            branch = node.body if self.truth(node.test) else node.orelse
            yield Edit(start=source.start(node), end=source.end(node), text=source.text(branch).encode())
        elif isinstance(node, (ast.BoolOp, ast.Compare, ast.Call)):
            yield from self._condition(node)

    def _condition(self, node: ast.expr) -> Iterator[Edit]:
        source, truth = self.source, self.truth(node)
        if truth is not None:
            yield Edit(start=source.start(node), end=source.end(node), text=str(truth).encode())
        elif isinstance(node, ast.BoolOp) and any(self.truth(value) is not None for value in node.values):
            open_ = [value for value in node.values if self.truth(value) is None]
            word = " and " if isinstance(node.op, ast.And) else " or "
            text = word.join(self._operand(value, alone=len(open_) == 1) for value in open_)
            yield Edit(start=source.start(node), end=source.end(node), text=text.encode())

    def _operand(self, node: ast.expr, *, alone: bool) -> str:
        text = self.source.text(node)
        loose = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
        return f"({text})" if loose and not alone else text

    def _elements(self, node: ast.List | ast.Tuple | ast.Set) -> Iterator[Edit]:
        source, elements = self.source, node.elts
        rows = not isinstance(node, ast.Tuple) or all(isinstance(e, (ast.Tuple, ast.Call)) for e in elements)
        names_target = self._names_target if rows else self._is_target
        gone = [index for index, item in enumerate(elements) if names_target(item)]
        if not gone:
            return
        kept = [item for index, item in enumerate(elements) if index not in gone]
        if len(kept) > 1 or (kept and not isinstance(node, ast.Tuple)):
            yield from drop_elements(source, elements, gone)
            return
        inner = "".join(f"{source.text(item)}," for item in kept)
        last = source.end(elements[-1])
        comma = source.data[last : source.end(node)].lstrip().startswith(b",")
        end = source.data.index(b",", last) + 1 if comma else last
        yield Edit(start=source.start(elements[0]), end=end, text=inner.encode())

    def _pairs(self, node: ast.Dict) -> Iterator[Edit]:
        keys, source = node.keys, self.source
        for index, (key, value) in enumerate(zip(keys, node.values, strict=True)):
            if key is None or not self._is_target(key):
                continue
            following = keys[index + 1] if index + 1 < len(keys) else None
            if following is not None:
                yield Edit(start=source.start(key), end=source.start(following))
            elif index:
                yield Edit(start=source.end(node.values[index - 1]), end=source.end(value))
            else:
                yield Edit(start=source.start(key), end=source.end(value))
