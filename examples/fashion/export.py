# SPDX-License-Identifier: Apache-2.0
"""Writes the trained network as ONNX and runs ONNX files through onnxruntime."""

import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import dataset

OPSET = 17
IR_VERSION = 8  # The one that came with opset 17.


class Graph:
    """Collects the nodes and weights of a chain of layers, each fed by the one before."""

    def __init__(self, value):
        self.nodes, self.weights, self.value = [], [], value

    def add(self, op, name, weights=(), **attributes):
        """Appends a node `name`; weights: (suffix, array) pairs, its further inputs."""
        inputs = [self.value]
        for suffix, array in weights:
            inputs.append(f"{name}.{suffix}")
            self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), inputs[-1]))
        self.value = name
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))


def build(trained, epsilon):
    """The ONNX model of `trained`, the (params, stats) pair that train.py makes."""
    params, stats = trained
    graph = Graph("image")
    for i in range(1, len(stats) + 1):
        norm, running = params[f"norm{i}"], stats[f"norm{i}"]
        graph.add(
            "Conv", f"conv{i}", [("weight", params[f"conv{i}"])],
            kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1],
        )  # fmt: skip
        weights = [
            ("scale", norm["scale"]), ("bias", norm["bias"]),
            ("mean", running["mean"]), ("var", running["var"]),
        ]  # fmt: skip
        graph.add("BatchNormalization", f"norm{i}", weights, epsilon=epsilon)
        graph.add("Relu", f"relu{i}")
        graph.add("MaxPool", f"pool{i}", kernel_shape=[2, 2], strides=[2, 2])
    graph.add("Flatten", "flatten", axis=1)
    for name in ("hidden", "scores"):
        weights = [("weight", params[name]["weight"]), ("bias", params[name]["bias"])]
        graph.add("Gemm", name, weights, transB=1)
        if name == "hidden":
            graph.add("Relu", "hidden_relu")
    graph.add("Softmax", "probabilities", axis=1)

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])
    classes = ["N", len(dataset.LABELS)]
    output = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, classes)
    body = helper.make_graph(graph.nodes, "fashion", [image], [output], graph.weights)
    model = helper.make_model(
        body,
        producer_name="forge-example-fashion",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    labels = json.dumps(dataset.LABELS)
    helper.set_model_props(model, {"labels": labels, "preprocess": dataset.PREPROCESS})
    return model


def save(model, path):
    """Checks `model` and writes it to `path`; a failure leaves an older file as it was."""
    onnx.checker.check_model(model, full_check=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(model.SerializeToString(deterministic=True))
    os.replace(temporary, path)


def run(path, pictures):
    """Probabilities, f32 [n, 10], by onnxruntime from the model at `path`.

    pictures: uint8 [n, 28, 28].
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(
        os.fspath(path), options, providers=["CPUExecutionProvider"]
    )
    metadata = session.get_modelmeta().custom_metadata_map
    if metadata.get("preprocess") != dataset.PREPROCESS:
        raise ValueError(f"{path}: its preprocess entry is not the one of dataset.py")
    x = dataset.normalise(pictures)
    parts = [session.run(None, {"image": x[i : i + 500]})[0] for i in range(0, len(x), 500)]
    return np.concatenate(parts)
