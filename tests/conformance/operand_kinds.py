#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives operators operands of kinds that they may not take: numbers, strings, sequences, nothing, data-dependent shapes.

  tests/conformance/operand_kinds.py                     on the reference
  tests/conformance/operand_kinds.py --device vulkan

Each of some hundred models must run, or be refused with a sentence; a crash is a finding. What must not be left to types
alone is that operands of such kinds are known only when a model runs.

Exit status: 1 a model crashes or is refused in another way, 77 there is no environment of tools/fetch-models --oracle.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import in_oracle  # noqa: E402,F401  isort: skip

os.environ.setdefault("FORGE_LIBRARY", str(ROOT / "build/release/lib/libforge.so"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto as T  # noqa: E402
from onnx import helper  # noqa: E402

NODE, INFO = helper.make_node, helper.make_tensor_value_info
ONE_TREE = {"n_targets": 1, "target_weights": [1.0], "nodes_modes": ["LEAF"], "nodes_values": [0.0]} | {
    name: [0] for name in ("nodes_falsenodeids", "nodes_featureids", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids",
                           "target_ids", "target_nodeids", "target_treeids")}
WORDS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0],
         "ngram_indexes": [0, 1], "pool_int64s": [1, 2]}
# (operator, number of operands, attributes, domain)
OPERATORS = [
    ("Add", 2, {}, ""), ("Cast", 1, {"to": T.STRING}, ""), ("Cast", 1, {"to": T.FLOAT}, ""), ("Compress", 2, {}, ""),
    ("Concat", 2, {"axis": 0}, ""), ("ConcatFromSequence", 1, {"axis": 0}, ""), ("Equal", 2, {}, ""),
    ("Expand", 2, {}, ""), ("Gather", 2, {}, ""), ("Identity", 1, {}, ""), ("If", 1, {}, ""), ("ImageDecoder", 1, {}, ""),
    ("Loop", 2, {}, ""), ("MatMul", 2, {}, ""), ("NonMaxSuppression", 5, {}, ""), ("NonZero", 1, {}, ""),
    ("OneHot", 3, {}, ""), ("Optional", 1, {}, ""), ("OptionalGetElement", 1, {}, ""), ("OptionalHasElement", 1, {}, ""),
    ("Pad", 2, {}, ""), ("Range", 3, {}, ""), ("RegexFullMatch", 1, {"pattern": "a"}, ""), ("Reshape", 2, {}, ""),
    ("ScatterElements", 3, {}, ""), ("SequenceAt", 2, {}, ""), ("SequenceConstruct", 2, {}, ""),
    ("SequenceErase", 2, {}, ""), ("SequenceInsert", 3, {}, ""), ("SequenceLength", 1, {}, ""),
    ("SequenceMap", 1, {}, ""), ("Shape", 1, {}, ""), ("Size", 1, {}, ""), ("Slice", 3, {}, ""),
    ("SplitToSequence", 2, {}, ""), ("StringConcat", 2, {}, ""), ("StringNormalizer", 1, {}, ""),
    ("StringSplit", 1, {}, ""), ("TfIdfVectorizer", 1, WORDS, ""), ("Tile", 2, {}, ""), ("TopK", 2, {}, ""),
    ("Transpose", 1, {}, ""), ("Unique", 1, {}, ""), ("Where", 3, {}, ""), ("ArrayFeatureExtractor", 2, {}, "ai.onnx.ml"),
    ("LabelEncoder", 1, {"keys_strings": ["a"], "values_floats": [1.0]}, "ai.onnx.ml"), ("Normalizer", 1, {}, "ai.onnx.ml"),
    ("OneHotEncoder", 1, {"cats_int64s": [1]}, "ai.onnx.ml"), ("Scaler", 1, {"offset": [0.0], "scale": [1.0]}, "ai.onnx.ml"),
    ("TreeEnsembleRegressor", 1, ONE_TREE, "ai.onnx.ml"),
]
# What makes one value of each kind.
KINDS = {
    "numbers": NODE("Identity", ["x"], ["numbers"]),
    "strings": NODE("Cast", ["x"], ["strings"], to=T.STRING),
    "sequence": NODE("SequenceConstruct", ["x", "x"], ["sequence"]),
    "empty": NODE("SequenceEmpty", [], ["empty"]),
    "string_sequence": NODE("SequenceConstruct", ["strings"], ["string_sequence"]),
    "nothing": NODE("Optional", [], ["nothing"], type=helper.make_tensor_type_proto(T.FLOAT, None)),
    "integers": NODE("Cast", ["x"], ["integers"], to=T.INT64),
    "zero": NODE("Constant", [], ["zero"], value=onnx.numpy_helper.from_array(np.int64(0))),
    "places": NODE("NonZero", ["x"], ["places"]),
}
DRAWN = 60  # of the combinations of three operands and more


