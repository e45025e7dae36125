import ast
from dataclasses import replace

import pytest

from farm.pipeline.stage import Finding
from farm.recipes.cutile_rs.host import HostCode, write_host
from farm.recipes.cutile_rs.plan import (
    EntryGeneric,
    EntryParam,
    GenericRole,
    KernelPlan,
    ParamRole,
    Quantity,
)
from tests.unit.recipes.cutile_rs.builders import (
    element,
    gym_with,
    layout,
    minigym,
    op_named,
    planned,
    pointer,
    traced,
)
from tests.unit.recipes.cutile_rs.golden_files import OPS, golden, written

HEAD = "import cuda.tile as ct\nimport torch\nfrom minigym.backend import register_impl\n"
KERNEL = "@ct.kernel\ndef _probe_kernel(x, N: ct.Constant[int]):\n    ct.store(x, (0,), ct.zeros((N,), x.dtype))\n"
REGISTER = "@register_impl('probe', backend='cutile')\ndef probe(x):\n"
LAUNCH = "    ct.launch(torch.cuda.current_stream(), (1,), _probe_kernel, (x, 8))\n    return x\n"


def probe(source: str, *, helpers: str = "", plan: KernelPlan | None = None, **facts: object) -> HostCode:
    tree = gym_with(source, helpers=helpers)
    op = op_named(tree, "probe")
    analysis = traced(op, tree, rank=1, **facts)  # type: ignore[arg-type]
    return write_host(op, tree, layout(), analysis, plan or planned(analysis))


def wrapper(code: HostCode) -> str:
    assert code.findings == ()
    return code.files["src/minigym/ops/cutile_rs/probe.py"].decode()


def ffi(code: HostCode) -> str:
    assert code.findings == ()
    return code.files["src/minigym/ops/cutile_rs/probe_kernel/ffi.rs"].decode()


def only_finding(code: HostCode) -> Finding:
    assert code.files == {}
    (finding,) = code.findings
    return finding


@pytest.mark.parametrize("name", sorted(OPS))
def test_generated_files_are_the_golden_ones(name: str) -> None:
    code = written(name)
    assert code.findings == ()
    for path, file in golden(name).items():
        assert code.files[path].decode() == file.read_text("utf-8")


def test_six_files_are_written_and_all_python_parses() -> None:
    files = written("relu").files
    assert len(files) == 6
    for path, data in files.items():
        if path.endswith(".py"):
            ast.parse(data)


def test_the_source_language_is_gone_and_the_rest_is_the_references_own() -> None:
    text = wrapper(
        probe(
            f"{HEAD}# how many\nCOUNT = 3\nConstInt = ct.Constant[int]\n\n# the kernel\n{KERNEL}\n"
            f"# unused\ndef _device(x):\n    return ct.exp(x)\n\n# forward\n"
            f"{REGISTER}    '''Doc.'''\n    # a comment\n    y = COUNT  # kept\n{LAUNCH}"
        )
    )
    assert "cuda.tile" not in text
    assert "ct." not in text
    for kept in (
        "# how many\nCOUNT = 3",
        "'''Doc.'''",
        "# a comment",
        "y = COUNT  # kept",
        "# forward\n@register_impl",
    ):
        assert kept in text
    for gone in ("def _device", "ConstInt", "# the kernel", "# unused"):
        assert gone not in text
    assert "@register_impl('probe', backend=\"cutile-rs\")" in text


def test_ceiling_division_dtypes_and_annotations_become_plain_python() -> None:
    source = (
        f"{HEAD}{KERNEL}{REGISTER}    return _run(x)\n"
        "def _run(x, n: ct.Constant[int] = 1, *, stream: 'object' = None) -> ct.Array:\n"
        "    y = torch.empty((ct.cdiv(x.numel(), 8),), dtype=ct.float32)\n"
        f"{LAUNCH}"
    )
    text = wrapper(probe(source))
    assert "def _cdiv(a, b):\n    return -(-a // b)" in text
    assert "torch.empty((_cdiv(x.numel(), 8),), dtype=torch.float32)" in text
    assert "def _run(x, n = 1, *, stream: 'object' = None):" in text


