"""Translates one kernel for a set of signatures into one `#[cutile::entry]`."""

import contextlib
from dataclasses import dataclass

from farm.analysis import ArrayArg, ConstantArg, KernelSource, ScalarArg, Signature
from farm.recipes.cutile_rs.kernel.build import Builder
from farm.recipes.cutile_rs.kernel.divisibility import Divisors
from farm.recipes.cutile_rs.kernel.evaluate import Evaluator, Returned
from farm.recipes.cutile_rs.kernel.helpers import MEASURED
from farm.recipes.cutile_rs.kernel.model import Array, Block, DType, Known, Layout, Node, TileType
from farm.recipes.cutile_rs.kernel.names import Names
from farm.recipes.cutile_rs.kernel.passes import optimise, walk
from farm.recipes.cutile_rs.kernel.refusal import Limit, Refusal, Split
from farm.recipes.cutile_rs.kernel.rust import Printer
from farm.recipes.cutile_rs.kernel.source import Sources
from farm.recipes.cutile_rs.plan import (
    ELEMENT_BYTES,
    Entry,
    EntryGeneric,
    EntryParam,
    GenericRole,
    ParamRole,
    Quantity,
    promise,
)

#: Rust generics for element types, in the order in which they are given out.
ELEMENTS = ("E", "F", "G", "H")
SCALARS = {"i32": "i32", "i64": "i64", "f32": "f32", "f64": "f64", "bool": "bool"}


@dataclass(frozen=True, kw_only=True)
class Written:
    """One entry as Rust text, and what the host has to know about it."""

    entry: Entry
    lines: tuple[str, ...]  #: the function, without indentation of the module
    helpers: dict[str, str]  #: helper functions that it calls, by name


