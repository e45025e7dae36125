"""The runner of rows on a repository that runs on a CPU, with candidates of our own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from containers.box.gate import rows
from containers.box.gate.subject import Sink, Subject
from containers.toolchain import Toolchain
from farm.codec import decode
from farm.measured.records import Collected, Outcome, Phase, RowRun
from tests.cpugym import KERNELS, NATIVE, replace, subject

pytestmark = pytest.mark.toolchain

Ran = tuple[Collected | None, dict[str, RowRun]]
Runner = Callable[..., Ran]


@pytest.fixture(scope="module")
def run(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Run a phase; the last word of a row's key is what is in its brackets."""

    def runner(judged: Subject, phase: Phase, **settings: Any) -> Ran:
        out = tmp_path_factory.mktemp("records") / "records.jsonl"
        sink = Sink(out)
        settings = {"limit_s": 300, **settings}
        rows.run(judged, phase, sink=sink, python=str(toolchain.python), **settings)
        sink.close()
        collected, runs = None, {}
        for line in out.read_text().splitlines():
            data = json.loads(line)
            if data.pop("record") == "Collected":
                collected = decode(Collected, data)
            else:
                row = decode(RowRun, data)
                runs[f"{row.null} {row.key}" if row.null else row.key] = row
        return collected, runs

    return runner


def outcomes(ran: Ran) -> dict[str, Outcome]:
    return {key.split("::")[-1]: row.outcome for key, row in ran[1].items()}


def key(name: str, op: str = "relu") -> str:
    return f"tests/ops/test_{op}.py::Test{op.capitalize()}::{name}"


RELU = ("float32, shape=(8, 64)", "float16, shape=(8, 64)", "float32, shape=(3, 5, 7)", "float16, shape=(9,)")
ROWS = [key(f"test_op[dtype=torch.{name}]") for name in RELU]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return subject(tmp_path_factory.mktemp("honest") / "relu", "relu")


def test_an_honest_candidate_passes_the_sources_rows_through_its_library_alone(
    honest: Subject, run: Runner
) -> None:
    source, source_rows = run(honest, Phase.SOURCE)
    target, target_rows = run(honest, Phase.TARGET, jobs=2)
    assert source is not None
    assert target is not None
    assert source.keys == target.keys == tuple(ROWS)
    assert source.uncollected == target.uncollected == ()
    assert {row.outcome for row in (*source_rows.values(), *target_rows.values())} == {Outcome.PASSED}
    assert [row.calls for row in source_rows.values()] == [0] * 4
    for name in ROWS:
        row = target_rows[name]
        assert (row.calls, row.kernels, row.backwards) == (2, {"cpu_relu": 1, "cpu_relu_backward": 1}, 1)
        assert (row.results, row.backwards) == (source_rows[name].results, source_rows[name].backwards)
    fact = target_rows[ROWS[2]].results[0]
    assert (fact.shape, fact.stride, fact.dtype, fact.requires_grad) == ((3, 5, 7), (35, 7, 1), "float32", True)
    clean = ("source_dsl", "patched", "threads", "result_types")
    assert [target.process[name] for name in clean] == ["", "", "", ""]
    assert target.process["source_dsl_import"] == "refused"
    assert (target.process["processes"], target.process["deaths"]) == ("2", "0")


def test_with_the_stub_every_row_fails(honest: Subject, run: Runner) -> None:
    _, runs = run(honest, Phase.STUB)
    assert {name: row.outcome for name, row in runs.items()} == dict.fromkeys(ROWS, Outcome.FAILED)
    assert {row.reason for row in runs.values()} == {"RuntimeError: cpu_relu: the launch failed (rc -3)"}