def test_names_of_the_reference_are_not_taken() -> None:
    source = f"{HEAD}{KERNEL}_KERNEL = 1\n_cdiv = 2\n{REGISTER}    n = ct.cdiv(_KERNEL, _cdiv)\n{LAUNCH}"
    text = wrapper(probe(source))
    assert '_KERNEL_ = "probe"' in text
    assert "n = _cdiv_(_KERNEL, _cdiv)" in text


def test_kernel_parameters_may_be_called_like_the_launchers_locals() -> None:
    kernel = "@ct.kernel\ndef _probe_kernel(grid, ffi, rc, N: ct.Constant[int]): pass\n"
    launch = "    ct.launch(torch.cuda.current_stream(), (1,), _probe_kernel, (x, x, x, 8))\n    return x\n"
    text = wrapper(probe(f"{HEAD}{kernel}{REGISTER}{launch}"))
    assert "def _launch_probe_kernel(stream, grid_, grid, ffi, rc, N):" in text
    assert "make_tensor_desc(ffi_, grid)" in text


def test_launch_arguments_that_are_no_tuple_are_spread() -> None:
    body = (
        "    args = (x, 8)\n    ct.launch(torch.cuda.current_stream(), (1,), _probe_kernel, args)\n    return x\n"
    )
    assert "(torch.cuda.current_stream(), (1,), *args)" in wrapper(probe(f"{HEAD}{KERNEL}{REGISTER}{body}"))


def test_imports_inside_functions_move_up() -> None:
    body = (
        "    from .utils import next_power_of_2\n\n    n = next_power_of_2(3)\n    import gc\n    gc.collect()\n"
    )
    text = wrapper(probe(f"{HEAD}{KERNEL}{REGISTER}{body}{LAUNCH}"))
    assert "from minigym.backend.cutile_rs.utils import next_power_of_2\n" in text
    assert "def probe(x):\n    n = next_power_of_2(3)\n    import gc\n" in text


def test_helpers_that_the_target_lacks_come_along_with_what_they_need() -> None:
    helpers = (
        "import math\n_BASE = 2\n\n\ndef half(n):\n    return math.floor(n / _BASE)\n\n\ndef other():\n    pass\n"
    )
    source = f"{HEAD}from .utils import half\n{KERNEL}{REGISTER}    n = half(8)\n{LAUNCH}"
    text = wrapper(probe(source, helpers=helpers))
    assert "import math\n" in text
    assert "_BASE = 2\n\n\ndef half(n):\n    return math.floor(n / _BASE)\n" in text
    assert "other" not in text
    compile(text, "probe.py", "exec")


def test_an_autograd_function_goes_through_the_library_both_ways() -> None:
    source = (
        f"{HEAD}{KERNEL}{KERNEL.replace('_probe', '_back')}class _F(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n"
        "        ct.launch(torch.cuda.current_stream(), (1,), _probe_kernel, (x, 8))\n        return x\n"
        "    @staticmethod\n    def backward(ctx, dy):\n"
        "        ct.launch(torch.cuda.current_stream(), (2,), _back_kernel, (dy, 8))\n        return dy\n"
        f"{REGISTER}    return _F.apply(x)\n"
    )
    code = probe(source)
    assert "_launch_back_kernel(torch.cuda.current_stream(), (2,), dy, 8)" in wrapper(code)
    assert "fn cutile_probe_probe_kernel(" in ffi(code)
    assert "fn cutile_probe_back_kernel(" in ffi(code)


def test_the_hints_of_a_kernel_are_passed_on() -> None:
    text = wrapper(probe(f"{HEAD}{KERNEL}{REGISTER}{LAUNCH}", hints={"occupancy": 4, "num_ctas": None}))
    assert "        *grid_xyz,\n        _AUTO_COMPILE_OPTION,\n        4,\n        device_id,\n" in text


