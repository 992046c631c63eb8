# SPDX-License-Identifier: Apache-2.0
"""libforge through ctypes: the functions of runtime/forge.h, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

from ._errors import OF_CODE, Error

INTERFACE = 7  # the version of the C interface that this package needs
RELEASE = ctypes.CFUNCTYPE(None, c_void_p)
PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_size_t, c_size_t)


class Input(Structure):
    _fields_ = [("shape", POINTER(c_int64)), ("rank", c_size_t), ("data", c_void_p), ("bytes", c_size_t)]


class Output(Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class Variable(Structure):
    _fields_ = [("name", c_char_p), ("role", c_char_p), ("type", c_char_p), ("data", c_void_p), ("bytes", c_size_t),
                ("release", RELEASE), ("context", c_void_p)]


class Grades(Structure):
    _fields_ = [("loss", c_double), ("correct", c_double), ("gradient_norm", c_double)]


class Node(Structure):
    _fields_ = [("op", c_char_p), ("operands", POINTER(c_int64)), ("operand_count", c_size_t),
                ("attributes", c_char_p), ("source", c_char_p), ("source_kind", c_char_p)]


class Gradients(Structure):
    _fields_ = [("of", POINTER(c_int64)), ("seeds", POINTER(c_int64)), ("of_count", c_size_t),
                ("with_", POINTER(c_int64)), ("with_count", c_size_t)]


ERROR, HANDLE = c_void_p, POINTER(c_void_p)
# name: (result, *parameters); tests/python compares the names with the header.
FUNCTIONS = {
    "interface": (c_int,),
    "version": (c_char_p,),
    "error_code": (c_int, c_void_p),
    "error_message": (c_char_p, c_void_p),
    "error_free": (None, c_void_p),
    "model_load": (ERROR, c_char_p, HANDLE),
    "model_load_memory": (ERROR, c_char_p, c_size_t, HANDLE),
    "model_metadata": (c_char_p, c_void_p, c_char_p),
    "model_metadata_key": (c_char_p, c_void_p, c_size_t),
    "model_save": (ERROR, c_void_p, c_char_p),
    "model_free": (None, c_void_p),
    "ops_json": (c_char_p,),
    "graph_create": (ERROR, HANDLE),
    "graph_free": (None, c_void_p),
    "graph_symbol": (ERROR, c_void_p, c_char_p, c_int64, c_int64, c_int64),
    "graph_input": (ERROR, c_void_p, c_char_p, c_char_p, POINTER(c_int64)),
    "graph_variable": (ERROR, c_void_p, POINTER(Variable), POINTER(c_int64)),
    "graph_node": (ERROR, c_void_p, POINTER(Node), POINTER(c_int64), c_size_t, POINTER(c_size_t)),
    "graph_gradients": (ERROR, c_void_p, POINTER(Gradients), POINTER(c_int64)),
    "graph_body": (ERROR, c_void_p, c_char_p, HANDLE),
    "graph_name": (ERROR, c_void_p, c_int64, c_char_p),
    "graph_type": (c_char_p, c_void_p, c_int64),
    "graph_output": (ERROR, c_void_p, c_char_p, c_int64),
    "graph_store": (ERROR, c_void_p, c_int64, c_int64),
    "graph_metadata": (ERROR, c_void_p, c_char_p, c_char_p),
    "graph_finish": (ERROR, c_void_p, HANDLE),
    "tensor_create": (ERROR, c_char_p, c_char_p, POINTER(c_int64), c_size_t, c_void_p, c_size_t, HANDLE),
    "tensor_name": (c_char_p, c_void_p),
    "tensor_dtype": (c_char_p, c_void_p),
    "tensor_rank": (c_size_t, c_void_p),
    "tensor_shape": (POINTER(c_int64), c_void_p),
    "tensor_data": (c_void_p, c_void_p),
    "tensor_free": (None, c_void_p),
    "devices_list": (ERROR, HANDLE),
    "devices_count": (c_size_t, c_void_p),
    "devices_id": (c_char_p, c_void_p, c_size_t),
    "devices_name": (c_char_p, c_void_p, c_size_t),
    "devices_problem": (c_char_p, c_void_p, c_size_t),
    "devices_free": (None, c_void_p),
    "options_create": (ERROR, HANDLE),
    "options_set_function": (ERROR, c_void_p, c_char_p),
    "options_add_output": (ERROR, c_void_p, c_char_p),
    "options_set_dim": (ERROR, c_void_p, c_char_p, c_int64),
    "options_set_memory_limit": (ERROR, c_void_p, c_uint64),
    "options_set_precision": (ERROR, c_void_p, c_char_p),
    "options_set_threads": (ERROR, c_void_p, c_int),
    "options_set_progress": (ERROR, c_void_p, PROGRESS, c_void_p),
    "options_set_autotune": (ERROR, c_void_p, c_double),
    "options_set_fusion": (ERROR, c_void_p, c_int),
    "options_free": (None, c_void_p),
    "session_create_with": (ERROR, c_void_p, c_char_p, c_void_p, HANDLE),
    "session_device_name": (c_char_p, c_void_p),
    "session_input_count": (c_size_t, c_void_p),
    "session_output_count": (c_size_t, c_void_p),
    "session_input_name": (c_char_p, c_void_p, c_size_t),
    "session_output_name": (c_char_p, c_void_p, c_size_t),
    "session_input_dtype": (c_char_p, c_void_p, c_size_t),
    "session_output_dtype": (c_char_p, c_void_p, c_size_t),
    "session_input_rank": (c_int, c_void_p, c_size_t),
    "session_output_rank": (c_int, c_void_p, c_size_t),
    "session_input_shape": (POINTER(c_int64), c_void_p, c_size_t),
    "session_output_shape": (POINTER(c_int64), c_void_p, c_size_t),
    "session_input_symbol": (c_char_p, c_void_p, c_size_t, c_size_t),
    "session_output_symbol": (c_char_p, c_void_p, c_size_t, c_size_t),
    "session_bind": (ERROR, c_void_p, POINTER(c_char_p), POINTER(c_int64), c_size_t),
    "session_set_step_value": (ERROR, c_void_p, c_char_p, c_int64),
    "session_bind_inputs": (ERROR, c_void_p, POINTER(Input), c_size_t),
    "session_bound_output_shape": (POINTER(c_int64), c_void_p, c_size_t),
    "session_runs_in_parts": (c_int, c_void_p),
    "session_run": (ERROR, c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t),
    "session_run_into": (ERROR, c_void_p, POINTER(Input), c_size_t, POINTER(Output), c_size_t),
    "session_cancel": (None, c_void_p),
    "session_free": (None, c_void_p),
    "training_create": (ERROR, c_void_p, c_char_p, c_char_p, HANDLE),
    "training_step": (ERROR, c_void_p, POINTER(c_void_p), c_size_t, c_double, POINTER(Grades)),
    "training_evaluate": (ERROR, c_void_p, POINTER(c_void_p), c_size_t, POINTER(Grades)),
    "training_variable_count": (c_size_t, c_void_p),
    "training_read": (ERROR, c_void_p, POINTER(c_void_p), c_size_t),
    "training_write": (ERROR, c_void_p, POINTER(c_void_p), c_size_t),
    "training_model": (ERROR, c_void_p, HANDLE),
    "training_cancel": (None, c_void_p),
    "training_free": (None, c_void_p),
}


def _path():
    """FORGE_LIBRARY, or the library inside this package."""
    given = os.environ.get("FORGE_LIBRARY")
    if given:
        return pathlib.Path(given)
    return pathlib.Path(__file__).parent / "lib" / "libforge.so"


def _open():
    path = _path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"Forge's library cannot be loaded: {error} (FORGE_LIBRARY gives another path)") from error
    library.forge_interface.restype = c_int
    if library.forge_interface() < INTERFACE:
        raise ImportError(f"{path} provides version {library.forge_interface()} of the C interface; "
                          f"this package needs {INTERFACE}")
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(library, f"forge_{name}")
        function.restype, function.argtypes = result, parameters
    return library


LIBRARY = _open()


def call(name):
    """The function forge_NAME."""
    return getattr(LIBRARY, f"forge_{name}")


def check(error):
    """Raises what a forge_error says, and frees it."""
    if error is None:
        return
    message = LIBRARY.forge_error_message(error).decode(errors="replace")
    kind = OF_CODE.get(LIBRARY.forge_error_code(error), Error)
    LIBRARY.forge_error_free(error)
    raise kind(message)


def version():
    """The version of the library."""
    return LIBRARY.forge_version().decode()


class Handle:
    """An object of the C interface, freed with this one."""

    def __init__(self, create, *arguments, free):
        self._free = None
        handle = c_void_p()
        check(create(*arguments, ctypes.byref(handle)))
        self.pointer, self._free = handle.value, free

    def close(self):
        """Frees the object; may be repeated."""
        free, self._free = self._free, None
        if free is not None:
            free(self.pointer)
            self.pointer = None

    def __del__(self):
        self.close()