def test_rows_that_go_wrong_stop_no_other(tmp_path: Path, run: Runner) -> None:
    """Of relu's four rows one is wrong, one crashes, one hangs and the last is fine."""

    def edit(tree: Path) -> None:
        replace(
            tree / f"{NATIVE}/relu.py",
            "    return _Relu.apply(x.contiguous())",
            "    if x.dtype == torch.float32 and x.dim() == 2:\n"
            "        return _Relu.apply(x.contiguous()) + 1\n"
            "    if x.dim() == 2:\n"
            "        import ctypes\n"
            "        ctypes.string_at(0)\n"
            "    if x.dim() == 3:\n"
            "        import time\n"
            "        time.sleep(1000)\n"
            "    return _Relu.apply(x.contiguous())",
        )

    _, runs = run(subject(tmp_path / "s", "relu", edit), Phase.TARGET, row_limit_s=20)
    assert [runs[name].outcome for name in ROWS] == [
        Outcome.FAILED, Outcome.NOT_RUN, Outcome.NOT_RUN, Outcome.PASSED,
    ]  # fmt: skip
    reasons = [runs[name].reason or "" for name in ROWS]
    assert reasons[0].startswith("AssertionError: Tensor-likes are not close! | Mismatched elements: 512 / 512")
    assert "signal SIGSEGV" in reasons[1]
    assert reasons[2] == "no end within 20 s"


def test_the_phases_time_limit_leaves_rows_that_did_not_run(tmp_path: Path, run: Runner) -> None:
    def edit(tree: Path) -> None:
        replace(tree / f"{NATIVE}/scale.py", "    x = x.contiguous()", "    import time\n    time.sleep(1000)")

    collected, runs = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET, limit_s=30)
    assert {row.outcome for row in runs.values()} == {Outcome.NOT_RUN}
    assert len(runs) == 4
    assert collected is not None
    assert len(collected.keys) == 4


def test_a_row_that_the_test_skips_for_the_target_is_skipped(tmp_path: Path, run: Runner) -> None:
    def base(tree: Path) -> None:
        replace(
            tree / "tests/ops/test_scale.py",
            "    def test_strided(self, backend):\n",
            "    def test_strided(self, backend):\n"
            '        if backend == "native":\n            pytest.skip("only contiguous")\n',
        )

    ran = run(subject(tmp_path / "s", "scale", base=base), Phase.TARGET)
    assert outcomes(ran)["test_strided[]"] is Outcome.SKIPPED
    assert ran[1][key("test_strided[]", "scale")].reason == "only contiguous"
    assert list(outcomes(ran).values()).count(Outcome.PASSED) == 3


def test_a_candidate_that_lets_the_source_compute_fails(tmp_path: Path, run: Runner) -> None:
    """It imports the source's implementation where it is called; the source language is refused."""

    def edit(tree: Path) -> None:
        replace(
            tree / f"{NATIVE}/scale.py",
            "    x",
            "    from cpugym.ops.loops.scale import scale as other\n    return other(x, alpha)\n    x",
        )

    collected, runs = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET)
    assert {row.outcome for row in runs.values()} == {Outcome.FAILED}
    assert all("loop.tile is not to be had" in (row.reason or "") for row in runs.values())
    assert {row.calls for row in runs.values()} == {0}
    assert collected is not None
    assert collected.process["source_dsl"] == "imported by scale.py"


def test_where_the_repo_needs_the_source_language_its_launches_are_refused(tmp_path: Path, run: Runner) -> None:
    """The package imports it without asking; the candidate calls the source in one of its rows only."""

    def base(tree: Path) -> None:
        replace(tree / "src/cpugym/ops/__init__.py", 'if is_backend_available("loops"):', "if True:")

    def edit(tree: Path) -> None:
        replace(
            tree / f"{NATIVE}/scale.py",
            "    x = x.contiguous()",
            "    if x.numel() == 37 * 11:\n"
            "        from cpugym.ops.loops.scale import scale as other\n"
            "        return other(x, alpha)\n"
            "    x = x.contiguous()",
        )

    ran = run(subject(tmp_path / "s", "scale", edit, base=base), Phase.TARGET)
    failed = {name: row for name, row in ran[1].items() if row.outcome is not Outcome.PASSED}
    assert list(failed) == [key("test_op[alpha=3.0, dtype=torch.float32, shape=(37, 11)]", "scale")]
    (row,) = failed.values()
    assert (
        row.reason
        == "containers.box.gate.rows.dsl.SourceLaunch: loop.tile.launch was called by the target implementation"
    )
    assert ran[0] is not None
    facts = ran[0].process
    assert facts["source_dsl"] == "launched 1 times by the target implementation"
    assert facts["source_dsl_import"] == "watched"
    assert "loop.tile is not to be had" in facts["source_dsl_needed"]


