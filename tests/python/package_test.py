#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package forge: package_test.py LIBFORGE [unittest options]"""

import ast
import io
import os
import pathlib
import re
import subprocess
import sys
import unittest

import in_oracle  # isort: skip

LIBRARY = sys.argv.pop(1)
os.environ["FORGE_LIBRARY"] = LIBRARY

import numpy as np  # noqa: E402

import forge  # noqa: E402
from forge import _library  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent / "data"
DEVICES = ("reference", "cpu", "vulkan")


def adding():
    """A model: y = x + bias, of f32[n, 3]"""
    graph = forge.Graph()
    graph.symbol("n", 1)
    x = graph.input("x", "f32", ["n", 3])
    bias = graph.variable("bias", forge._arrays.view_of_numpy(np.array([10, 20, 30], "f")))
    total, = graph.node("add", x, bias)
    graph.name(total, "total")
    graph.output("y", total)
    return graph.finish()


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.model = adding()
        self.session = self.model.session(device="reference")
        self.x = np.arange(6, dtype="f").reshape(2, 3)
        self.y = self.x + np.array([10, 20, 30], "f")

    def test_runs_by_position_and_by_name(self):
        for outputs in (self.session.run(self.x), self.session.run(x=self.x), self.session.run({"x": self.x})):
            self.assertEqual(list(outputs), ["y"])
            np.testing.assert_array_equal(outputs["y"], self.y)

    def test_tells_what_the_model_takes(self):
        self.assertEqual([str(p) for p in self.session.inputs + self.session.outputs], ["x: f32[n, 3]", "y: f32[n, 3]"])
        self.assertEqual(self.session.device, "reference evaluators")

    def test_runs_other_shapes(self):
        for n in (1, 4, 2):
            np.testing.assert_array_equal(self.session.run(np.ones((n, 3), "f"))["y"], [[11, 21, 31]] * n)

    def test_takes_strided_arrays_lists_and_what_speaks_dlpack(self):
        class Lent:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        wide = np.zeros((2, 6), "f")
        wide[:, ::2] = self.x
        for x in (wide[:, ::2], self.x[::-1][::-1], self.x.tolist(), Lent(self.x), Lent(wide[:, ::2]),
                  self.x.astype(">f4")):
            np.testing.assert_array_equal(self.session.run(x)["y"], self.y)

    def test_writes_into_given_arrays(self):
        y = np.empty((2, 3), "f")
        self.assertIs(self.session.run(self.x, out={"y": y})["y"], y)
        np.testing.assert_array_equal(y, self.y)
        for wrong in (np.empty((2, 4), "f"), np.empty((2, 3)), np.empty((3, 2), "f").T):
            with self.assertRaises(forge.UsageError):
                self.session.run(self.x, out={"y": wrong})
        y.flags.writeable = False
        with self.assertRaises(forge.UsageError):
            self.session.run(self.x, out={"y": y})

    def test_outputs_go_on_through_dlpack(self):
        y = self.session.run(self.x)["y"]
        again = np.from_dlpack(y)
        self.assertEqual(again.ctypes.data, y.ctypes.data)

    def test_errors_say_what_was_expected(self):
        for says, kind, work in (
            ("x: f32[n, 3]", forge.UsageError, self.session.run),
            ("f64[2, 3]", forge.UsageError, lambda: self.session.run(self.x.astype("d"))),
            ("axis 1", forge.UsageError, lambda: self.session.run(np.ones((2, 4), "f"))),
            ("'w'", forge.UsageError, lambda: self.session.run(w=self.x)),
            ("twice", forge.UsageError, lambda: self.session.run(self.x, x=self.x)),
            ("2 are given", forge.UsageError, lambda: self.session.run(self.x, self.x)),
            ("'z'", forge.UsageError, lambda: self.session.run(self.x, out={"z": self.x})),
            ("datetime64", forge.UsageError, lambda: self.session.run(np.zeros((2, 3), "M8[s]"))),
            ("metal", forge.UsageError, lambda: self.model.session("metal")),
            ("'9'", forge.DeviceError, lambda: self.model.session("reference:9")),
            ("nowhere", forge.FileError, lambda: forge.load("/nowhere.bin")),
            ("neither", forge.FileError, lambda: forge.load(b"nothing of that kind")),
            ("path or bytes", forge.UsageError, lambda: forge.load(7)),
            ("memory limit", forge.RefusedError, lambda: self.model.session("cpu", memory_limit=1).run(self.x)),
            ("no dimension 'm'", forge.UsageError, lambda: self.session.bind(m=1)),
        ):
            with self.subTest(says), self.assertRaises(kind) as caught:
                work()
            self.assertIn(says, str(caught.exception))
            self.assertIsInstance(caught.exception, forge.Error)
        np.testing.assert_array_equal(self.session.run(self.x)["y"], self.y)

    def test_each_op_is_a_step_without_fusion(self):
        graph = forge.Graph()
        root, = graph.node("sqrt", *graph.node("exp", graph.input("x", "f32", [3])))
        graph.output("y", root)
        model = graph.finish()
        for fuse, kernels in ((True, 1), (False, 2)):
            totals = set()
            session = model.session("cpu", fuse=fuse, progress=lambda what, done, total: totals.add(total))
            np.testing.assert_allclose(session.run(np.zeros(3, "f"))["y"], np.ones(3))
            self.assertEqual(totals, {kernels})

    def test_a_closed_session_says_so(self):
        with self.session:
            pass
        with self.assertRaisesRegex(forge.UsageError, "closed"):
            self.session.run(self.x)

    def test_a_model_may_go_before_its_session(self):
        del self.model
        np.testing.assert_array_equal(self.session.run(self.x)["y"], self.y)

    def test_binds_ahead_and_returns_inner_values(self):
        session = self.model.session("reference", outputs=["total"], dims={"n": 2})
        session.bind()
        np.testing.assert_array_equal(session.run(self.x)["total"], self.y)

    def test_computes_products_in_half_the_bits(self):
        model = forge.load(DATA / "encoder.bin")
        x = np.random.default_rng(1).standard_normal((2, 5, 16), "f")
        exact = model.session(device="reference").run(x)["output"]
        for precision, bound in (("f16", 1e-2), ("bf16", 1e-1)):
            y = model.session(device="cpu", precision=precision).run(x)["output"]
            self.assertEqual(y.dtype, np.float32)
            self.assertGreater(np.abs(y - exact).max(), 1e-5)
            np.testing.assert_allclose(y, exact, atol=bound)
        with self.assertRaisesRegex(forge.UsageError, "precision 'f8' is not exact, f16, bf16 or fast"):
            model.session(device="reference", precision="f8")

    def test_saves_and_loads(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "adding.bin"
            self.model.save(path)
            for model in (forge.load(path), forge.load(path.read_bytes())):
                np.testing.assert_array_equal(model.session("cpu").run(self.x)["y"], self.y)

    def test_runs_models_whose_shapes_depend_on_data(self):
        from onnx import TensorProto, helper

        x, at = (helper.make_tensor_value_info(name, kind, None if name == "at" else ["n"])
                 for name, kind in (("x", TensorProto.FLOAT), ("at", TensorProto.INT64)))
        graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["at"])], "some", [x], [at])
        file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        for device in DEVICES:
            session = forge.load(file.SerializeToString()).session(device)
            session.bind(n=3)
            for x in (np.array([0, 2, 1], "f"), np.zeros(4, "f"), np.ones(2, "f")):
                np.testing.assert_array_equal(session.run(x)["at"], x.nonzero())
            given = np.empty((1, 2), np.int64)
            self.assertIs(session.run(np.ones(2, "f"), out={"at": given})["at"], given)
            with self.assertRaisesRegex(forge.UsageError, r"i64\[1, 1\]"):
                session.run(np.ones(1, "f"), out={"at": given})

    def test_threads_share_a_session(self):
        import threading

        failures = []

        def work(n):
            try:
                for _ in range(20):
                    x = np.full((n, 3), n, "f")
                    np.testing.assert_array_equal(self.session.run(x)["y"], x + np.array([10, 20, 30], "f"))
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_ctrl_c_ends_a_run(self):
        script = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import forge
