"""Kernel specialisations: what a launch's arguments make of a kernel, exported as Tile IR."""

import hashlib
import inspect
import io
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from cuda.tile._by_target import UNSPECIFIED, ByTarget
from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

from containers.box.trace.addresses import AddressBook
from containers.box.trace.describe import DTYPES, described_tensor
from containers.box.trace.dlpack import DeviceArray
from farm.analysis import Arg, ConstantArg, KernelSource, ScalarArg, Signature


class NotCompilable(Exception):
    """The front end refuses a specialisation, as it would at a real launch."""


@dataclass(kw_only=True)
class Specialiser:
    """Collects the distinct specialisations of a trace and exports each at its first sight."""

    repo: Path
    gpu: str
    out: Path  #: artifact folder
    disassembler: Path
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  #: signature id to the front end's reason
    _known: dict[str, Signature] = field(default_factory=dict)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """What was exported so far."""
        return tuple(self._known.values())

    def specialise(
        self, kernel: Any, args: tuple[Any, ...], book: AddressBook, *, launched: bool
    ) -> tuple[Signature, tuple[Arg, ...]]:
        """The specialisation and the described arguments of a launch or of a tuner's candidate.

        The facts are inferred by cuda.tile's own launch code, from arrays at synthetic addresses.
        Raises NotCompilable when the front end refuses it.
        """
        source = self._source(kernel)
        described = tuple(
            item
            for name, constant, value in zip(source.parameters, _constants(kernel, len(args)), args, strict=True)
            for item in _describe(name, value, constant, book)
        )
        stand_ins = tuple(_stand_in(value, book) for value in args)
        compiled = KernelSignature.from_kernel_args(kernel, stand_ins, CallingConvention.cutile_python_v2())
        described = _with_dtypes(described, compiled)
        hints = self._hints(kernel)
        identity = f"{source.name} {compiled.symbol} {sorted(hints.items())}"
        id_ = hashlib.sha256(identity.encode()).hexdigest()[:12]
        if id_ in self.refused:
            raise NotCompilable(self.refused[id_])
        known = self._known.get(id_)
        if known is None:
            known = self._export(id_, source.name, kernel, compiled, described, hints)
        if known.tuned and launched:
            known = replace(known, tuned=False, args=described)
        self._known[id_] = known
        return known, described

    def _export(
        self,
        id_: str,
        source: str,
        kernel: Any,
        compiled: KernelSignature,
        args: tuple[Arg, ...],
        hints: dict[str, int | None],
    ) -> Signature:
        folder = self.out / "ir" / "reference"
        folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        try:
            with torch._C.DisableTorchFunction():
                export_kernel(kernel, [compiled], buffer, gpu_code=self.gpu, output_format="tileir_bytecode")
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            self.refused[id_] = f"kernel {source} does not compile: {type(error).__name__}: {first}"
            raise NotCompilable(self.refused[id_]) from error
        bytecode = folder / f"{id_}.tileirbc"
        bytecode.write_bytes(buffer.getvalue())
        text = bytecode.with_suffix(".mlir")
        disassemble(self.disassembler, bytecode, text)
        return Signature(
            id=id_,
            kernel=source,
            args=args,
            hints=hints,
            tuned=True,
            ir=str(text.relative_to(self.out)),
            bytecode=str(bytecode.relative_to(self.out)),
            sha256=hashlib.sha256(buffer.getvalue()).hexdigest(),
        )

    def _source(self, kernel: Any) -> KernelSource:
        function = kernel._annotated_function.pyfunc
        name = f"{function.__module__}.{function.__qualname__}"
        if name not in self.kernels:
            path = Path(inspect.getsourcefile(function) or "").resolve()
            self.kernels[name] = KernelSource(
                name=name,
                function=function.__name__,
                file=str(path.relative_to(self.repo) if path.is_relative_to(self.repo) else path),
                line=_def_line(function),
                parameters=tuple(inspect.signature(function).parameters),
            )
        return self.kernels[name]

    def _hints(self, kernel: Any) -> dict[str, int | None]:
        return {name: self._for_gpu(value) for name, value in vars(kernel._compiler_options).items()}

    def _for_gpu(self, value: Any) -> int | None:
        if isinstance(value, ByTarget):
            value = value._by_target.get(self.gpu, value._default)
        return None if value is UNSPECIFIED or value is None else int(value)


def disassemble(disassembler: Path, bytecode: Path, text: Path) -> None:
    """Write the Tile IR text of a bytecode file, with source locations. Raises CalledProcessError."""
    done = subprocess.run([disassembler, "-g", bytecode], capture_output=True, text=True, check=True)
    text.write_text(done.stdout)


def _def_line(function: Any) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def _constants(kernel: Any, count: int) -> tuple[bool, ...]:
    nodes = kernel._annotated_function.parameter_annotations
    if len(nodes) != count:
        raise TypeError(f"the kernel takes {len(nodes)} arguments, the launch gives {count}")
    return tuple(bool(getattr(node, "constant", False)) for node in nodes)


def _stand_in(value: Any, book: AddressBook) -> Any:
    if isinstance(value, torch.Tensor):
        return DeviceArray(
            address=book.address(value),
            dtype=str(value.dtype).removeprefix("torch."),
            shape=tuple(int(extent) for extent in value.shape),
            strides=tuple(int(stride) for stride in value.stride()),
        )
    if isinstance(value, (list, tuple)):
        return type(value)(_stand_in(item, book) for item in value)
    return value


def _describe(name: str, value: Any, constant: bool, book: AddressBook) -> list[Arg]:
    if isinstance(value, (list, tuple)):
        form = "{}[{}]" if isinstance(value, list) else "{}.{}"  # a list is one parameter, a tuple is its items
        return [
            arg for i, item in enumerate(value) for arg in _describe(form.format(name, i), item, constant, book)
        ]
    if isinstance(value, torch.Tensor):
        return [described_tensor(name, value, book)]
    if constant:
        plain = value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
        return [ConstantArg(name=name, value=plain)]
    dtype = "bool" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"
    return [ScalarArg(name=name, dtype=dtype, value=value)]


def _with_dtypes(described: tuple[Arg, ...], compiled: KernelSignature) -> tuple[Arg, ...]:
    """The described arguments, scalars with the types that the launch code gave them."""
    flat = list(_flat(compiled.parameters))
    if len(flat) != len(described):
        return described
    return tuple(
        ScalarArg(name=arg.name, value=arg.value, dtype=DTYPES[parameter.dtype.name.rstrip("_")])
        if isinstance(arg, ScalarArg) and hasattr(parameter, "dtype")
        else arg
        for arg, parameter in zip(described, flat, strict=True)
    )


def _flat(parameters: Any) -> Any:
    for parameter in parameters:
        items = getattr(parameter, "items", None)
        if items is not None:
            yield from _flat(items)
        else:
            yield parameter
