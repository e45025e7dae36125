"""One statement of the reference's host code, without the source language: launches become calls."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.host.module import HostModule, HostModules
from farm.recipes.cutile_rs.syntax import Edit, apply_edits, argument, bodies, string

_WIDTH = 110
#: dtypes of the source language that torch calls by the same name.
_DTYPES = frozenset(
    {"float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8"}
    | {"float8_e4m3fn", "float8_e5m2"}
)
_TUNES = "the op tunes its launches, which the host-code writer has no rule for"
_TUNERS = ("cuda.tile.tune", "cuda.tile.compiler_timeout", "cuda.tile_experimental")


@dataclass(kw_only=True)
class Rewritten:
    """What became of a statement."""

    text: str
    launches: set[str] = field(default_factory=set)  #: launching functions that it calls
    uses_ceil_div: bool = False  #: it calls the ceiling division that replaces `ct.cdiv`
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Names that generated code uses."""

    launchers: dict[tuple[str, str], str]  #: kernel (file, function) to the function that launches it
    ceil_div: str
    target: str  #: target backend
    source: str  #: source backend


def rewrite(statement: ast.stmt, module: HostModule, modules: HostModules, naming: Naming) -> Rewritten:
    """The statement's text for the target backend."""
    worker = _Rewriter(module, modules, naming)
    worker.visit(statement)
    tuners = [finding for finding in worker.result.findings if finding.message == _TUNES]
    worker.result.findings = tuners[:1] or worker.result.findings
    source = module.source
    start, end = source.start(statement), source.end(statement)
    rest = source.data[end : source.line_end(end)].split(b"#", 1)
    if len(rest) == 2 and not rest[0].strip():
        end += len(rest[0]) + 1 + len(rest[1].rstrip())
    shifted = [
        Edit(start=edit.start - start, end=edit.end - start, text=edit.text)
        for edit in worker.edits
        if start <= edit.start and edit.end <= end
    ]
    text = apply_edits(source.data[start:end], shifted).decode("utf-8", "surrogateescape")
    worker.result.text = text.replace("\r\n", "\n")
    return worker.result


