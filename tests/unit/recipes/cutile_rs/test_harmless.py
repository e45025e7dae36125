"""What the host code of an op may not do, each beside something near it that it may."""

import pytest

from farm.layout import Package
from farm.patch import make_patch
from farm.recipes.cutile_rs import harmless
from farm.recipes.cutile_rs.bare import bare
from farm.recipes.cutile_rs.host import write_host
from farm.recipes.cutile_rs.review import review
from farm.tree import Entry, Mode
from tests.unit.recipes.cutile_rs.builders import layout, minigym, op_named, planned, traced

PACKAGE = Package(root="src/minigym", name="minigym", layout=layout())
WRAPPER = "src/minigym/ops/cutile_rs/relu.py"
TAKEN = "ffi, lib = bind_kernel_function_cffi(K, C)\n"


def said(text: str) -> list[str]:
    return [found.what for found in harmless.python(text, WRAPPER, PACKAGE)]


@pytest.mark.parametrize(
    ("harm", "twin"),
    [
        ("import os\n", "import math\n"),
        ("import subprocess as math\n", "import functools as f\n"),
        ("from torch.utils import cpp_extension\n", "from torch import nn\n"),
        ("from torch._C import _x\n", "from torch.nn import functional\n"),
        ("from torch import *\n", "from torch import Tensor\n"),
        ("from minigym.ops.cutile.relu import relu\n", "from minigym.backend import register_impl\n"),
        ("from ..cutile import relu\n", "from . import scale\n"),
        ("open('/out/gates.json', 'w')\n", "x.opened\n"),
        ("f = open\n", "f = print\n"),
        ("exec('1')\n", "execute = 1\n"),
        ("__builtins__['open']\n", "__name__\n"),
        ("torch.save(x, '/out/x')\n", "torch.empty_like(x)\n"),
        ("torch.os.system('x')\n", "torch.cuda.current_stream()\n"),
        ("x.numpy().tofile('/out/x')\n", "x.numel()\n"),
        ("().__class__.__subclasses__()\n", "x.__init__\n"),
        ("torch._C._x\n", "self._x\n"),
        ("getattr(x, '__class__')\n", "getattr(x, 'stride', None)\n"),
        ("getattr(x, name)\n", "hasattr(x, 'name')\n"),
        ("get = getattr\n", "get = x.get\n"),
        ("setattr(x, 'y', 1)\n", "x.y = 1\n"),
        (TAKEN + "lib.system(b'x')\n", TAKEN + "lib.cutile_relu(x)\n"),
        (TAKEN + "other = lib\nother.system(b'x')\n", TAKEN + "rc = lib.cutile_relu(x)\n"),
        (TAKEN + "ffi.cast('int(*)(void)', 1)()\n", TAKEN + "make_tensor_desc(ffi, x)\n"),
        (TAKEN + "ffi.dlopen(None)\n", TAKEN + "ffi.NULL\n"),
        ("pair = bind_kernel_function_cffi(K, C)\n", TAKEN),
        ("bind = bind_kernel_function_cffi\n", TAKEN),
        (f"from minigym.backend.cutile_rs.utils import {harmless.BINDER} as b\n", TAKEN),
        ("(lambda f: f.cast)(ffi)\n", "(lambda f: f.size)(x)\n"),
        ("x = = 1\n", "x = 1\n"),
    ],
)
def test_a_wrapper_that_reaches_beyond_its_functions_and_torch_is_named(harm: str, twin: str) -> None:
    assert len(said(harm)) >= 1
    assert said(twin) == []


@pytest.mark.parametrize(
    ("harm", "twin"),
    [
        ("std::fs::write(p, d);", "core::mem::drop(p);"),
        ("use std as s;", "use core::ffi::c_void;"),
        ('extern "C" { fn system(x: *const u8) -> i32; }', 'pub unsafe extern "C" fn cutile_x() -> i32 { 0 }'),
        ('pub extern "C" fn cuLaunchKernel() {}', 'pub extern "C" fn cutile_relu() {}'),
        ("extern crate libc;", "use cutile::prelude::*;"),
        ('#[unsafe(link_section = ".init_array")] static X: fn() = f;', "#[unsafe(no_mangle)] pub fn f() {}"),
        ('#[export_name = "x"] fn f() {}', "#[inline] fn f() {}"),
        ("#![feature(asm)]", "#[allow(unused)] fn f() {}"),
        ('include!("/etc/passwd");', "// include! and std::fs in a comment, asm!"),
        ('core::arch::asm!("nop");', 'let s = "std::fs asm!";'),
    ],
)
def test_c_functions_that_reach_beyond_their_kernels_are_named(harm: str, twin: str) -> None:
    assert list(harmless.host(harm))
    assert list(harmless.host(twin)) == []