class EntryWriter:
    """Writes one entry. All signatures given belong to it: they are its lanes."""

    def __init__(self, sources: Sources, kernel: KernelSource, lanes: tuple[Signature, ...], gpu: str) -> None:
        self.sources = sources
        self.kernel = kernel
        self.lanes = lanes
        self.gpu = gpu
        self.definition = sources.kernel(kernel)
        self.names = Names()
        self.build = Builder(len(lanes), {})
        self.arrays: dict[str, Array] = {}
        self.scalars: dict[str, str] = {}
        self.constants: dict[str, str] = {}  #: Rust const generic by the source's name

    def write(self, name: str) -> Written:
        """The entry called `name`. Raises Refusal, Split."""
        env = self._environment()
        evaluator = Evaluator(self.sources, self.kernel.file, self.build, dict(env))
        with contextlib.suppress(Returned):
            evaluator.run(self.definition.body)
        root = self.build.block
        optimise(root, self.build)
        for generic in (*ELEMENTS, *self.constants.values()):
            self.names.fresh(generic)
        self.names.arrays.update({n: self.names.reserve(n) for n in self.arrays})
        self.names.params.update({n: self.names.reserve(n) for n in self.scalars})
        layouts = self._layouts(root)
        printer = Printer(self.names, layouts, Divisors(root, self._divisor), self._apart)
        body = printer.body(root)
        params, generics, opening = self._interface("\n".join(body), layouts)
        generics += self._element_generics(printer)
        if any("measured::<" in line for line in opening):
            printer.helpers["measured"] = MEASURED
        return self._assembled(name, params, generics, [*opening, *body], printer)

    # ---- what the parameters are ---------------------------------------------------------

    def _environment(self) -> dict[str, Array | Known | Node]:
        env: dict[str, Array | Known | Node] = {}
        arguments = self.definition.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        kinds: dict[str, tuple[str, ...]] = {}
        for name in names:
            column = [self._argument(signature, name) for signature in self.lanes]
            if isinstance(column[0], ArrayArg):
                kinds[name] = tuple(arg.dtype for arg in column if isinstance(arg, ArrayArg))
        for name, lanes in kinds.items():
            if len(set(lanes)) > 1 and lanes not in self.build.generics:
                if len(self.build.generics) == len(ELEMENTS):
                    raise Refusal(
                        self.definition, "more than four element types that vary", "give arrays one type"
                    )
                self.build.generics[lanes] = (ELEMENTS[len(self.build.generics)], name)
        for name in names:
            env[name] = self._parameter(name, kinds)
        return env

    def _argument(self, signature: Signature, name: str) -> ArrayArg | ScalarArg | ConstantArg:
        for arg in signature.args:
            if arg.name == name:
                return arg
        raise Refusal(self.definition, f"no traced launch gives the parameter {name}", "analyse the op again")

    def _parameter(self, name: str, kinds: dict[str, tuple[str, ...]]) -> Array | Known | Node:
        column = [self._argument(signature, name) for signature in self.lanes]
        if len({type(arg) for arg in column}) > 1:
            raise Split(self.definition, tuple(f"kind({name}) == {arg.kind!r}" for arg in column))
        first = column[0]
        if isinstance(first, ArrayArg):
            ranks = [len(arg.shape) for arg in column if isinstance(arg, ArrayArg)]
            if len(set(ranks)) > 1:
                raise Split(self.definition, tuple(f"{name}.ndim == {rank}" for rank in ranks))
            lanes = kinds[name]
            code = self.build.generics[lanes][0] if lanes in self.build.generics else lanes[0]
            self.arrays[name] = Array(name, DType(code, lanes), ranks[0])
            return self.arrays[name]
        if isinstance(first, ScalarArg):
            types = {arg.dtype for arg in column if isinstance(arg, ScalarArg)}
            if len(types) > 1:
                raise Split(
                    self.definition,
                    tuple(f"dtype({name}) == {a.dtype!r}" for a in column if isinstance(a, ScalarArg)),
                )
            dtype = types.pop()
            if dtype not in SCALARS:
                raise Refusal(self.definition, f"a scalar of type {dtype}", "use int, float or bool")
            self.scalars[name] = dtype
            type_ = TileType(self.build.same(dtype), ())
            if dtype in ("i32", "bool"):
                return Node("param", type_, attrs={"param": name}, name=name)
            return self.build.add("scalar", type_, param=name)
        return self._constant(name, tuple(arg.value for arg in column if isinstance(arg, ConstantArg)))

    def _constant(self, name: str, values: tuple[object, ...]) -> Known:
        whole = all(type(v) is int and -(1 << 31) <= v < 1 << 31 for v in values)
        if whole or all(type(v) is bool for v in values):
            self.constants[name] = name.strip("_").upper()
            return Known(values, self.constants[name], name)
        return Known(values, None, name)

    # ---- extents and strides -------------------------------------------------------------

    def _values(self, quantity: str, array: str, axis: int) -> tuple[int, ...]:
        found = []
        for signature in self.lanes:
            arg = self._argument(signature, array)
            assert isinstance(arg, ArrayArg)
            found.append((arg.shape if quantity == "extent" else arg.strides)[axis])
        return tuple(found)

    def _ones(self, quantity: str, array: str) -> tuple[bool, ...]:
        """Per axis: the extent or stride is 1 in every lane, which the entry then relies on.

        Lanes that disagree get entries of their own: the target's view types state it.
        """
        known = []
        for axis in range(self.arrays[array].rank):
            values = self._values(quantity, array, axis)
            text = f"{array}.shape[{axis}] == 1" if quantity == "extent" else f"{array}.stride({axis}) == 1"
            ones = {value == 1 for value in values}
            if len(ones) > 1:
                raise Split(self.definition, tuple(text if v == 1 else f"not {text}" for v in values))
            if ones == {True}:
                self.build.guards[text] = None
                known.append(True)
            else:
                known.append(False)
        return tuple(known)

    def _layouts(self, root: Block) -> dict[str, Layout]:
        """What the entry's text relies on about each array that it uses."""
        layouts = {}
        for name in self.arrays:
            ops = {n.op for n in walk(root) if n.attrs.get("array") == self.arrays[name]}
            viewed = bool(ops & {"load", "store", "num_tiles"})
            if ops:
                # An array that is reached by address needs nothing of the kind: its strides are parameters,
                # and a launch with strides that no row has is served as well.
                none = (False,) * self.arrays[name].rank
                layouts[name] = Layout(
                    viewed=viewed,
                    unit_strides=self._ones("stride", name) if viewed else none,
                    unit_extents=self._ones("extent", name) if viewed else none,
                )
        return layouts

    def _divisor(self, node: Node, lane: int) -> int:
        """What the source's launch promises of an extent or stride in a lane."""
        arg = self._argument(self.lanes[lane], node.attrs["array"])
        assert isinstance(arg, ArrayArg)
        quantity = Quantity(node.op)
        value = (arg.shape if quantity is Quantity.EXTENT else arg.strides)[node.attrs["axis"]]
        return promise(quantity, value, ELEMENT_BYTES.get(arg.dtype, 1)) or 1

    def _apart(self, node: Node) -> Split:
        """The wish for one entry for each set of constants and element types."""
        outcomes = []
        for signature in self.lanes:
            said = [f"{a.name} == {a.value!r}" for a in signature.args if isinstance(a, ConstantArg)]
            said += [f"dtype({a.name}) == {a.dtype!r}" for a in signature.args if isinstance(a, ArrayArg)]
            outcomes.append(" and ".join(said))
        return Split(node.place or self.definition, tuple(outcomes))

    def _element_generics(self, printer: Printer) -> list[EntryGeneric]:
        return [
            EntryGeneric(
                name=name, role=GenericRole.PROMISE, source=array, rust_type="i32", quantity=Quantity.ELEMENT,
                steps=steps,
            )
            for (array, steps), name in printer.elements.items()
        ]  # fmt: skip

    def _interface(
        self, text: str, layouts: dict[str, Layout]
    ) -> tuple[list[EntryParam], list[EntryGeneric], list[str]]:
        params: list[EntryParam] = []
        promises: list[EntryGeneric] = []
        opening: list[str] = []
        for name in self.kernel.parameters:
            if name in self.arrays:
                params += self._array_params(name, text, layouts.get(name), promises, opening)
            elif name in self.scalars and uses(text, self.names.params[name]):
                rust = self.names.params[name]
                params.append(
                    EntryParam(
                        name=rust, role=ParamRole.SCALAR, source=name, rust_type=SCALARS[self.scalars[name]]
                    )
                )
        return params, [*self._elements(params), *self._constants(text), *promises], opening

    def _array_params(
        self, name: str, text: str, layout: Layout | None, promises: list[EntryGeneric], opening: list[str]
    ) -> list[EntryParam]:
        rust, element = self.names.array(name), self.arrays[name].dtype.code
        found = []
        if uses(text, rust):
            generic = f"{rust.upper()}_ALIGN"
            found.append(EntryParam(name=rust, role=ParamRole.POINTER, source=name, rust_type=f"*mut {element}"))
            promises.append(
                EntryGeneric(
                    name=generic, role=GenericRole.PROMISE, source=name, rust_type="i32", quantity=Quantity.POINTER
                )
            )
            opening.append(f"let {rust}: *mut {element} = unsafe {{ assume_div_by::<_, {generic}>({rust}) }};")
        for role, quantity, kind in (
            (ParamRole.EXTENT, Quantity.EXTENT, "dim"),
            (ParamRole.STRIDE, Quantity.STRIDE, "stride"),
        ):
            for axis in range(self.arrays[name].rank):
                measure = f"{rust}_{kind}{axis}"
                if not uses(text, measure):
                    continue
                lone = role is ParamRole.STRIDE and layout is not None and layout.lone(axis)
                unit = lone and layout is not None and layout.unit_strides[axis]
                known = measure.upper()
                if unit:
                    opening.append(f"let {measure}: i32 = unsafe {{ assume_div_by::<_, {known}>(1i32) }};")
                else:
                    found.append(EntryParam(name=measure, role=role, source=name, axis=axis, rust_type="i32"))
                    opening.append(f"let {measure}: i32 = unsafe {{ measured::<{known}>({measure}) }};")
                promises.append(
                    EntryGeneric(
                        name=known,
                        role=GenericRole.PROMISE,
                        source=name,
                        rust_type="i32",
                        quantity=Quantity.LONE_STRIDE if lone else quantity,
                        axis=axis,
                    )
                )
        return found

    def _elements(self, params: list[EntryParam]) -> list[EntryGeneric]:
        used = {p.source for p in params}
        found = []
        for lanes, (code, _) in self.build.generics.items():
            sources = [n for n, a in self.arrays.items() if a.dtype.lanes == lanes and n in used]
            if sources:
                found.append(
                    EntryGeneric(name=code, role=GenericRole.ELEMENT, source=sources[0], rust_type="type")
                )
        return found

    def _constants(self, text: str) -> list[EntryGeneric]:
        found = []
        for name, code in self.constants.items():
            if uses(text, code):
                flag = type(self._argument(self.lanes[0], name).value) is bool  # type: ignore[union-attr]
                found.append(
                    EntryGeneric(
                        name=code, role=GenericRole.CONSTANT, source=name, rust_type="bool" if flag else "i32"
                    )
                )
        return found

    # ---- the function --------------------------------------------------------------------

    def _assembled(
        self, name: str, params: list[EntryParam], generics: list[EntryGeneric], body: list[str], printer: Printer
    ) -> Written:
        pad = "    "
        lines = [f"/// {sentence}".rstrip() for sentence in self._summary(generics, params)]
        lines.append(f"#[cutile::entry({self._hints()})]")
        lines.append(f"pub unsafe fn {name}" + ("<" if generics else "("))
        for generic in generics:
            text = (
                f"{generic.name}: ElementType"
                if generic.rust_type == "type"
                else f"const {generic.name}: {generic.rust_type}"
            )
            lines.append(f"{pad}{text},")
        if generics:
            lines.append(">(")
        lines += [f"{pad}{param.name}: {param.rust_type}," for param in params]
        lines.append(") {")
        lines += [line if line.startswith(pad * 2) else f"{pad * 2}{line}" for line in body]
        lines.append("}")
        fixed = [line[len(pad) :] if line.startswith(pad * 2) else line for line in lines]
        entry = Entry(
            name=name, kernel=self.kernel.name, unsafe_fn=True, generics=tuple(generics), params=tuple(params),
            when=tuple(self.build.guards),
        )  # fmt: skip
        return Written(entry=entry, lines=tuple(fixed), helpers=printer.helpers)

    def _summary(self, generics: list[EntryGeneric], params: list[EntryParam]) -> list[str]:
        lines = [f"`{self.kernel.function}` of {self.kernel.file.rsplit('/', 1)[-1]}."]
        if self.build.guards:
            lines += ["", "Written for launches with:"]
            lines += [f"  * `{guard}`" for guard in self.build.guards]
        lines += ["", "Generics:"] if generics else []
        for generic in generics:
            lines.append(f"  * `{generic.name}`: {_about_generic(generic)}")
        lines += ["", "Parameters:"] if params else []
        for param in params:
            lines.append(f"  * `{param.name}`: {_about_param(param)}")
        lines += ["", "# Safety", "The arrays have the extents and strides that are passed for them."]
        return lines

    def _hints(self) -> str:
        hints = {name: {s.hints.get(name) for s in self.lanes} for name in ("occupancy", "num_ctas")}
        said = []
        for name, rust in (("occupancy", "occupancy"), ("num_ctas", "num_cta_in_cga")):
            values = hints[name] - {None}
            if len(hints[name]) == 1 and values:
                said.append(f"{rust} = {values.pop()}")
        other = {
            n
            for s in self.lanes
            for n, v in s.hints.items()
            if v is not None and n not in hints and n != "opt_level"
        }
        if other:
            raise Limit(what=f"the hint {sorted(other)[0]}").refuse(
                self.definition, "leave the hint out of the kernel's decorator"
            )
        said.append("max_divisibility = 1")
        return f"optimization_hints = ({self.gpu} = ({', '.join(said)},),)"


