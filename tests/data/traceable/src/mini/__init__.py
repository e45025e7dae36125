"""Ops by backend."""

from mini import cutile_ops, driver_ops

OPS = {
    "cutile": {"double": cutile_ops.double, "tuned": cutile_ops.tuned, "peek": cutile_ops.peek, "grad": cutile_ops.grad},
    "fake-rs": {"double": driver_ops.double, "tuned": cutile_ops.tuned, "peek": driver_ops.stub, "grad": driver_ops.crash},
}


def op(name, backend):
    return OPS[backend][name]