def test_the_c_prototype_and_the_rust_function_have_the_same_arguments() -> None:
    code = written("scale")
    text = code.files["src/minigym/ops/cutile_rs/scale.py"].decode()
    rust = code.files["src/minigym/ops/cutile_rs/scale_kernel/ffi.rs"].decode()
    declared = text.split("cutile_scale_scale_tail_kernel(")[1].split(");")[0]
    defined = rust.split("cutile_scale_scale_tail_kernel(\n")[1].split(") -> i32")[0]
    c_types = {"float": "f32", "int32_t": "i32", "uint64_t": "u64", "const TensorDesc*": "*const TensorDesc"}
    from_c = [item.strip().rsplit(" ", 1) for item in declared.split(",")]
    from_rust = [line.strip(" ,").split(": ") for line in defined.strip().splitlines()]
    assert [[name, c_types[kind]] for kind, name in from_c] == from_rust


def special_plan() -> tuple[str, KernelPlan]:
    """A kernel with two element types, a flag, divisors, a borrowed tensor and an integer array."""
    kernel = "@ct.kernel\ndef _probe_kernel(x, w, ids, eps, FLAG: ct.Constant[bool], N: ct.Constant[int]): pass\n"
    launch = (
        "    ct.launch(torch.cuda.current_stream(), (1,), _probe_kernel, (x, x, x, 0.5, True, 8))\n    return x\n"
    )
    source = f"{HEAD}{kernel}{REGISTER}{launch}"
    tree = gym_with(source)
    plan = planned(traced(op_named(tree, "probe"), tree, rank=1, scalars=("eps",)))
    divisor = EntryGeneric(
        name="D", role=GenericRole.DIVISOR, source="x", rust_type="i32", quantity=Quantity.STRIDE, axis=0
    )
    entry = replace(
        plan.entries[0],
        generics=(
            element("E", "x"),
            element("W", "w"),
            EntryGeneric(name="FLAG", role=GenericRole.CONSTANT, source="FLAG", rust_type="bool"),
            divisor,
            replace(divisor, name="P", quantity=Quantity.POINTER, axis=None),
        ),
        params=(
            pointer("x"),
            EntryParam(name="w", role=ParamRole.TENSOR, source="w", rust_type="&Tensor<W, {[-1, -1]}>"),
            pointer("ids", "i64"),
            EntryParam(name="eps", role=ParamRole.SCALAR, source="eps", rust_type="f32"),
        ),
    )
    return source, replace(plan, entries=(entry,))


def test_dispatch_nests_over_element_types_and_other_arrays_are_checked() -> None:
    source, plan = special_plan()
    text = ffi(probe(source, plan=plan, scalars=("eps",)))
    assert "crate::dispatch_by_dtype!(w_type, with_w, f32, f16, bf16)" in text
    assert "crate::dispatch_by_dtype!(x_type, with_e, f32, f16, bf16)" in text
    assert "let w_t = unsafe { borrow_tensor::<$W>(w_d) };" in text
    assert 'if crate::ffi_util::dtype_str(ids_d.dtype) != Some("i64") {' in text
    assert "(flag != 0).to_string()" in text
    assert "divisor(x_d.strides[0]).to_string()" in text
    assert "divisor(x_d.ptr as i64).to_string()" in text
    assert "probe_kernel(x_p, &*w_t, ids_p, eps)" in text


def test_integer_arrays_are_dispatched_over_what_was_traced_alone() -> None:
    text = ffi(probe(f"{HEAD}{KERNEL}{REGISTER}{LAUNCH}", dtype="i32"))
    assert "crate::dispatch_by_dtype!(x_type, with_e, i32)" in text
    assert "half" not in text


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("    k = _probe_kernel.replace_hints(occupancy=2)\n", 9, "used other than in a launch"),
        ("    s = ct.tune.exhaustive_search([], None, None, None, None)\n", 9, "tunes its launches"),
        ("    with ct.compiler_timeout(3):\n        pass\n", 9, "tunes its launches"),
        ("    n = ct.RoundingMode.APPROX\n", 9, "no meaning outside the source language"),
        ("    n = f'{ct.float32}'\n", 9, "inside an f-string"),
        ("    ct.launch(1, (1,), choose(x), (x, 8))\n", 9, "not a kernel by name"),
        ("    ct.launch(1)\n", 9, "without its four arguments"),
    ],
)
def test_a_construct_without_a_rule_is_a_finding_with_its_place(body: str, line: int, message: str) -> None:
    finding = only_finding(probe(f"{HEAD}{KERNEL}{REGISTER}{body}{LAUNCH}"))
    assert finding.file == "src/minigym/ops/cutile/probe.py"
    assert finding.line == line
    assert finding.column is not None
    assert message in finding.message
    assert finding.advice


