"""Arrays as cuda.tile's launch code reads them (DLPack), at addresses where there is no memory."""

import ctypes
from typing import Any, ClassVar

_CUDA = 2
#: torch dtype name -> DLPack type code and bits.
_TYPES = {
    "float64": (2, 64),
    "float32": (2, 32),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "int64": (0, 64),
    "int32": (0, 32),
    "int16": (0, 16),
    "int8": (0, 8),
    "uint64": (1, 64),
    "uint32": (1, 32),
    "uint16": (1, 16),
    "uint8": (1, 8),
    "bool": (6, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
    "float8_e8m0fnu": (14, 8),
}


class _Tensor(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@_Deleter
def _keep(_managed: int) -> None:
    """The owner is the DeviceArray; nothing is freed when the consumer is done."""


class DeviceArray:
    """An array in device memory, by its description alone."""

    def __init__(self, *, address: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        code, bits = _TYPES[dtype]
        rank = len(shape)
        self._extents = (ctypes.c_int64 * max(rank, 1))(*shape)
        self._steps = (ctypes.c_int64 * max(rank, 1))(*strides)
        as_pointer = ctypes.POINTER(ctypes.c_int64)
        self._managed = _Managed(
            _Tensor(
                address, _CUDA, 0, rank, code, bits, 1,
                ctypes.cast(self._extents, as_pointer), ctypes.cast(self._steps, as_pointer), 0,
            ),
            None,
            ctypes.cast(_keep, ctypes.c_void_p),
        )  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, 0

    def __dlpack__(self, **_options: Any) -> Any:
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return capsule(ctypes.addressof(self._managed), b"dltensor", None)
