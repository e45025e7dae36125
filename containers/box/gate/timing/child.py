"""One side of timing: `python -m containers.box.gate.timing.child REQUEST COMMANDS REPLIES`.

REQUEST is JSON, the others are inherited descriptors. The device and every function that judges are made before
any code of the tree is imported.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from containers.box.gate.timing.channel import Channel
from containers.box.gate.timing.device import Device
from containers.box.gate.timing.order import FIRST_TOKEN
from containers.box.gate.timing.rows import Rows
from containers.box.gate.timing.serve import Server


def main(arguments: list[str]) -> int:
    """Serve until the parent says `end` or goes away."""
    request = json.loads(arguments[0])
    channel = Channel(int(arguments[1]), int(arguments[2]))
    device = Device(float(request["flush_factor"]))
    device.flush(FIRST_TOKEN)
    channel.send("started", device=device.name)
    server = Server(channel, device, warmup=int(request["warmup"]), late_s=float(request["late_s"]))
    tree = Path(request["tree"])
    os.chdir(tree)
    sys.path[:0] = [str(tree / request["package_path"]), str(tree)]
    sys.argv = ["pytest"]
    rows = Rows(request, channel, server)
    options = ["-q", "-s", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", str(tree)]
    return int(pytest.main([*options, "-o", "addopts=", *request["tests"]], plugins=[rows]))


if __name__ == "__main__":
    # The end is not left to atexit handlers of a tree or of CUDA.
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
