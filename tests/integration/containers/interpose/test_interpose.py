"""Interposed libraries of a real one."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from containers import interpose
from tests.cpugym import compile_library

SOURCE = """
#include <stdarg.h>
#include <stdint.h>
typedef struct { double a, b, c; int64_t d; } big;
int64_t cutile_many(int8_t a, int64_t b, int32_t c, int64_t d, int64_t e, int64_t f, int64_t g, int32_t h,
                    int64_t i, int64_t j, double p, double q, double r, double s, double t, double u, double v,
                    double w, double x, float y) {
    return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i + 23 * j
         + (int64_t)(29 * p + 31 * q + 37 * r + 41 * s + 43 * t + 47 * u + 53 * v + 59 * w + 61 * x + 67 * y);
}
double cutile_double(double x) { return x / 2; }
big cutile_struct(big in) { big out = {in.b, in.c, in.a, -in.d}; return out; }
int32_t cutile_sum(int32_t count, ...) {
    va_list list; va_start(list, count); double total = 0;
    for (int i = 0; i < count; i++) total += va_arg(list, double);
    va_end(list); return (int32_t)total;
}
int32_t other(void) { return 7; }
int cutile_number = 3;
static int32_t hidden(void) { return 1; }
int32_t (*cutile_pointer)(void) = hidden;
"""

CALLS = """
import ctypes, sys
class Big(ctypes.Structure):
    _fields_ = [(n, ctypes.c_double) for n in "abc"] + [("d", ctypes.c_int64)]
lib = ctypes.CDLL(sys.argv[1])
i64, f64 = ctypes.c_int64, ctypes.c_double
lib.cutile_many.restype = i64
values = [ctypes.c_int8(-1), i64(2**40), ctypes.c_int32(-3), *map(i64, (4, 5, -6, 7)), ctypes.c_int32(8), i64(9),
          i64(-2**41), *map(f64, (1, -2, 3, 4, 5, 6, -7, 8, 9)), ctypes.c_float(10)]
print(lib.cutile_many(*values))
lib.cutile_double.restype = f64
print(lib.cutile_double(f64(5)))
lib.cutile_struct.restype = Big
out = lib.cutile_struct(Big(1, 2, 3, 4))
print(out.a, out.b, out.c, out.d)
print(lib.cutile_sum(3, f64(1), f64(2), f64(4)), lib.cutile_sum(1, f64(5)))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "real.c").write_text(SOURCE)
    compile_library([folder / "real.c"], folder / "real.so")
    return folder / "real.so"


def call(library: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALLS, library], env=environment, capture_output=True, text=True, check=True
    )


def test_a_shim_passes_every_argument_on_and_counts(library: Path, tmp_path: Path) -> None:
    made = interpose.build(library, tmp_path, prefix="cutile_")
    counts = interpose.Counts(tmp_path / "counts")
    shown = call(made.shim, interpose.environment(library, counts.path))
    assert shown.stdout == call(library, {}).stdout
    assert shown.stderr == ""
    assert counts.read() == {"cutile_double": 1, "cutile_many": 1, "cutile_struct": 1, "cutile_sum": 2}
    call(made.shim, interpose.environment(library, counts.path))
    assert counts.read()["cutile_sum"] == 4


def test_only_functions_with_the_prefix_are_interposed(library: Path, tmp_path: Path) -> None:
    made = interpose.build(library, tmp_path, prefix="cutile_")
    assert made.symbols == ("cutile_double", "cutile_many", "cutile_struct", "cutile_sum")
    assert "other" in interpose.build(library, tmp_path).symbols


def test_every_export_of_a_stub_returns_an_error(library: Path, tmp_path: Path) -> None:
    stub = ctypes.CDLL(str(interpose.build(library, tmp_path).stub))
    assert [stub.cutile_many(1), stub.other(), stub.cutile_sum(0)] == [-3, -3, -3]


def test_a_shim_without_its_library_fails_every_call_and_says_so(library: Path, tmp_path: Path) -> None:
    made = interpose.build(library, tmp_path, prefix="cutile_")
    program = f"import ctypes; print(ctypes.CDLL({str(made.shim)!r}).cutile_many(1))"
    for env, said in (({}, "no library is named"), (interpose.environment(tmp_path / "gone.so"), "gone.so")):
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "-3"
        assert said in done.stderr


def test_counting_works_in_several_threads(library: Path, tmp_path: Path) -> None:
    made = interpose.build(library, tmp_path, prefix="cutile_")
    counts = interpose.Counts(tmp_path / "counts")
    program = (
        "import ctypes, sys, threading\n"
        "lib = ctypes.CDLL(sys.argv[1])\n"
        "work = lambda: [lib.cutile_sum(0) for _ in range(20000)]\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, made.shim], env=interpose.environment(library, counts.path), check=True
    )
    assert counts.read()["cutile_sum"] == 80000


def test_a_library_without_such_functions_is_refused(library: Path, tmp_path: Path) -> None:
    with pytest.raises(interpose.InterposeError, match="exports 0 functions nothing_"):
        interpose.build(library, tmp_path, prefix="nothing_")