@pytest.mark.parametrize(
    ("harm", "twin"),
    [
        ("fn f() { std::process::exit(0) }", "let std = mean; let y = x - std;"),
        ("use std as s;", "let link = std != mean;"),
        ("use std::{fs};", "use cutile::core::*;"),
        ('#[unsafe(link_section = ".init_array")] static X: fn() = f;', "static X: i32 = 1;"),
        ("#[used] static X: fn() = f;", "#[cutile::entry()] unsafe fn f() {}"),
        ("#[ctor::ctor] fn f() { }", "#[cutile::module] mod m {}"),
        ('extern "C" { fn system(x: *const u8) -> i32; }', "fn system() {}"),
        ('macro_rules! m { ($a:ident) => { $a::fs::read("x") } }', "m(std);"),
        ('const X: &str = include_str!("/etc/passwd");', 'const X: &str = "include_str!";'),
        ('core::arch::asm!("nop");', "let arch = asm;"),
        ('env!("HOME");', "let x = env;"),
    ],
)
def test_a_kernel_file_that_holds_more_than_kernels_is_named(harm: str, twin: str) -> None:
    assert list(harmless.kernel(harm))
    assert list(harmless.kernel(twin)) == []


def test_a_landed_kernel_is_harmless_and_one_with_code_before_main_is_refused() -> None:
    path = "src/minigym/ops/cutile_rs/silu_and_mul_kernel/kernel.rs"
    landed = minigym()
    without = bare(landed, layout(), op_named(landed, "silu_and_mul"))
    op = op_named(without.tree, "silu_and_mul")
    text = landed[path].data
    for extra, reasons in (
        (b"", ()),
        (
            b'\n#[used]\n#[unsafe(link_section = ".init_array")]\nstatic F: fn() = f;\nfn f() {}\n',
            ("used", "link_section"),
        ),
    ):
        patch = make_patch(without.tree, {**without.tree, path: Entry(Mode.FILE, text + extra)})
        said = " ".join(found.reason for found in review(without, layout(), op, patch) if found.path == path)
        assert bool(said) == bool(reasons)
        assert all(word in said for word in reasons)


def test_a_place_is_a_line() -> None:
    (found,) = harmless.python("import torch\n\nimport os\n", WRAPPER, PACKAGE)
    assert (found.line, found.what.split(";")[0]) == (3, "imports os")
    (found,) = harmless.host("fn f() {}\n/* a\nb */ use std;\n")
    assert found.line == 3


@pytest.mark.parametrize("name", ["relu", "scale", "add_bias", "silu_and_mul"])
def test_what_the_program_writes_is_harmless_and_a_patch_that_is_not_is_refused(name: str) -> None:
    rank, scalars = {"relu": (1, ()), "scale": (1, ("alpha",)), "add_bias": (2, ()), "silu_and_mul": (2, ())}[name]
    without = bare(minigym(), layout(), op_named(minigym(), name))
    op = op_named(without.tree, name)
    analysis = traced(op, without.tree, rank=rank, scalars=scalars)
    made = write_host(op, without.tree, layout(), analysis, planned(analysis))
    files = {path: Entry(Mode.FILE, data) for path, data in made.files.items()}
    patch = make_patch(without.tree, {**without.tree, **files})
    assert review(without, layout(), op, patch) == ()
    wrapper = f"src/minigym/ops/cutile_rs/{name}.py"
    files[wrapper] = Entry(Mode.FILE, files[wrapper].data + b"\nopen('/out/gates.json', 'w')\n")
    (found,) = review(without, layout(), op, make_patch(without.tree, {**without.tree, **files}))
    assert found.path == wrapper
    assert found.reason.endswith("it uses open")