def body(operands, output):
    return helper.make_graph([NODE("Identity", operands, [output])], output, [], [onnx.ValueInfoProto(name=output)])


def node(operator, operands, attributes, domain):
    attributes = dict(attributes)
    if operator == "If":
        attributes |= {"then_branch": body(["x"], "yes"), "else_branch": body(["x"], "no")}
    if operator == "SequenceMap":
        attributes["body"] = helper.make_graph([NODE("Identity", ["item"], ["same"])], "body", [INFO("item", T.FLOAT, None)],
                                               [INFO("same", T.FLOAT, None)])
    if operator == "Loop":
        nodes = [NODE("Identity", ["go"], ["go_on"]), NODE("Identity", ["state"], ["next"])]
        inputs = [INFO("step", T.INT64, []), INFO("go", T.BOOL, []), onnx.ValueInfoProto(name="state")]
        outputs = [INFO("go_on", T.BOOL, []), onnx.ValueInfoProto(name="next")]
        attributes["body"] = helper.make_graph(nodes, "body", inputs, outputs)
        operands = [operands[0], "", operands[1]]
    return NODE(operator, operands, ["y"], domain=domain, **attributes)


def cases():
    for operator, count, attributes, domain in OPERATORS:
        combinations = itertools.product(KINDS, repeat=count)
        if count > 2:
            rng = np.random.default_rng(count)
            combinations = [rng.choice(list(KINDS), count).tolist() for _ in range(DRAWN)]
        for operands in combinations:
            yield operator, list(operands), attributes, domain


def run_from(first, device):
    """Runs the cases from a number on, and prints each before it begins."""
    import forge

    for number, (operator, operands, attributes, domain) in enumerate(cases()):
        if number < first:
            continue
        print(f"case {number}: {operator}({', '.join(operands)})", flush=True)
        nodes = [*KINDS.values(), node(operator, operands, attributes, domain), NODE("Identity", ["y"], ["z"])]
        graph = helper.make_graph(nodes, "kinds", [INFO("x", T.FLOAT, ["n", "m"])], [onnx.ValueInfoProto(name="z")])
        sets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=10)
        try:
            session = forge.load(model.SerializeToString()).session(device)
            session.run(np.array([[1, 2], [3, 0]], np.float32))
        except forge.Error:
            pass
    print("done")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="reference")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.first is not None:
        run_from(options.first, options.device)
        return 0
    first, findings = 0, 0
    while True:
        command = [sys.executable, __file__, "--device", options.device, "--first", str(first)]
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = child.stdout.splitlines()
        if child.returncode == 0 and lines and lines[-1] == "done":
            break
        if not lines:
            sys.exit(f"operand_kinds: {child.stderr}")
        findings += 1
        print(f"{lines[-1]}: exit status {child.returncode}; {child.stderr.strip().splitlines()[-1:]}", flush=True)
        first = int(lines[-1].split()[1].rstrip(":")) + 1
    print(f"{sum(1 for _ in cases())} models on {options.device}: {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