def test_a_kernel_without_an_entry_is_a_finding() -> None:
    source = f"{HEAD}{KERNEL}{REGISTER}{LAUNCH}"
    tree = gym_with(source)
    plan = planned(traced(op_named(tree, "probe"), tree, rank=1))
    assert "gave no Rust entry" in only_finding(probe(source, plan=replace(plan, entries=()))).message


def test_a_dtype_that_cannot_cross_is_a_finding() -> None:
    finding = only_finding(probe(f"{HEAD}{KERNEL}{REGISTER}{LAUNCH}", dtype="bool"))
    assert "no code for dtype bool" in finding.message


def test_a_module_that_loads_the_source_language_is_a_finding() -> None:
    source = f"{HEAD}from minigym.special import tool\n{KERNEL}{REGISTER}    tool(x)\n{LAUNCH}"
    tree = gym_with(source)
    files = {**tree, "src/minigym/special.py": replace_data(tree, b"import cuda.tile as ct\ndef tool(x): pass\n")}
    op = op_named(files, "probe")
    analysis = traced(op, files, rank=1)
    code = write_host(op, files, layout(), analysis, planned(analysis))
    assert "which imports cuda.tile" in only_finding(code).message


def replace_data(tree: dict, data: bytes):  # type: ignore[no-untyped-def,type-arg]
    return replace(next(iter(tree.values())), data=data)


@pytest.mark.parametrize("gone", ["utils.py", "__init__.py", "lib.rs"])
def test_a_repo_that_lacks_a_file_is_a_finding_not_a_traceback(gone: str) -> None:
    tree = {path: e for path, e in minigym().items() if not (path.endswith(gone) and "cutile_rs" in path)}
    tree["src/minigym/ops/cutile_rs/cutile_kernels/Cargo.toml"] = next(iter(tree.values()))
    op = op_named(tree, "relu")
    analysis = traced(op, tree, rank=1)
    assert (
        "the repository has no"
        in only_finding(write_host(op, tree, layout(), analysis, planned(analysis))).message
    )


def conditional(*when: tuple[str, ...]) -> str:
    """The wrapper of a kernel with one entry for each set of conditions."""
    source = f"{HEAD}{KERNEL}{REGISTER}{LAUNCH}"
    tree = gym_with(source)
    plan = planned(traced(op_named(tree, "probe"), tree, rank=1))
    (entry,) = plan.entries
    entries = tuple(replace(entry, name=f"entry_{index}", when=texts) for index, texts in enumerate(when))
    return wrapper(probe(source, plan=replace(plan, entries=entries)))


def test_of_several_entries_the_one_whose_conditions_hold_is_launched() -> None:
    text = conditional(("not (N != 8)", "dtype(x) == 'f16'"), ("N != 8 or x.shape[0] > 4",))
    assert "    if N == 8 and x.dtype == torch.float16:\n        rc = lib.cutile_probe_entry_0(" in text
    assert "    elif N != 8 or x.shape[0] > 4:\n        rc = lib.cutile_probe_entry_1(" in text
    assert "    else:\n        raise NotImplementedError(" in text


def test_an_entry_without_conditions_takes_what_is_left() -> None:
    text = conditional(("dtype(x) in ('f16', 'bf16')",), ())
    assert "    if x.dtype in (torch.float16, torch.bfloat16):\n" in text
    assert "    else:\n        rc = lib.cutile_probe_entry_1(" in text
    assert "NotImplementedError" not in text


def test_the_conditions_of_a_single_entry_hold_too() -> None:
    text = conditional(("N == 8",))
    assert "    if N == 8:\n        rc = lib.cutile_probe(" in text
    assert "    else:\n        raise NotImplementedError(" in text
