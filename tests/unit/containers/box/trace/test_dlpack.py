"""Arrays without memory, read back as their consumer reads them."""

import ctypes

from containers.box.trace.dlpack import DeviceArray, _Managed


def test_a_capsule_describes_the_array_at_its_address() -> None:
    array = DeviceArray(address=1 << 61, dtype="bfloat16", shape=(3, 5), strides=(8, 1))
    capsule = array.__dlpack__(stream=-1)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = _Managed.from_address(pointer(capsule, b"dltensor")).tensor
    assert (tensor.data, tensor.ndim, tensor.type_code, tensor.type_bits) == (1 << 61, 2, 4, 16)
    assert [tensor.shape[i] for i in range(2)] == [3, 5]
    assert [tensor.strides[i] for i in range(2)] == [8, 1]
    assert array.__dlpack_device__() == (2, 0)