class _Rewriter:
    def __init__(self, module: HostModule, modules: HostModules, naming: Naming) -> None:
        self.module = module
        self.modules = modules
        self.naming = naming
        self.edits: list[Edit] = []
        self.result = Rewritten(text="")

    def visit(self, statement: ast.stmt) -> None:
        """Collect the edits of a statement."""
        for body in bodies(statement):
            self._imports(body)
        self._annotations(statement)
        self._expressions(statement)

    def _replace(self, node: ast.AST, text: str) -> None:
        source = self.module.source
        self.edits.append(Edit(start=source.start(node), end=source.end(node), text=text.encode()))

    def _refuse(self, node: ast.AST, message: str, advice: str) -> None:
        self.result.findings.append(self.module.finding(node, message, advice))

    def _imports(self, body: list[ast.stmt]) -> None:
        """Take imports of the package and the language out of functions: names are imported at the top."""
        source = self.module.source
        gone = [node for node in body if self._moves_up(node)]
        for node in gone:
            lines = source.lines(node)
            text = source.indent(node) + b"pass\n" if len(gone) == len(body) and node is gone[0] else b""
            end = lines.end
            blank_before = not source.data[source.line_start(lines.start - 1) : lines.start].strip()
            opens = blank_before or node is body[0]
            if opens and not text and not source.data[end : source.line_end(end)].strip():
                end = source.line_end(end)
            self.edits.append(Edit(start=lines.start, end=end, text=text))

    def _moves_up(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            bound = [self.module.imports.names[alias.asname or alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            bound = [alias.name for alias in node.names]
        else:
            return False
        package = self.modules.package.name
        return all(name.split(".")[0] == package or name.startswith("cuda.tile") for name in bound)

    def _annotations(self, statement: ast.stmt) -> None:
        """Drop annotations that speak the source language."""
        source = self.module.source
        for node in ast.walk(statement):
            if isinstance(node, ast.arg) and node.annotation and self._speaks(node.annotation):
                start = source.start(node) + len(node.arg.encode())
                self.edits.append(Edit(start=start, end=source.end(node.annotation)))
                continue
            returns = getattr(node, "returns", None)
            if isinstance(returns, ast.expr) and self._speaks(returns):
                end = source.end(returns)
                arrow = source.data.rindex(b"->", source.start(node), end)
                self.edits.append(Edit(start=len(source.data[:arrow].rstrip()), end=end))

    def _speaks(self, node: ast.AST) -> bool:
        return any(self.module.in_language(part) for part in ast.walk(node))

    def _expressions(self, statement: ast.stmt) -> None:
        annotations = {
            id(part)
            for node in ast.walk(statement)
            for annotation in _annotations_of(node)
            for part in ast.walk(annotation)
        }
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop(0)
            if id(node) in annotations or isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            if isinstance(node, ast.FunctionDef) and self.module.kernels.get(node.name) and node is not statement:
                message = f"kernel {node.name} is defined inside another function"
                self._refuse(node, message, "define kernels at the top of their file")
                continue
            handled = isinstance(node, ast.expr) and self._expression(node)
            if not handled:
                waiting.extend(ast.iter_child_nodes(node))

    def _expression(self, node: ast.expr) -> bool:
        """Rewrite one expression; says whether its parts are dealt with."""
        if isinstance(node, ast.JoinedStr):
            if self._speaks(node):
                self._refuse(node, "the source language inside an f-string", "take the value out of the string")
            return False
        if isinstance(node, ast.Call):
            return self._call(node)
        dotted = self.module.in_language(node)
        if dotted is not None:
            self._name(node, dotted)
            return True
        if self.modules.kernel(self.module, node) is not None:
            advice = "pass the kernel to ct.launch by its name"
            self._refuse(node, f"kernel {ast.unparse(node)} is used other than in a launch", advice)
        return False

    def _call(self, node: ast.Call) -> bool:
        dotted = self.module.in_language(node.func)
        if dotted == "cuda.tile.launch":
            return self._launch(node)
        if dotted == "cuda.tile.cdiv" and len(node.args) == 2 and not node.keywords:
            self.result.uses_ceil_div = True
            self._replace(node.func, self.naming.ceil_div)
            for item in node.args:
                self._expressions_of(item)
            return True
        if ast.unparse(node.func).rsplit(".", 1)[-1] == "register_impl":
            backend = argument(node, 1, "backend")
            if backend is not None and string(backend) == self.naming.source:
                self._replace(backend, f'"{self.naming.target}"')
        return False

    def _expressions_of(self, node: ast.expr) -> None:
        waiting: list[ast.AST] = [node]
        while waiting:
            part = waiting.pop()
            if not (isinstance(part, ast.expr) and self._expression(part)):
                waiting.extend(ast.iter_child_nodes(part))

    def _name(self, node: ast.expr, dotted: str) -> None:
        name = dotted.removeprefix("cuda.tile.")
        if name in _DTYPES and self.module.imports.names.get("torch") == "torch":
            self._replace(node, f"torch.{name}")
        elif any(dotted == tuner or dotted.startswith(f"{tuner}.") for tuner in _TUNERS):
            self._refuse(
                node,
                _TUNES,
                "launch with one configuration, or write the wrapper by hand over the target's own tuner",
            )
        else:
            self._refuse(
                node,
                f"`{ast.unparse(node)}` has no meaning outside the source language",
                "host code may use ct.launch, ct.cdiv and dtypes; compute the rest in plain Python",
            )

    def _launch(self, node: ast.Call) -> bool:
        names = ("stream", "grid", "kernel", "kernel_args")
        parts = [argument(node, position, name) for position, name in enumerate(names)]
        stream, grid, kernel, args = parts
        if stream is None or grid is None or kernel is None or args is None:
            self._refuse(
                node, "a launch without its four arguments", "write ct.launch(stream, grid, kernel, args)"
            )
            return True
        found = self.modules.kernel(self.module, kernel)
        if found is None:
            self._refuse(
                kernel,
                f"`{ast.unparse(kernel)}` is not a kernel by name, so the launch cannot be rewritten",
                "launch each kernel by its own name; choose between kernels with if and else",
            )
            return True
        if found not in self.naming.launchers:
            self._refuse(
                kernel,
                f"kernel {found[1]} is launched here, and stage B gave no Rust entry for it",
                "see stage B's findings; an op is converted only with all the kernels that it launches",
            )
            return True
        launcher = self.naming.launchers[found]
        self.result.launches.add(launcher)
        before = len(self.edits)
        for part in (stream, grid, args):
            self._expressions_of(part)
        inner, self.edits[before:] = self.edits[before:], []
        pieces = [self._edited(stream, inner), self._edited(grid, inner)]
        if isinstance(args, (ast.Tuple, ast.List)):
            pieces += [self._edited(item, inner) for item in args.elts]
        else:
            pieces.append(f"*{self._edited(args, inner)}")
        self._replace(node, _layout(launcher, pieces, self.module.source.indent(node).decode()))
        return True

    def _edited(self, node: ast.expr, edits: list[Edit]) -> str:
        source = self.module.source
        start, end = source.start(node), source.end(node)
        shifted = [
            Edit(start=edit.start - start, end=edit.end - start, text=edit.text)
            for edit in edits
            if start <= edit.start and edit.end <= end
        ]
        text = apply_edits(source.data[start:end], shifted).decode("utf-8", "surrogateescape")
        if "\n" in text or (isinstance(node, ast.Tuple) and not text.startswith("(")):
            text = ast.unparse(ast.parse(f"({text})", mode="eval"))
        return text


def _annotations_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.arg) and node.annotation is not None:
        yield node.annotation
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
        yield node.returns


def _layout(launcher: str, pieces: list[str], indent: str) -> str:
    line = f"{launcher}({', '.join(pieces)})"
    if len(indent) + len(line) <= _WIDTH:
        return line
    lines = "".join(f"{indent}    {piece},\n" for piece in pieces)
    return f"{launcher}(\n{lines}{indent})"
