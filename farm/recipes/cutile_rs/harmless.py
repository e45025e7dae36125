"""What an op's own files may do: kernels, C functions that launch them, calls of those and of torch.

Read from the text before it ever runs.

A wrapper runs in the process whose records the gates read, and its C functions with it. Neither needs files,
processes, the network, the interpreter's insides or another library, so what reaches for them is refused
wherever a patch comes from. Python is read as a syntax tree, Rust as tokens without comments and literals. Pure.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from farm.layout import Package
from farm.recipes.cutile_rs import rust

#: The helper that gives a wrapper its C functions, and what begins their names.
BINDER, PREFIX = "bind_kernel_function_cffi", "cutile_"
#: Built-in functions that reach beyond what a wrapper is given.
BUILTINS = {
    *("open", "exec", "eval", "compile", "globals", "locals", "vars", "breakpoint", "memoryview"),
    *("__import__", "setattr", "delattr"),
}
#: Attributes of torch, cffi and others by which files, libraries and other processes are reached.
ATTRIBUTES = {
    *("save", "load", "from_file", "tofile", "fromfile", "memmap", "serialization", "package", "classes", "hub"),
    *(
        "load_library",
        "load_inline",
        "cpp_extension",
        "multiprocessing",
        "distributed",
        "include",
        "verify",
        "cdef",
    ),
    *("dlopen", "dlclose", "set_source", "def_extern", "embedding_api", "memmove", "from_buffer", "buffer"),
    *("os", "sys", "io", "subprocess", "pathlib", "builtins", "importlib", "ctypes", "shutil", "socket", "signal"),
    *("system", "popen", "environ", "modules", "settrace", "setprofile"),
    *("cast", "addressof", "callback", "new_handle", "from_handle"),
}
#: Names with two underscores that are nobody's insides.
PLAIN = {"__init__", "__name__", "__doc__", "__call__"}
#: Objects whose own attributes may begin with an underscore.
OWN = {"self", "cls", "ctx"}

#: Words of Rust that host code needs none of: the standard library beyond `core`, assembly, other files,
#: other libraries' symbols, code that runs before main.
WORDS = {
    *("std", "libc", "asm", "global_asm", "naked_asm", "arch", "include", "include_str", "include_bytes"),
    *("env", "option_env", "link", "link_section", "link_name", "export_name", "ctor", "dtor", "proc_macro"),
    *("dlopen", "dlsym"),
}
#: Attributes that host code may carry.
MARKS = {
    *("unsafe", "no_mangle", "allow", "expect", "warn", "inline", "doc", "must_use", "derive", "repr", "rustfmt"),
    *("cfg",),
}


class Harm(NamedTuple):
    """One thing that host code may not do."""

    line: int
    what: str  #: a sentence's end: `it ...`


def python(text: str, path: str, package: Package) -> Iterator[Harm]:
    """What a wrapper does beyond calling its C functions and torch; `path` is its place in the repository."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        yield Harm(getattr(error, "lineno", None) or 1, f"is not Python: {error}")
        return
    libraries: set[str] = set()
    handles: set[str] = set()
    bound: set[int] = set()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from (Harm(line, what) for what in _imports(node, path, package))
            case ast.Name(id=name) if name in BUILTINS or (name.startswith("__") and name not in PLAIN):
                yield Harm(line, f"uses {name}")
            case ast.Attribute(attr=name, value=value):
                if name in ATTRIBUTES or _inside(name, value):
                    yield Harm(line, f"uses .{name}")
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=ffi), ast.Name(id=name)])],
                value=ast.Call(func=ast.Name(id=binder) as function),
            ) if binder == BINDER:
                libraries.add(name)
                handles.add(ffi)
                bound.add(id(function))
    yield from _bindings(tree, bound)
    yield from _calls(tree, libraries)
    yield from _handles(tree, handles)
    yield from _reflection(tree)


def _bindings(tree: ast.AST, bound: set[int]) -> Iterator[Harm]:
    """What gives a wrapper its library is called in one way, so that the library is known by its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name == BINDER and id(node) not in bound:
                yield Harm(node.lineno, f"uses {BINDER} otherwise than by `ffi, lib = {BINDER}(..)`")
            case ast.alias(name=name, asname=str()) if name == BINDER:
                yield Harm(node.lineno, f"gives {BINDER} another name")


def _calls(tree: ast.AST, libraries: set[str]) -> Iterator[Harm]:
    """A library is there to call the op's own functions: any other symbol that its process has is out of reach."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith(PREFIX)]
    through = {id(node.value) for node in found}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in libraries and id(node) not in through:
                yield Harm(node.lineno, f"uses {name} for something else than a call of {PREFIX}..")


