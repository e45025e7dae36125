"""What a timing child does with tensors, in the toolchain's Python: this one has no torch."""

import os
import subprocess
import textwrap
from pathlib import Path

from containers.toolchain import Toolchain

ROOT = Path(__file__).resolve().parents[4]

PRELUDE = """
import functools, torch
from containers.box.gate.timing.inputs import Inputs
from containers.box.gate.timing.outputs import Outputs
from containers.box.gate.timing.tensors import reachable
"""


def run(toolchain: Toolchain, code: str) -> None:
    """Run `code` with its asserts."""
    done = subprocess.run(
        [toolchain.python, "-c", PRELUDE + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_inputs_change_in_place_and_keep_their_values_as_a_set(toolchain: Toolchain) -> None:
    run(
        toolchain,
        """
        half, weight = torch.randn(8, 16).half(), torch.nn.Parameter(torch.randn(5, 3))
        eight, index = torch.randn(33).to(torch.float8_e4m3fn), torch.arange(9)
        mask = torch.tensor([float("-inf"), 0.0, 1.0, 2.0])
        view, held = half.t(), {"list": [eight, (index, mask)]}
        function = lambda: (view @ half, weight, held)
        tensors = reachable(function)
        values = lambda tensor: tensor.detach().float().flatten().tolist()
        before, places = [values(t) for t in tensors], [t.data_ptr() for t in tensors]
        inputs = Inputs(tensors, "cpu")
        assert inputs.count == 5 and inputs.coarsest == "float8_e4m3fn"
        inputs.refill(3)
        after = [values(t) for t in tensors]
        assert places == [t.data_ptr() for t in tensors]
        assert [sorted(a) for a in before] == [sorted(a) for a in after]
        changed = {id(t): a != b for t, a, b in zip(tensors, before, after)}
        assert changed[id(half)] and changed[id(weight)] and changed[id(eight)]
        assert not changed[id(index)] and not changed[id(mask)]
        inputs.refill(4)
        assert values(half) != after[[id(t) for t in tensors].index(id(half))]
        inputs.refill(3)
        assert after == [values(t) for t in tensors]
        """,
    )


def test_what_a_call_changed_is_named_and_undone(toolchain: Toolchain) -> None:
    run(
        toolchain,
        """
        first, second = torch.randn(6), torch.arange(4)
        inputs = Inputs([first, second], "cpu")
        inputs.refill(1)
        assert inputs.changed(1) == ()
        second.add_(1)
        assert inputs.changed(1) == (1,) and second.tolist() == [1, 2, 3, 4]
        assert inputs.tensor(1).dtype == torch.int64
        inputs.refill(1)
        assert second.tolist() == [0, 1, 2, 3]
        """,
    )


def test_tensors_are_found_behind_methods_partials_modules_and_gradients(toolchain: Toolchain) -> None:
    run(
        toolchain,
        """
        linear, x = torch.nn.Linear(3, 3), torch.randn(2, 3, requires_grad=True)
        linear(x).sum().backward()
        found = {id(t) for t in reachable(functools.partial(linear.forward, x))}
        assert {id(x), id(x.grad), id(linear.weight), id(linear.bias), id(linear.weight.grad)} <= found
        """,
    )


def test_outputs_are_plain_tensors_and_every_dtype_has_a_fingerprint(toolchain: Toolchain) -> None:
    run(
        toolchain,
        """
        class Lazy(torch.Tensor):
            pass
        outputs = Outputs("cpu")
        assert "Lazy, no plain tensor" in outputs.tensors([torch.ones(2).as_subclass(Lazy)])[1]
        assert outputs.tensors((1, None, torch.ones(2)))[1] is None
        large = torch.randn((1 << 22) + 11)
        found = outputs.fingerprint("result 0", large)
        assert abs(found["squares"] - float((large.double() ** 2).sum())) < 1e-3
        special = outputs.fingerprint("result 0", torch.tensor([1.0, float("nan"), float("inf")]))
        assert special["special"] == 2 and special["squares"] == 1.0
        for dtype in (torch.float8_e5m2, torch.bfloat16, torch.int32, torch.bool, torch.complex64):
            assert outputs.fingerprint("result 0", torch.ones(5).to(dtype))["squares"] == 5.0
        assert outputs.fingerprint("result 0", torch.empty(0))["squares"] == 0.0
        """,
    )
