# SPDX-License-Identifier: Apache-2.0
"""Loads libforge with the standard library alone; the functions are those of its header, runtime/forge.h."""

import ctypes
import re
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p

USAGE, FILE, DEVICE, REFUSED = 2, 3, 4, 5

RESULT_TYPES = {"int": c_int, "forge_code": c_int, "size_t": c_size_t, "void": None, "const char*": c_char_p,
                "const int64_t*": POINTER(c_int64), "const void*": c_void_p, "forge_error*": c_void_p}


class ForgeError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def open_library(library, header):
    """The library, told what each function of the header returns.  errors: AttributeError (one is not exported)"""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    forge = ctypes.CDLL(str(library))
    names = re.findall(r"^([a-z][\w ]*\*?)\s*(forge_\w+)\(", text, flags=re.M)
    assert len(names) > 30, names
    for result, name in names:
        getattr(forge, name).restype = RESULT_TYPES[result.strip()]
    return forge


def check(forge, error):
    """Raises what a forge_error says, and frees it."""
    if error:
        error = c_void_p(error)
        failure = ForgeError(forge.forge_error_code(error), forge.forge_error_message(error).decode(errors="replace"))
        forge.forge_error_free(error)
        raise failure
