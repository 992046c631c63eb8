#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C interface as another language uses it: ctypes_test.py LIBFORGE MODEL.bin HEADER [unittest options]

Needs Python's standard library alone. MODEL is examples/fashion's: f32 [N, 1, 28, 28] to f32 [N, 10], with metadata.
"""

import array
import ctypes
import json
import pathlib
import sys
import threading
import unittest
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_void_p

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import forge_ctypes  # noqa: E402
from forge_ctypes import DEVICE, FILE, USAGE, ForgeError  # noqa: E402

LIBRARY, MODEL, HEADER = sys.argv[1:4]
PIXELS = 28 * 28

forge = forge_ctypes.open_library(LIBRARY, HEADER)


def check(error):
    forge_ctypes.check(forge, error)


class Object:
    """Holds a handle and frees it once."""

    def __init__(self, free):
        self.handle, self.free = c_void_p(), free

    def __del__(self):
        self.free(self.handle)


class Model(Object):
    def __init__(self, path):
        super().__init__(forge.forge_model_free)
        check(forge.forge_model_load(str(path).encode(), byref(self.handle)))

    def metadata(self, key):
        value = forge.forge_model_metadata(self.handle, key.encode())
        return None if value is None else value.decode()


class ModelInMemory(Model):
    def __init__(self, path):
        Object.__init__(self, forge.forge_model_free)
        with open(path, "rb") as file:
            data = file.read()
        check(forge.forge_model_load_memory(data, c_size_t(len(data)), byref(self.handle)))


class Options(Object):
    def __init__(self, **dims):
        super().__init__(forge.forge_options_free)
        check(forge.forge_options_create(byref(self.handle)))
        for name, extent in dims.items():
            check(forge.forge_options_set_dim(self.handle, name.encode(), c_int64(extent)))


class Input(ctypes.Structure):
    _fields_ = [("shape", POINTER(c_int64)), ("rank", c_size_t), ("data", c_void_p), ("bytes", c_size_t)]


class Output(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class Tensor(Object):
    def __init__(self, name, dtype, shape, data):
        super().__init__(forge.forge_tensor_free)
        extents = (c_int64 * len(shape))(*shape)
        check(forge.forge_tensor_create(name.encode(), dtype.encode(), extents, c_size_t(len(shape)), data,
                                        c_size_t(len(data)), byref(self.handle)))


class Session(Object):
    def __init__(self, model, device, options=None):
        super().__init__(forge.forge_session_free)
        if options is None:
            check(forge.forge_session_create(model.handle, device.encode(), byref(self.handle)))
        else:
            check(forge.forge_session_create_with(model.handle, device.encode(), options.handle,
                                                  byref(self.handle)))

    def bind(self, **extents):
        names = (c_char_p * len(extents))(*[name.encode() for name in extents])
        numbers = (c_int64 * len(extents))(*extents.values())
        check(forge.forge_session_bind(self.handle, names, numbers, c_size_t(len(extents))))

    def bound_shape(self):
        rank = forge.forge_session_output_rank(self.handle, c_size_t(0))
        return forge.forge_session_bound_output_shape(self.handle, c_size_t(0))[:rank]

    def run_into(self, shape, data, result):
        """Runs the only input into the only output; both are arrays of the array module."""
        extents = (c_int64 * len(shape))(*shape)
        (address, elements), (to, places) = data.buffer_info(), result.buffer_info()
        given = Input(extents, len(shape), address, elements * data.itemsize)
        made = Output(to, places * result.itemsize)
        check(forge.forge_session_run_into(self.handle, byref(given), c_size_t(1), byref(made), c_size_t(1)))

    def run(self, *inputs):
        """The outputs: (name, dtype, shape, bytes) of each."""
        given = (c_void_p * len(inputs))(*[t.handle for t in inputs])
        count = forge.forge_session_output_count(self.handle)
        made = (c_void_p * count)()
        check(forge.forge_session_run(self.handle, given, c_size_t(len(inputs)), made, c_size_t(count)))
        results = []
        for handle in map(c_void_p, made):
            shape = forge.forge_tensor_shape(handle)[:forge.forge_tensor_rank(handle)]
            data = ctypes.string_at(forge.forge_tensor_data(handle), forge.forge_tensor_bytes(handle))
            results.append((forge.forge_tensor_name(handle).decode(), forge.forge_tensor_dtype(handle).decode(), shape,
                            data))
            forge.forge_tensor_free(handle)
        return results


def pixels(count):
    """Chessboards, each of another phase."""
    return array.array("f", [1.0 if (i // 28 + i % 28 + n) & 4 else -1.0
                             for n in range(count) for i in range(PIXELS)])


def pictures(count):
    return Tensor("image", "f32", [count, 1, 28, 28], pixels(count).tobytes())


def probabilities(session, count):
    (name, dtype, shape, data), = session.run(pictures(count))
    assert (name, dtype, list(shape)) == ("probabilities", "f32", [count, 10]), (name, dtype, shape)
    return array.array("f", data)


def devices():
    """The devices to try: those of every backend that can be opened."""
    found = []
    for device in ("reference", "cpu", "vulkan", "cuda"):
        try:
            Session(Model(MODEL), device)
            found.append(device)
        except ForgeError as error:
            if error.code != DEVICE:
                raise
            print(f"{device}: {error}", file=sys.stderr)
    return found


class ForgeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model(MODEL)
        cls.devices = devices()

    def assert_close(self, first, second):
        self.assertEqual(len(first), len(second))
        for a, b in zip(first, second):
            self.assertAlmostEqual(a, b, places=4)

    def test_versions(self):
        self.assertGreaterEqual(forge.forge_interface(), 2)
        self.assertRegex(forge.forge_version().decode(), r"^\d+\.\d+\.\d+$")

    def test_model_tells_its_metadata(self):
        self.assertEqual(len(json.loads(self.model.metadata("labels"))), 10)
        self.assertIsNone(self.model.metadata("no such key"))
        self.assertEqual(forge.forge_model_metadata_key(self.model.handle, c_size_t(0)), b"labels")

    def test_session_tells_its_ports(self):
        session, at = Session(self.model, "reference"), c_size_t(0)
        self.assertEqual(forge.forge_session_input_count(session.handle), 1)
        self.assertEqual(forge.forge_session_input_name(session.handle, at), b"image")
        self.assertEqual(forge.forge_session_input_dtype(session.handle, at), b"f32")
        rank = forge.forge_session_input_rank(session.handle, at)
        self.assertEqual(forge.forge_session_input_shape(session.handle, at)[:rank], [-1, 1, 28, 28])
        self.assertEqual(forge.forge_session_input_symbol(session.handle, at, c_size_t(0)), b"N")
        self.assertIsNone(forge.forge_session_input_symbol(session.handle, at, c_size_t(1)))
        self.assertEqual(forge.forge_session_output_name(session.handle, at), b"probabilities")

    def test_devices_agree(self):
        expected = probabilities(Session(self.model, "reference"), 3)
        for n in range(3):
            self.assertAlmostEqual(sum(expected[10 * n:10 * n + 10]), 1, places=4)
        for device in self.devices:
            with self.subTest(device=device):
                session = Session(self.model, device)
                session.bind(N=3)
                self.assert_close(probabilities(session, 3), expected)

    def test_runs_on_callers_memory(self):
        expected = probabilities(Session(self.model, "reference"), 2)
        for device in self.devices:
            with self.subTest(device=device):
                session = Session(self.model, device, Options(N=2))
                session.bind()
                self.assertEqual(session.bound_shape(), [2, 10])
                self.assertEqual(forge.forge_session_bound_output_bytes(session.handle, c_size_t(0)), 80)
                result = array.array("f", bytes(80))
                for _ in range(3):
                    session.run_into([2, 1, 28, 28], pixels(2), result)
                    self.assert_close(result, expected)
                with self.assertRaises(ForgeError) as caught:
                    session.run_into([2, 1, 28, 28], pixels(2), array.array("f", bytes(76)))
                self.assertEqual(caught.exception.code, USAGE)

    def test_loads_from_memory(self):
        expected = probabilities(Session(self.model, "reference"), 1)
        self.assert_close(probabilities(Session(ModelInMemory(MODEL), "reference"), 1), expected)

    def test_lists_devices(self):
        devices = Object(forge.forge_devices_free)
        check(forge.forge_devices_list(byref(devices.handle)))
        count = forge.forge_devices_count(devices.handle)
        ids = [forge.forge_devices_id(devices.handle, c_size_t(i)).decode() for i in range(count)]
        self.assertIn("reference:0", ids)
        self.assertIsNone(forge.forge_devices_problem(devices.handle, c_size_t(ids.index("reference:0"))))

    def test_threads_share_a_session(self):
        expected = {count: probabilities(Session(self.model, "reference"), count) for count in (1, 2, 3)}
        for device in self.devices:
            session, results = Session(self.model, device), []

            def work(session=session, results=results):
                for count in (1, 2, 3, 1):
                    results.append((count, probabilities(session, count)))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with self.subTest(device=device):
                self.assertEqual(len(results), 12)
                for count, result in results:
                    self.assert_close(result, expected[count])

    def test_threads_have_sessions_of_their_own(self):
        expected = {count: probabilities(Session(self.model, "reference"), count) for count in (1, 2, 3)}
        for device in self.devices:
            results, failures = [], []

            def work(device=device, results=results, failures=failures):
                try:
                    session = Session(self.model, device)
                    for count in (1, 2, 1, 3):
                        results.append((count, probabilities(session, count)))
                except (ForgeError, AssertionError) as error:
                    failures.append(error)

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with self.subTest(device=device):
                self.assertEqual(failures, [])
                self.assertEqual(len(results), 12)
                for count, result in results:
                    self.assert_close(result, expected[count])

    def test_errors_say_what_is_wrong(self):
        session = Session(self.model, "reference")
        wrong = Tensor("image", "i64", [1], bytes(8))
        for code, says, work in (
            (FILE, "/nowhere/model.bin", lambda: Model("/nowhere/model.bin")),
            (FILE, HEADER, lambda: Model(HEADER)),
            (USAGE, "metal", lambda: Session(self.model, "metal")),
            (DEVICE, "9", lambda: Session(self.model, "reference:9")),
            (USAGE, "image", session.run),
            (USAGE, "i64", lambda: session.run(wrong)),
            (USAGE, "M", lambda: session.bind(M=1)),
            (USAGE, "N", lambda: session.bind()),
            (USAGE, "f33", lambda: Tensor("x", "f33", [1], bytes(4))),
            (USAGE, "", lambda: Tensor("x", "f32", [2], bytes(4))),
        ):
            with self.assertRaises(ForgeError) as caught:
                work()
            self.assertEqual(caught.exception.code, code, caught.exception)
            self.assertIn(says, str(caught.exception))
        probabilities(session, 1)  # none of it did any harm


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
