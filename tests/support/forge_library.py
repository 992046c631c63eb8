# SPDX-License-Identifier: Apache-2.0
"""The C interface for Python programs of the tests, with numpy arrays; see runtime/forge.h."""

import ctypes
from ctypes import byref, c_int64, c_size_t, c_void_p

import forge_ctypes
import numpy as np
from forge_ctypes import ForgeError

__all__ = ["Forge", "ForgeError"]

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
          "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class Forge:
    """The library, loaded once."""

    def __init__(self, library, header):
        self.library = forge_ctypes.open_library(library, header)

    def __getattr__(self, name):
        return getattr(self.library, f"forge_{name}")

    def check(self, error):
        """Raises what a forge_error says, and frees it."""
        forge_ctypes.check(self.library, error)

    def load(self, path):
        """A model, freed by model_free."""
        model = c_void_p()
        self.check(self.model_load(str(path).encode(), byref(model)))
        return model

    def run(self, model, device, feeds):
        """The outputs of a session of its own, in the model's order."""
        session = c_void_p()
        self.check(self.session_create(model, device.encode(), byref(session)))
        try:
            return self._run_session(session, feeds)
        finally:
            self.session_free(session)

    def _run_session(self, session, feeds):
        tensors = [self._tensor(name, array) for name, array in feeds.items()]
        try:
            given = (c_void_p * len(tensors))(*tensors)
            count = self.session_output_count(session)
            made = (c_void_p * count)()
            self.check(self.session_run(session, given, c_size_t(len(tensors)), made, c_size_t(count)))
            return [self._take(c_void_p(handle)) for handle in made]
        finally:
            for tensor in tensors:
                self.tensor_free(tensor)

    def _tensor(self, name, array):
        array = np.ascontiguousarray(array).reshape(array.shape)
        extents, data = (c_int64 * array.ndim)(*array.shape), array.tobytes()
        tensor = c_void_p()
        self.check(self.tensor_create(name.encode(), NAMES[array.dtype].encode(), extents, c_size_t(array.ndim), data,
                                      c_size_t(len(data)), byref(tensor)))
        return tensor

    def _take(self, tensor):
        shape = self.tensor_shape(tensor)[:self.tensor_rank(tensor)]
        dtype = DTYPES[self.tensor_dtype(tensor).decode()]
        size = self.tensor_bytes(tensor)
        data = ctypes.string_at(self.tensor_data(tensor), size) if size else b""
        self.tensor_free(tensor)
        return np.frombuffer(data, dtype).reshape(shape)
