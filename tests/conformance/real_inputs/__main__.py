#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real inputs for the models of tests/models.tsv: drawn text, sentences, files, a melody.

  real_inputs make NAME MODEL.onnx DIR    runs them all in onnxruntime, saves what went in and came out
  real_inputs judge NAME MODEL.onnx DIR OUTPUTS    do outputs of some device mean what they should?

DIR gets cases.json and CASE/*.npy; OUTPUTS holds CASE/*.npy. Runs in the environment that
tools/fetch-models --oracle makes.

Exit status: 1 outputs do not mean what they should, 2 bad usage, 4 a program, a font or a file that
makes the inputs is missing.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import files
import make_oracle
import melody
import ppocr
import sentences
from case import Missing

# Name: makers of cases, judges, whether the outputs rank classes along their last axis.
MODELS = {
    "basic-pitch": (melody.cases, melody.judge, False),
    "magika": (files.cases, files.judge, True),
    "minilm": (sentences.cases, sentences.judge, False),
    "ppocr-cls": (ppocr.cls_cases, ppocr.judge_cls, True),
    "ppocr-det": (ppocr.det_cases, ppocr.judge_det, False),
    "ppocr-rec": (ppocr.rec_cases, ppocr.judge_rec, True),
}


def session_for(model, inner):
    """onnxruntime for the model, or for its value `inner`."""
    if not inner:
        return make_oracle.load_session(model)
    graph = onnx.load(model)
    graph.graph.output.append(onnx.helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, None))
    del graph.graph.output[:-1]
    return make_oracle.load_session(graph.SerializeToString())


def complaints(name, model, case, outputs):
    judge = MODELS[name][1]
    return [f"{name} {case.name}: {what}" for what in ([] if case.inner else judge(case, outputs, model))]


def make(name, model, folder):
    """Runs every case; what onnxruntime itself gets wrong is no test."""
    makers, _, classes = MODELS[name]
    entries, wrong = [], []
    for case in makers(model):
        session = session_for(model, case.inner)
        names = [value.name for value in session.get_outputs()]
        outputs = dict(zip(names, session.run(names, case.feeds), strict=True))
        wrong += complaints(name, model, case, outputs)
        (folder / case.name).mkdir(parents=True)
        entry = {"name": case.name, "classes": classes and not case.inner, "inner": case.inner}
        entry["inputs"] = make_oracle.save_arrays(folder / case.name, case.feeds)
        entry["outputs"] = make_oracle.save_arrays(folder / case.name, outputs)
        entries.append(entry)
    (folder / "cases.json").write_text(json.dumps(entries, indent=1) + "\n")
    return wrong


def judge(name, model, given):
    """Judges what a device has made of each case that it has run."""
    wrong = []
    for case in MODELS[name][0](model):
        folder = given / case.name
        if case.inner or not folder.is_dir():
            continue
        names = [value.name for value in make_oracle.load_session(model).get_outputs()]
        outputs = {n: np.load(folder / make_oracle.file_name(n)) for n in names}
        wrong += complaints(name, model, case, outputs)
    return wrong


def main():
    parser = argparse.ArgumentParser(
        prog="real_inputs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("make", "judge"):
        sub = commands.add_parser(command)
        sub.add_argument("name", choices=MODELS)
        sub.add_argument("model")
        sub.add_argument("dir", type=pathlib.Path)
    sub.add_argument("outputs", type=pathlib.Path)
    args = parser.parse_args()
    try:
        if args.command == "make":
            wrong = make(args.name, args.model, args.dir)
        else:
            wrong = judge(args.name, args.model, args.outputs)
    except Missing as missing:
        print(f"real_inputs: {missing}", file=sys.stderr)
        return 4
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
