"""Exports a kernel for given arguments, as a launch would compile it: export.py REQUEST.json, with the toolchain's Python.

The request: `file`, `out`, `disassembler`, `signatures` (encoded `farm.analysis.Signature`, `ir` left empty).
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

from containers.box.trace.dlpack import DeviceArray

TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i32": "int32", "bool": "bool"}


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("kernels", request["file"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for signature in request["signatures"]:
        kernel = getattr(module, signature["kernel"])
        args = tuple(_argument(arg) for arg in signature["args"])
        compiled = KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2())
        bytecode = Path(request["out"]) / f"{signature['id']}.tileirbc"
        export_kernel(kernel, [compiled], bytecode, gpu_code="sm_90", output_format="tileir_bytecode")
        done = subprocess.run([request["disassembler"], bytecode], capture_output=True, text=True, check=True)
        bytecode.with_suffix(".mlir").write_text(done.stdout)


def _argument(arg: dict) -> object:
    if arg["kind"] != "array":
        return arg["value"]
    return DeviceArray(
        address=arg["address"],
        dtype=TYPES[arg["dtype"]],
        shape=tuple(arg["shape"]),
        strides=tuple(arg["strides"]),
    )


if __name__ == "__main__":
    main()
