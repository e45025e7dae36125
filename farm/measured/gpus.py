"""Memory bandwidth of GPUs, for the floor that no honest measurement can pass."""

from typing import NamedTuple


class Memory(NamedTuple):
    """Peak of a GPU's memory."""

    bytes_per_s: float
    source: str


#: By the beginning of the driver's name for the GPU; the longest that fits counts.
MEMORY: dict[str, Memory] = {
    "NVIDIA H200": Memory(4.8e12, "NVIDIA H200 Tensor Core GPU datasheet: 4.8 TB/s"),
    "NVIDIA H100 80GB HBM3": Memory(3.35e12, "NVIDIA H100 Tensor Core GPU datasheet, SXM: 3.35 TB/s"),
    "NVIDIA H100 PCIe": Memory(2.0e12, "NVIDIA H100 PCIe product brief: 2.0 TB/s"),
    "NVIDIA H100 NVL": Memory(3.9e12, "NVIDIA H100 Tensor Core GPU datasheet, NVL: 3.9 TB/s"),
    "NVIDIA A100-SXM4-80GB": Memory(2.039e12, "NVIDIA A100 Tensor Core GPU datasheet, 80GB SXM: 2,039 GB/s"),
    "NVIDIA A100-SXM4-40GB": Memory(1.555e12, "NVIDIA A100 Tensor Core GPU datasheet, 40GB: 1,555 GB/s"),
    "NVIDIA A100 80GB PCIe": Memory(1.935e12, "NVIDIA A100 Tensor Core GPU datasheet, 80GB PCIe: 1,935 GB/s"),
    "NVIDIA B200": Memory(8.0e12, "NVIDIA DGX B200 datasheet: 64 TB/s over eight GPUs"),
    "NVIDIA L40S": Memory(0.864e12, "NVIDIA L40S datasheet: 864 GB/s"),
    "NVIDIA L4": Memory(0.3e12, "NVIDIA L4 datasheet: 300 GB/s"),
    "NVIDIA GeForce RTX 4090": Memory(1.008e12, "NVIDIA Ada GPU architecture paper: 1,008 GB/s"),
    "NVIDIA GeForce RTX 5090": Memory(1.792e12, "NVIDIA RTX Blackwell GPU architecture paper: 1,792 GB/s"),
}


def memory_peak(gpu: str) -> Memory | None:
    """The peak of the GPU with this name; None where the table has none."""
    fitting = [name for name in MEMORY if gpu == name or gpu.startswith(name + " ")]
    return MEMORY[max(fitting, key=len)] if fitting else None