def _handles(tree: ast.AST, handles: set[str]) -> Iterator[Harm]:
    """cffi itself is there to be handed on: it could make a function of any address."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, value=ast.Name(id=owner)) if owner in handles and name != "NULL":
                yield Harm(node.lineno, f"uses {owner}.{name}")


def _reflection(tree: ast.AST) -> Iterator[Harm]:
    """`getattr` and `hasattr` of a plain name that is written out."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id not in ("getattr", "hasattr"):
            continue
        call = next((c for c in ast.walk(tree) if isinstance(c, ast.Call) and c.func is node), None)
        name = call.args[1] if call is not None and len(call.args) > 1 else None
        plain = isinstance(name, ast.Constant) and isinstance(name.value, str)
        if not plain or _inside(name.value, None) or name.value in ATTRIBUTES:  # type: ignore[union-attr]
            yield Harm(node.lineno, f"uses {node.id} of something else than a plain name")


def _inside(name: str, value: ast.expr | None) -> bool:
    """Whether an attribute is an object's insides."""
    if not name.startswith("_") or name in PLAIN:
        return False
    return name.startswith("__") or not (isinstance(value, ast.Name) and value.id in OWN)


def _imports(node: ast.Import | ast.ImportFrom, path: str, package: Package) -> Iterator[str]:
    source = package.module_path(f"{package.source_folder}/__init__.py")
    for name in _imported(node, path, package):
        root = name.split(".")[0]
        if name.endswith(".*"):
            yield f"imports everything of {name[:-2]}"
        elif f"{name}.".startswith(f"{source}."):
            yield f"imports {name}, the source's implementation"
        elif root != package.name and root not in package.layout.wrapper_imports:
            known = ", ".join((package.name, *package.layout.wrapper_imports))
            yield f"imports {name}; a wrapper may import {known}"
        elif any(part.startswith("_") for part in name.split(".")[1:]):
            yield f"imports {name}, which is private"
        elif set(name.split(".")[1:]) & ATTRIBUTES:
            yield f"imports {name}"


def _imported(node: ast.Import | ast.ImportFrom, path: str, package: Package) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    module = node.module or ""
    if node.level:
        here = package.module_path(path).split(".")[: -node.level]
        module = ".".join(part for part in (*here, module) if part)
    yield from (f"{module}.{alias.name}" for alias in node.names)


def rust_file(text: str, path: str) -> Iterator[Harm]:
    """What one of an op's Rust files does beyond its part: kernel.rs or host code."""
    return kernel(text) if path.endswith("/kernel.rs") else host(text)


def host(text: str) -> Iterator[Harm]:
    """What an ffi.rs does beyond launching its kernels."""
    code = rust.blank(text)
    for match in re.finditer(r"\w+", code):
        if match.group() in WORDS:
            yield Harm(_line(code, match.start()), f"uses {match.group()}")
    yield from _declared(code, MARKS)


def kernel(text: str) -> Iterator[Harm]:
    """What a kernel.rs does beside its kernels: it is compiled into the library, its other items with it.

    A kernel's values may be named `std` or `link`; as a path, a macro or an import they are refused.
    """
    code = rust.blank(text)
    for match in re.finditer(r"\w+", code):
        word = match.group()
        if word not in WORDS and word != "macro_rules":
            continue
        before, after = code[: match.start()].rstrip(), code[match.end() :].lstrip()
        reached = after.startswith(("::", "!")) and not after.startswith("!=")
        named = before.endswith("::") or re.search(r"\buse$", before) or re.match(r"as\b", after)
        if reached or named or "_" in word:
            yield Harm(_line(code, match.start()), f"uses {word}")
    yield from _declared(code, MARKS | {"cutile"})


def _declared(code: str, marks: set[str]) -> Iterator[Harm]:
    """Attributes that run or place code, symbols of other libraries, exports of other names."""
    for match in re.finditer(r"#\s*!?\s*\[\s*(\w+)\s*(\(\s*(\w+))?", code):
        names = {match[1]} | ({match[3]} if match[1] == "unsafe" else set())
        if "!" in match.group() or not names <= marks:
            yield Harm(_line(code, match.start()), f"carries the attribute {match[1]}")
    for match in re.finditer(r"\bextern\b\s*(\w*)\s*(\w*)", code):  # the ABI string is blank
        if match[1] != "fn":
            yield Harm(_line(code, match.start()), "declares what other libraries define")
        elif not match[2].startswith(PREFIX):
            yield Harm(_line(code, match.start()), f"exports {match[2]}, which does not begin with {PREFIX}")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