def test_what_a_candidate_does_to_its_process_is_told(tmp_path: Path, run: Runner) -> None:
    """It replaces the comparison, leaves a thread behind and gives a tensor class of its own."""

    def edit(tree: Path) -> None:
        replace(
            tree / f"{NATIVE}/scale.py",
            "\n\n@register_impl",
            "\n\nclass Lazy(torch.Tensor):\n    pass\n\n\n"
            "torch.testing.assert_close = lambda *args, **kwargs: None\n"
            "import threading\nimport time\n"
            'threading.Thread(target=time.sleep, args=(1000,), daemon=True, name="helper").start()\n'
            "\n\n@register_impl",
        )
        replace(tree / f"{NATIVE}/scale.py", "    return y", "    return y.as_subclass(Lazy)")

    collected, runs = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET)
    assert {row.outcome for row in runs.values()} == {Outcome.PASSED}
    assert collected is not None
    facts = collected.process
    assert facts["patched"] == "torch.testing.assert_close"
    assert facts["threads"] == "helper"
    assert facts["result_types"] == "Lazy"


def test_a_candidate_that_cannot_be_imported_leaves_no_rows(tmp_path: Path, run: Runner) -> None:
    def edit(tree: Path) -> None:
        replace(tree / f"{NATIVE}/scale.py", "import ctypes", "import ctypes_")

    collected, runs = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET)
    assert collected is not None
    assert (collected.keys, runs) == ((), {})


def test_a_patch_that_steers_pytest_is_not_run(tmp_path: Path, run: Runner) -> None:
    def edit(tree: Path) -> None:
        (tree / "tests/ops/conftest.py").write_text("")
        replace(tree / "tests/common.py", "1e-5", "1e5")
        replace(tree / "pyproject.toml", "testpaths", "filterwarnings = []\ntestpaths")

    collected, runs = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET)
    assert runs == {}
    assert collected is not None
    assert [text.split(":")[0] for text in collected.uncollected] == [
        "pyproject.toml", "tests/common.py", "tests/ops/conftest.py",
    ]  # fmt: skip


def test_null_kernels_fail_good_rows_and_pass_a_useless_one(tmp_path: Path, run: Runner) -> None:
    """One row's results are far below its tolerance; another has one element, so that its mean is right."""

    def base(tree: Path) -> None:
        replace(
            tree / "tests/ops/test_scale.py", "((37, 11), 3.0, torch.float32)", "((37, 11), 1e-9, torch.float32)"
        )
        replace(tree / "tests/ops/test_scale.py", "((8, 64), 0.5, torch.float32)", "((1,), 0.5, torch.float32)")

    _, runs = run(subject(tmp_path / "s", "scale", base=base), Phase.NULL)
    one, half, tiny = (
        key(f"test_op[{text}]", "scale")
        for text in (
            "alpha=0.5, dtype=torch.float32, shape=(1,)",
            "alpha=-1.25, dtype=torch.float16, shape=(8, 64)",
            "alpha=1e-09, dtype=torch.float32, shape=(37, 11)",
        )
    )
    nulls = ("zeros", "mean", "input")
    assert [runs[f"{null} {half}"].outcome for null in nulls] == [Outcome.FAILED] * 3
    assert [runs[f"{null} {tiny}"].outcome for null in nulls] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
    assert [runs[f"{null} {one}"].outcome for null in nulls] == [Outcome.FAILED, Outcome.NOT_RUN, Outcome.FAILED]
    assert runs[f"mean {one}"].reason == "no null `mean` fits the op's results"


