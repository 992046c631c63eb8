# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy, torch and whatever speaks DLPack, as memory that the library reads and writes."""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from ._errors import UsageError
from ._library import Handle, call

CPU_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
DLPACK_NAMES = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16",
                (1, 32): "u32", (1, 64): "u64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16",
                (5, 64): "c64", (5, 128): "c128", (6, 8): "bool"}
NUMPY_NAMES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32",
               "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
               "c64": "complex64", "c128": "complex128"}
FROM_NUMPY = {name: short for short, name in NUMPY_NAMES.items()} | {"bfloat16": "bf16"}


class View:
    """Dense row-major elements in host memory.

    owner: keeps the memory alive
    """

    __slots__ = ("address", "bytes", "dtype", "extents", "owner", "shape")

    def __init__(self, dtype, shape, address, size, owner):
        self.dtype, self.shape, self.address, self.bytes, self.owner = dtype, tuple(shape), address, size, owner
        self.extents = (c_int64 * len(self.shape))(*self.shape)

    def type(self):
        """As in messages: f32[2, 3]."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def is_torch(value):
    """Is this a tensor of torch? Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


@functools.cache
def torch_dtypes():
    """torch's element types by their names here."""
    torch = sys.modules["torch"]
    names = NUMPY_NAMES | {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    return {short: getattr(torch, name) for short, name in names.items() if hasattr(torch, name)}


_of_torch = {}


def name_of_torch(dtype):
    """The name of an element type of torch; None where there is none here."""
    if not _of_torch:
        _of_torch.update({value: short for short, value in torch_dtypes().items()})
    return _of_torch.get(dtype)


def view_of_torch(tensor, writable=False):
    """The memory of a tensor on the CPU; a dense copy where it is strided and need not be written."""
    if tensor.device.type != "cpu":
        raise UsageError(f"the tensor is on {tensor.device}; copy it to the CPU first")
    tensor = tensor.detach()
    if not writable:
        tensor = tensor.resolve_conj().resolve_neg().contiguous()
    elif not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        raise UsageError("an output array must be dense and row-major")
    dtype = name_of_torch(tensor.dtype)
    if dtype is None:
        raise UsageError(f"there is no element type {tensor.dtype}")
    return View(dtype, tensor.shape, tensor.data_ptr(), tensor.numel() * tensor.element_size(), tensor)


def is_numpy(value):
    """Is this an array of numpy? Does not import numpy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


_of_numpy = {}  # names of element types; numpy makes theirs anew at each call


def _name_of_numpy(dtype):
    if dtype not in _of_numpy:
        name = FROM_NUMPY.get(dtype.name)
        if name is None:
            raise UsageError(f"there is no element type {dtype}")
        _of_numpy[dtype] = name
    return _of_numpy[dtype]


def view_of_numpy(array, writable=False):
    """The memory of an array; a dense copy where it is strided or byte-swapped and need not be written."""
    import numpy as np  # noqa: PLC0415

    dtype = _name_of_numpy(array.dtype)
    if not array.dtype.isnative or not array.flags.c_contiguous:
        if writable:
            raise UsageError("an output array must be dense and row-major, in the byte order of the host")
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    if writable and not array.flags.writeable:
        raise UsageError("an output array must be writable")
    return View(dtype, array.shape, array.__array_interface__["data"][0], array.nbytes, array)


class _DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


def _is_dense(shape, strides):
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def view_of_dlpack(value):
    """The memory that an object lends through DLPack."""
    device = value.__dlpack_device__()
    if int(device[0]) not in CPU_DEVICES:
        raise UsageError(f"the array is on DLPack device {tuple(map(int, device))}; copy it to the CPU first")
    capsule = value.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    shape = tensor.shape[:tensor.ndim]
    dtype = DLPACK_NAMES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise UsageError(f"there is no element type of DLPack code {tensor.code}, {tensor.bits} bits")
    if tensor.strides and not _is_dense(shape, tensor.strides[:tensor.ndim]):
        import numpy as np  # noqa: PLC0415

        return view_of_numpy(np.ascontiguousarray(np.from_dlpack(value)))
    size = tensor.bits // 8
    for extent in shape:
        size *= extent
    # The unused capsule frees what is lent when it is collected.
    return View(dtype, shape, (tensor.data or 0) + tensor.byte_offset, size, (capsule, value))


def view_of(value, dtype):
    """The elements of an input.  dtype: what Python numbers and lists become"""
    if is_torch(value):
        return view_of_torch(value)
    if is_numpy(value):
        return view_of_numpy(value)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        return view_of_dlpack(value)
    import numpy as np  # noqa: PLC0415

    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return view_of_numpy(np.asarray(value))
    if dtype not in NUMPY_NAMES:
        raise UsageError(f"an input of {dtype} is given as an array, not as {type(value).__name__}")
    return view_of_numpy(np.asarray(value, NUMPY_NAMES[dtype]))


def view_for_output(value):
    """The memory of an array that the library may write."""
    if is_torch(value):
        return view_of_torch(value, writable=True)
    if is_numpy(value):
        return view_of_numpy(value, writable=True)
    raise UsageError(f"an output array is one of numpy or torch, not {type(value).__name__}")


def new_array(dtype, shape, as_torch):
    """A new array and its view.  as_torch: a tensor of torch, which has more element types than numpy"""
    if as_torch:
        made = sys.modules["torch"].empty(shape, dtype=torch_dtypes()[dtype])
        return made, view_of_torch(made, writable=True)
    import numpy as np  # noqa: PLC0415

    if dtype == "bf16":
        try:
            from ml_dtypes import bfloat16  # noqa: PLC0415
        except ImportError:
            raise UsageError("numpy has no bf16: install ml_dtypes, or give an input or the output as a tensor of "
                             "torch") from None
        made = np.empty(shape, bfloat16)
    elif dtype in NUMPY_NAMES:
        made = np.empty(shape, NUMPY_NAMES[dtype])
    else:
        raise UsageError(f"numpy has no {dtype}")
    return made, view_of_numpy(made, writable=True)


def named_tensors(views):
    """Tensors of the library made of views by name, and the array of their handles."""
    made = [Handle(call("tensor_create"), name.encode(), view.dtype.encode(), view.extents, len(view.shape),
                   view.address, view.bytes, free=call("tensor_free")) for name, view in views.items()]
    return made, (c_void_p * len(made))(*(tensor.pointer for tensor in made))


def shape_of(tensor):
    """The extents of a tensor of the library."""
    return tuple(call("tensor_shape")(tensor)[:call("tensor_rank")(tensor)])