graph = forge.Graph()
x = graph.input("x", "f32", [600, 600])
y = x
for _ in range(400):
    y, = graph.node("matmul", y, x)
graph.output("y", y)
session = graph.finish().session("reference")
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    session.run(np.zeros((600, 600), "f"))
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - began < 30)
"""
        done = subprocess.run([sys.executable, "-c", script, str(in_oracle.ROOT / "python")], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.stdout.strip(), "interrupted True", done.stderr)


def line():
    """A model with parameters: y = x w + b, of f32[n, 3]"""
    graph = forge.Graph()
    graph.symbol("n", 1)
    x = graph.input("x", "f32", ["n", 3])
    w = graph.variable("w", forge._arrays.view_of_numpy(np.zeros((3, 1), "f")))
    b = graph.variable("b", forge._arrays.view_of_numpy(np.zeros(1, "f")))
    product, = graph.node("matmul", x, w)
    total, = graph.node("add", product, b)
    graph.output("y", total)
    return graph.finish()


def counted(steps):
    """A model: four times the number of positive elements of x, and the sum after each step, of a loop whose body makes
    a tensor of as many elements.

    steps: how many the loop says that it takes
    """
    graph = forge.Graph()
    graph.symbol("found", 0, 6)

    def filled(graph, value, dtype, shape=()):
        return graph.node("fill", value=value, dtype=dtype, shape=list(shape))[0]

    x = graph.input("x", "f32", [6])
    positive, = graph.node("greater", x, filled(graph, 0.0, "f32"))
    count, = graph.node("reduce", *graph.node("cast", positive, to="i64"), kind="sum", axes=[0], keep_dims=False)
    graph.node("bind_symbol", count, symbol="found")
    body = graph.body("step")
    for name, dtype in (("step", "i64"), ("goes_on", "bool")):
        body.input(name, dtype, [])
    total = body.input("total", "f32", [])
    ones, = body.node("reduce", filled(body, 1.0, "f32", ["found"]), kind="sum", axes=[0], keep_dims=False)
    more, = body.node("add", total, ones)
    body.output("goes_on", filled(body, True, "bool"))
    body.output("total", more)
    body.output("row", more)
    results = graph.node("loop", filled(graph, 4, "i64"), None, filled(graph, 0.0, "f32"), body="@step", carried=1,
                         rows=steps)
    for name, result in zip(("total", "totals"), results):
        graph.output(name, result)
    return graph.finish()


class GraphTest(unittest.TestCase):
    def test_bodies_read_symbols_that_a_run_binds(self):
        for device in DEVICES:
            session = counted(steps=4).session(device)
            for x in (np.array([1, -1, 2, -3, 4, 5], "f"), np.full(6, -1, "f"), np.ones(6, "f")):
                outputs, found = session.run(x=x), np.sum(x > 0)
                self.assertEqual(outputs["total"], 4 * found)
                np.testing.assert_array_equal(outputs["totals"], found * np.arange(1, 5))

    def test_a_loop_takes_as_many_steps_as_it_says(self):
        with self.assertRaisesRegex(forge.UsageError, "a loop takes 4 steps, not 5"):
            counted(steps=5).session("reference").run(x=np.ones(6, "f"))


def deep(first):
    """A model of many kernels: products of growing matrices, which the device has not compiled for another `first`"""
    graph = forge.Graph()
    x = graph.input("x", "f32", [8, 8])
    for n in range(first, first + 8):
        w = graph.variable(f"w{n}", forge._arrays.view_of_numpy(np.ones((x.shape[1], n), "f")))
        x, = graph.node("matmul", x, w)
        x, = graph.node("softmax", x)
    graph.output("y", x)
    return graph.finish()


class ProgressTest(unittest.TestCase):
    def test_reports_work(self):
        reports = []
        session = deep(9).session("vulkan", progress=lambda *report: reports.append(report))
        session.run(np.ones((8, 8), "f"))
        kinds = {what for what, _, _ in reports}
        self.assertIn("compiling kernels", kinds)
        for kind in kinds:
            done, total = zip(*((done, total) for what, done, total in reports if what == kind))
            self.assertEqual(max(done), max(total))

    def test_an_exception_ends_the_work_and_is_raised(self):
        def fail(what, done, total):
            raise LookupError(what)

        model, x = deep(20), np.ones((8, 8), "f")
        with self.assertRaises(LookupError):
            model.session("vulkan", progress=fail).run(x)
        np.testing.assert_allclose(model.session("vulkan").run(x)["y"].sum(), 8, rtol=1e-5)

    def test_shows_a_line(self):
        stream = io.StringIO()
        show = forge._progress.Line(stream)
        show("compiling kernels", 1, 9)
        show("compiling kernels", 9, 9)
        self.assertTrue(stream.getvalue().startswith("\rcompiling kernels 1 of 9\r"), stream.getvalue())


class TrainingTest(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(1).normal(size=(40, 3)).astype("f")
        self.label = self.x @ np.array([[1], [2], [3]], "f") + 4
        self.batch = {"x": self.x, "label": self.label}

    def test_fits_a_line(self):
        for device in DEVICES:
            model = line()
            self.assertIsNone(model.training(device, loss="mse").step(0.1, **self.batch).gradient_norm)
            training = model.training(device, loss="mse", optimizer="adam", gradient_norm=True)
            first = training.step(0.1, **self.batch)
            for _ in range(300):
                last = training.step(0.1, **self.batch)
            self.assertGreater(first.loss, 10)
            self.assertLess(last.loss, 1e-3)
            self.assertIsNone(last.correct)
            self.assertGreater(first.gradient_norm, last.gradient_norm)
            trained = training.model().session(device).run(self.x)["y"]
            np.testing.assert_allclose(trained, self.label, atol=0.1)
            np.testing.assert_array_equal(model.session(device).run(self.x)["y"], np.zeros((40, 1)))
            self.assertAlmostEqual(training.evaluate(**self.batch).loss, last.loss, delta=1e-3)

    def test_continues_to_the_same_bits(self):
        trainings = [line().training("cpu", loss="mse", optimizer="adam", accumulate=2) for _ in range(2)]
        for _ in range(4):
            trainings[0].step(0.1, **self.batch)
        trainings[1].load(trainings[0].variables())
        for training in trainings:
            training.step(0.1, **self.batch)
            training.step(0.1, **self.batch)
        one, other = (training.variables() for training in trainings)
        self.assertEqual(set(one), {"w", "b", "w.exp_avg", "w.exp_avg_sq", "b.exp_avg", "b.exp_avg_sq", "w.gradient",
                                    "b.gradient", "optimizer.step"})
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])

    def test_a_budget_changes_the_memory_of_a_step_alone(self):
        whole = line().training("cpu", loss="mse")
        part = line().training("cpu", loss="mse", activation_budget=1, sizes={"n": 40})
        self.assertAlmostEqual(whole.step(0.1, **self.batch).loss, part.step(0.1, **self.batch).loss, places=5)
        with self.assertRaisesRegex(forge.UsageError, "dimension n is not bound"):
            line().training("cpu", loss="mse", activation_budget=1)
        with self.assertRaisesRegex(forge.UsageError, "activation_budget"):
            line().training("cpu", loss="mse", activation_budget=-1)

    def test_parameters_have_rates_of_their_own(self):
        frozen = line().training("cpu", loss="mse", optimizer="sgd", frozen=["w"])
        slow = line().training("cpu", loss="mse", optimizer="sgd", rates={"w": 0.5})
        plain = line().training("cpu", loss="mse", optimizer="sgd")
        for training in (frozen, slow, plain):
            training.step(0.1, **self.batch)
        self.assertEqual(set(frozen.variables()), {"b"})
        np.testing.assert_allclose(2 * slow.variables()["w"], plain.variables()["w"], rtol=1e-6)
        np.testing.assert_array_equal(frozen.variables()["b"], plain.variables()["b"])

    def test_errors_say_what_was_expected(self):
        training = line().training("cpu", loss="mse")
        for text, wrong in {
            "no option 'learning'": lambda: line().training("cpu", learning=1),
            "'lbfgs' is not sgd": lambda: line().training("cpu", optimizer="lbfgs"),
            "precision 'f8' is not exact": lambda: line().training("cpu", loss="mse", precision="f8"),
            "'hinge' is not cross_entropy": lambda: line().training("cpu", loss="hinge"),
            "no option 'momentum', or -1": lambda: line().training("cpu", momentum=-1),
            "frozen: the model has no variable 'v'": lambda: line().training("cpu", loss="mse", frozen=["v"]),
            "no f32 parameter to train": lambda: line().training("cpu", loss="mse", frozen=["w", "b"]),
            "'label'": lambda: training.step(0.1, x=self.x),
            "'z'": lambda: training.step(0.1, z=1.0, **self.batch),
            "n is 40, not 2": lambda: training.step(0.1, x=self.x, label=np.zeros((2, 1), "f")),
            "'w'": lambda: training.load({"b": np.zeros(1, "f")}),
        }.items():
            with self.assertRaises(forge.UsageError) as caught:
                wrong()
            self.assertIn(text, str(caught.exception))


class ExportedTest(unittest.TestCase):
    """A layer of a transformer that forge.export wrote."""

    def test_is_what_pytorch_computes(self):
        expected = np.load(DATA / "encoder.npz")
        model = forge.load(DATA / "encoder.bin")
        self.assertIn("torch", model.metadata["source"])
        for device in DEVICES:
            with model.session(device) as session:
                self.assertEqual(session.inputs[0].shape, ("batch", "sequence", 16))
                for i in range(2):
                    got = session.run(expected[f"x{i}"])[session.outputs[0].name]
                    np.testing.assert_allclose(got, expected[f"y{i}"], rtol=1e-4, atol=1e-5, err_msg=device)


class PackageTest(unittest.TestCase):
    def test_imports_neither_numpy_nor_torch(self):
        script = "import sys, forge; forge.devices(); print('numpy' in sys.modules, 'torch' in sys.modules)"
        environment = os.environ | {"PYTHONPATH": str(in_oracle.ROOT / "python")}
        said = subprocess.check_output([sys.executable, "-c", script], text=True, env=environment)
        self.assertEqual(said.strip(), "False False")

    def test_lists_devices(self):
        ids = {device.id: device for device in forge.devices()}
        self.assertIsNone(ids["reference:0"].problem)

    def test_declares_functions_of_the_header(self):
        header = (in_oracle.ROOT / "runtime" / "forge.h").read_text(encoding="utf-8")
        text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        declared = {name: parameters for name, parameters in
                    re.findall(r"^[a-z][\w ]*\*?\s*forge_(\w+)\(([^)]*)\)", text, flags=re.M)}
        for name, (_, *parameters) in _library.FUNCTIONS.items():
            given = declared[name].strip()
            self.assertEqual(0 if given == "void" else given.count(",") + 1, len(parameters), name)
        self.assertIn(f"#define FORGE_INTERFACE {_library.INTERFACE}\n", header)

    def test_an_older_library_is_refused(self):
        done = subprocess.run([sys.executable, "-c", "import forge"], capture_output=True, text=True, check=False,
                              env=os.environ | {"PYTHONPATH": str(in_oracle.ROOT / "python"), "FORGE_LIBRARY": "/no.so"})
        self.assertIn("ImportError", done.stderr)
        self.assertIn("/no.so", done.stderr)

    def test_rules_name_ops_and_attributes_that_exist(self):
        known, calls = forge.ops(), 0
        for path in sorted((in_oracle.ROOT / "python/forge/pytorch").rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                        and node.func.attr in ("op", "ops") and node.args and isinstance(node.args[0], ast.Constant)):
                    continue
                name, calls = node.args[0].value, calls + 1
                self.assertIn(name, known, path)
                attributes = {a["name"] for a in known[name]["attributes"]}
                for keyword in node.keywords:
                    self.assertTrue(keyword.arg is None or keyword.arg in attributes, (path.name, name, keyword.arg))
        self.assertGreater(calls, 150)

    def test_attributes_have_the_text_form(self):
        text = forge._graph.attributes_text
        self.assertEqual(text("fill", {"value": True, "dtype": "f32", "shape": ["n", 2]}),
                         "value = 1, dtype = f32, shape = [n, 2]")
        self.assertEqual(text("clamp", {"low": 0, "high": None}), "low = 0.0")
        self.assertEqual(text("einsum", {"equation": "ij->ji"}), 'equation = "ij->ji"')
        with self.assertRaises(forge.UsageError):
            text("clamp", {"lower": 0})


class EmulatedCudaTest(unittest.TestCase):
    """A program goes on after NVIDIA's driver failed it, on the emulated device."""

    SESSIONS = """
import sys
import numpy as np
import forge
model = forge.load(sys.argv[1])
for attempt in range(2):
    try:
        with model.session(device="cuda") as session:
            print("deviation", round(float(session.run(np.ones((1, 4, 16), "f"))["output"].std()), 3))
    except forge.Error as error:
        print(error)
"""

    def setUp(self):
        driver = pathlib.Path(LIBRARY).resolve().parents[1] / "emulated_cuda"
        compilers = sorted((in_oracle.CACHE / "forge/cuda-venv/lib").glob("python3*/site-packages"))
        if not driver.exists():
            self.skipTest(f"{driver} was not built")
        if not compilers:
            self.skipTest("there is no NVRTC: run tests/lab/fetch-cuda")
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FORGE_CUDA_PATH": str(compilers[0]),
                            "PYTHONPATH": str(pathlib.Path(forge.__file__).resolve().parents[1])}

    def test_the_next_session_works(self):
        for failing, sentence in (("cuMemAlloc_v2:2", "no GPU memory for "),
                                  ("cuMemHostAlloc:1", "the host has no pinned memory for "),
                                  ("cuModuleLoadDataEx:1", "cuModuleLoadDataEx returned CUDA_ERROR_UNKNOWN"),
                                  ("cuLaunchKernel:2=700", "the CUDA device is lost"),
                                  ("cuEventQuery:1=719", "the CUDA device is lost")):
            with self.subTest(failing):
                done = subprocess.run([sys.executable, "-c", self.SESSIONS, DATA / "encoder.bin"], text=True,
                                      stdout=subprocess.PIPE, check=True,
                                      env={**self.environment, "FORGE_EMULATED_CUDA_FAIL": failing})
                first, second = done.stdout.splitlines()
                self.assertIn(sentence, first)
                self.assertEqual(second, "deviation 1.0")


if __name__ == "__main__":
    unittest.main()