def test_the_last_result_and_null_gradients_are_nulls_too(tmp_path: Path, run: Runner) -> None:
    """The forward is compared with itself, so that only gradients can fail; the second of two calls differs."""

    def base(tree: Path) -> None:
        replace(
            tree / "tests/common.py",
            "torch.testing.assert_close(result, expected,",
            "torch.testing.assert_close(result, result,",
        )
        replace(
            tree / "tests/ops/test_relu.py",
            "    @pytest.mark.parametrize(\"n\"",
            "    @pytest.mark.parametrize(\"backend\", _backends)\n"
            "    def test_two(self, backend):\n"
            "        self.choose(backend)\n"
            "        x, y = torch.randn(30), torch.randn(30)\n"
            "        cpugym.ops.relu(x)\n"
            "        assert torch.equal(cpugym.ops.relu(y), torch.relu(y))\n\n"
            "    @pytest.mark.parametrize(\"n\"",
        )  # fmt: skip

    judged = subject(tmp_path / "s", "relu", base=base)
    _, zeros = run(judged, Phase.NULL, null="zeros")
    assert {row.outcome for row in zeros.values()} == {Outcome.FAILED}
    assert {row.backwards for name, row in zeros.items() if "test_op" in name} == {1}
    _, last = run(judged, Phase.NULL, null="last")
    assert last[f"last {key('test_two[]')}"].outcome is Outcome.FAILED


def test_a_result_without_gradient_is_seen(tmp_path: Path, run: Runner) -> None:
    """A forward-only candidate passes the rows, since the comparison then leaves the gradients out."""

    def edit(tree: Path) -> None:
        replace(tree / f"{NATIVE}/relu.py", "_Relu.apply(x.contiguous())", "_Relu.apply(x.detach().contiguous())")

    _, runs = run(subject(tmp_path / "s", "relu", edit), Phase.TARGET)
    assert {row.outcome for row in runs.values()} == {Outcome.PASSED}
    assert {(row.backwards, row.results[0].requires_grad) for row in runs.values()} == {(0, False)}


def test_a_getter_gives_a_function_that_is_watched_as_well(tmp_path: Path, run: Runner) -> None:
    def base(tree: Path) -> None:
        for side in ("loops", "native"):
            replace(
                tree / f"src/cpugym/ops/{side}/scale.py",
                f'@register_impl("scale", backend="{side}")\ndef',
                f'@register_impl("scale", backend="{side}")\ndef get_scale():\n    return scale\n\n\ndef',
            )
        replace(
            tree / "tests/ops/test_scale.py", "cpugym.ops.scale,", "lambda x, alpha: cpugym.ops.scale()(x, alpha),"
        )
        replace(tree / "src/cpugym/ops/ops.py", "def scale(x, alpha):", "def scale():")

    _, runs = run(subject(tmp_path / "s", "scale", base=base), Phase.TARGET)
    assert {(row.outcome, len(row.results), row.calls) for row in runs.values()} == {(Outcome.PASSED, 1, 1)}
    assert {tuple((row.kernels or {}).items()) for row in runs.values()} == {(("cpu_scale", 1),)}


def test_a_library_that_is_wrong_fails_rows(tmp_path: Path, run: Runner) -> None:
    def edit(tree: Path) -> None:
        replace(tree / f"{KERNELS}/scale.c", "LOAD(x) * alpha", "LOAD(x) * alpha * 1.01f")

    ran = run(subject(tmp_path / "s", "scale", edit), Phase.TARGET)
    assert set(outcomes(ran).values()) == {Outcome.FAILED}