def _about_generic(generic: EntryGeneric) -> str:
    match generic.role:
        case GenericRole.ELEMENT:
            return f"element type of `{generic.source}`"
        case GenericRole.CONSTANT:
            return f"the constant `{generic.source}`"
        case GenericRole.PROMISE if generic.quantity is Quantity.POINTER:
            return f"alignment of `{generic.source}`, bytes"
        case GenericRole.PROMISE if generic.quantity is Quantity.ELEMENT:
            return f"alignment of an element of `{generic.source}` that is accessed alone, bytes"
        case GenericRole.PROMISE if generic.quantity is Quantity.LONE_STRIDE:
            what = f"axis {generic.axis} of `{generic.source}`"
            return f"elements in 16 bytes, what the stride of {what} may pass for: its extent is 1"
        case GenericRole.PROMISE:
            what = f"{generic.quantity} {generic.axis} of `{generic.source}`"
            return f"0 when {what} is 1, else a power of two that divides it"
        case GenericRole.DIVISOR:
            return f"a power of two that divides the {generic.quantity} of `{generic.source}`"


def _about_param(param: EntryParam) -> str:
    match param.role:
        case ParamRole.POINTER:
            return f"first element of `{param.source}`"
        case ParamRole.TENSOR:
            return f"the array `{param.source}`"
        case ParamRole.EXTENT:
            return f"extent {param.axis} of `{param.source}`"
        case ParamRole.STRIDE:
            return f"stride {param.axis} of `{param.source}`, elements"
        case ParamRole.SCALAR:
            return f"the scalar `{param.source}`"


def uses(text: str, name: str) -> bool:
    if not name:
        return False
    tree_free = text
    start = tree_free.find(name)
    while start >= 0:
        before = tree_free[start - 1] if start else " "
        end = start + len(name)
        after = tree_free[end] if end < len(tree_free) else " "
        if not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_"):
            return True
        start = tree_free.find(name, start + 1)
    return False
