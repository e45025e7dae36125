"""One configuration in the child: set up, then one call at a time, as the parent says."""

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

from containers.box.gate.timing.channel import Channel
from containers.box.gate.timing.device import Device
from containers.box.gate.timing.inputs import Inputs
from containers.box.gate.timing.outputs import Outputs, poison
from containers.box.gate.timing.tensors import reachable

#: Warm-up calls of a configuration that was open before.
_AGAIN = 3
_clock = time.perf_counter_ns


class ClosureError(Exception):
    """A problem of the closure, in a sentence; the configuration is over."""


class Server:
    """Performs the parent's commands on a closure that a row gave to its benchmark."""

    def __init__(self, channel: Channel, device: Device, *, warmup: int, late_s: float) -> None:
        self._channel, self._device, self._outputs = channel, device, Outputs(device.name)
        self._warmup, self._late_s = warmup, late_s

    def displace(self, placement: int) -> None:
        """Before the row makes its tensors; see Device."""
        self._device.displace(placement)

    def serve(
        self, function: Callable[[], Any], traffic: Callable[[Callable[[], Any]], int | None], *, known: bool
    ) -> None:
        """Until the parent closes the configuration. Raises ClosureError, or whatever the closure raises.

        `traffic(function)` calls it once more and gives the bytes that the op's calls read and write at least.
        `known`: the configuration was open before in this process, so what is compiled and tuned is at hand.
        Nothing is collected but in here: a row that runs its op on the way to what it measures may tune it.
        """
        for _ in range(1 + (_AGAIN if known else self._warmup)):
            function()
        bytes_least = traffic(function)
        inputs = Inputs(reachable(function), self._device.name)
        self._device.begin()
        try:
            inputs.refill(0)
            sizes = self._check(function(), inputs, 0)[1]
            self._channel.send("open", bytes_least=bytes_least, coarsest=inputs.coarsest, inputs=inputs.count)
            seed = 0
            while (command := self._channel.receive())["do"] not in ("close", "end"):
                if command["do"] == "prepare":
                    seed = int(command["seed"])
                    inputs.refill(seed)
                    poison(sizes, self._device.name)
                    self._device.cold(seed)
                    self._device.flush(int(command["token"]))
                    self._channel.send("ready")
                elif command["do"] == "drain":
                    self._device.flush(int(command["token"]))
                    self._channel.send("drained")
                else:
                    self._call(function, command, inputs, seed)
        finally:
            self._device.end()
            del inputs
            gc.collect()
            self._device.release()

    def _call(self, function: Callable[[], Any], command: dict[str, Any], inputs: Inputs, seed: int) -> None:
        started = _clock()
        result = function()
        self._device.synchronize()
        wall_ns = _clock() - started
        self._device.flush(int(command["token"]))
        self._channel.send("called", wall_ns=wall_ns)
        if command["late"] is not None:
            self._device.later(self._late_s, int(command["late"]))
            self._channel.send("late")
        self._channel.send("checked", outputs=self._check(result, inputs, seed)[0])

    def _check(self, result: Any, inputs: Inputs, seed: int) -> tuple[list[dict[str, Any]], list[int]]:
        """Fingerprints of the results and of changed inputs; sizes of the results, in bytes."""
        tensors, wrong = self._outputs.tensors(result)
        if wrong is not None:
            raise ClosureError(wrong)
        prints = [self._outputs.fingerprint(f"result {i}", tensor) for i, tensor in enumerate(tensors)]
        with torch.no_grad():
            prints += [
                self._outputs.fingerprint(f"input {index}", inputs.tensor(index)) for index in inputs.changed(seed)
            ]
        if not prints:
            raise ClosureError(
                "the timed function gives no tensor and changes none, so its work cannot be checked"
            )
        return prints, [tensor.untyped_storage().nbytes() for tensor in tensors]
