# SPDX-License-Identifier: Apache-2.0
"""Sequences, optionals and strings. They pass between nodes of one chain; what enters and leaves it are tensors."""

import numpy as np
from onnx import TensorProto, helper

from operators.common import Chain

ITEMS = (np.float32, np.int64)


def elements_of(x):
    return helper.np_dtype_to_tensor_dtype(x.array.dtype)


def index(g, chain, low, high):
    """The name of a position in [low, high)."""
    return chain.read(g.index_operand(np.asarray(g.rng.integers(low, high), np.int64)))


def begin_sequence(g, chain, operator, x):
    """Makes a sequence of tensors that have x's type; returns its name and length."""
    if operator == "SequenceEmpty":
        return chain.add(operator, [], dtype=elements_of(x)), 0
    if operator == "SplitToSequence":
        axis, splits, attributes = int(g.rng.integers(0, x.array.ndim)), [], {}
        extent = x.array.shape[axis]
        if g.chance(0.4):
            attributes["keepdims"] = int(g.chance(0.5))
            return chain.add(operator, [chain.read(x)], axis=axis, **attributes), extent
        size = int(g.rng.integers(1, max(extent, 1) + 1))
        if g.chance(0.5):
            splits = np.asarray(size, np.int64)  # a scalar: pieces of this size, the last one smaller
            length = -(-extent // size)
        else:
            splits = np.asarray([size, extent - size][:1 + (size < extent)], np.int64)
            length = len(splits)
        return chain.add(operator, [chain.read(x), chain.read(g.constant(splits))], axis=axis), length
    count = int(g.rng.integers(1, 4))
    return chain.add("SequenceConstruct", [chain.read(x) for _ in range(count)]), count


def halved(name, kind):
    """A body that adds its operand to itself."""
    info = helper.make_tensor_value_info
    return helper.make_graph([helper.make_node("Add", [name, name], ["twice"])], "body", [info(name, kind, None)],
                             [info("twice", kind, None)])


def change_sequence(g, chain, operator, sequence, length, x):
    if operator == "SequenceErase":
        at = [index(g, chain, -length, length)] if g.chance(0.7) else []
        return chain.add(operator, [sequence, *at]), length - 1
    if operator == "SequenceMap":
        return chain.add(operator, [sequence], body=halved("item", elements_of(x))), length
    at = [index(g, chain, -length, length + 1)] if length and g.chance(0.7) else []
    return chain.add("SequenceInsert", [sequence, chain.read(x), *at]), length + 1


def end_sequence(g, chain, operator, sequence, length, x):
    if operator == "SequenceLength":
        return chain.finish(operator, [sequence])
    if operator == "ConcatFromSequence":
        new_axis = int(g.chance(0.4))
        axis = int(g.rng.integers(-x.array.ndim, x.array.ndim))
        return chain.finish(operator, [sequence], axis=axis, new_axis=new_axis)
    return chain.finish("SequenceAt", [sequence, index(g, chain, -length, length)])


def sequence(operator):
    """Makes a sequence, changes it and takes something from it; one of the steps is the operator."""
    def generate(g):
        x, chain = g.value(ITEMS, least_rank=1), Chain(g)
        begins = ["SequenceConstruct", "SequenceEmpty", "SplitToSequence"]
        changes = ["SequenceInsert", "SequenceErase", *(["SequenceMap"] if g.opset >= 17 else [])]
        ends = ["SequenceAt", "SequenceLength", "ConcatFromSequence"]
        begin = operator if operator in begins else g.choose(begins)
        name, length = begin_sequence(g, chain, begin, x)
        for step in [g.choose(changes) for _ in range(int(g.rng.integers(0, 3)))] + [operator] * (operator in changes):
            if length == 0:
                name, length = change_sequence(g, chain, "SequenceInsert", name, length, x)
            name, length = change_sequence(g, chain, step, name, length, x)
        end = operator if operator in ends else g.choose(ends if length else ends[1:2])
        if length == 0 and end != "SequenceLength":
            name, length = change_sequence(g, chain, "SequenceInsert", name, length, x)
        return end_sequence(g, chain, end, name, length, x)
    return generate


def optional(g):
    """An optional that holds a tensor: whether it does, and the tensor."""
    x, chain = g.value(ITEMS, least_rank=1), Chain(g)
    held = chain.add("Optional", [chain.read(x)])
    return chain.finish("OptionalHasElement" if g.chance(0.5) else "OptionalGetElement", [held])


WORDS = ["", "1", "-2", "été 3", "a, b", "Ab", "3,-1"]


def words(g, chain, count):
    return chain.add("Constant", [], value_strings=[g.choose(WORDS) for _ in range(count)])


def strings(operator):
    """Writes integers as strings, joins them with others, and compares, counts or matches them."""
    def generate(g):
        chain = Chain(g)
        count = int(g.rng.integers(1, 6))
        x = g.new_value((np.int64,), shape=[count])
        text = chain.add("Cast", [chain.read(x)], to=TensorProto.STRING)
        if operator == "StringConcat" or g.opset >= 20 and g.chance(0.5):
            text = chain.add("StringConcat", [text, words(g, chain, g.choose([1, count]))])
        if operator == "RegexFullMatch":
            return chain.finish(operator, [text], pattern=g.choose(["-?[0-9]+", r".*\d", "[^,]*", "(1|2).?"]))
        if operator == "StringSplit":
            limit = {"maxsplit": int(g.rng.integers(0, 3))} if g.chance(0.4) else {}
            delimiter = {"delimiter": g.choose([",", "-", ", "])} if g.chance(0.7) else {}
            parts, counts = chain.add(operator, [text], outputs=2, **limit, **delimiter)
            if g.chance(0.5):
                return chain.finish("Identity", [counts])
            return chain.finish("Equal", [parts, words(g, chain, 1)])
        if operator == "StringNormalizer":
            stop = {"stopwords": ["1", "ab", "-2"]} if g.chance(0.6) else {}
            text = chain.add(operator, [text], case_change_action=g.choose(["LOWER", "UPPER", "NONE"]),
                             is_case_sensitive=int(g.chance(0.5)), locale="C.UTF-8", **stop)
            if g.opset < 19:
                return chain.finish("Shape", [text])
        return chain.finish("Equal", [text, words(g, chain, 1)])
    return generate


def tf_idf(g):
    """Counts pairs and single words of integers."""
    chain = Chain(g)
    shape = [int(g.rng.integers(1, 9))] if g.chance(0.5) else [int(g.rng.integers(1, 4)), int(g.rng.integers(1, 9))]
    x = g.new_value((np.int64, np.int32), array=g.rng.integers(0, 4, shape).astype(g.choose([np.int64, np.int32])))
    pool = [0, 1, 3, 0, 1, 1, 2, 3, 3]  # the words 0, 1, 3, then the pairs 0 1, 1 2, 3 3
    weights = {"weights": [float(w) for w in g.rng.uniform(0.5, 2, 6)]} if g.chance(0.6) else {}
    return chain.finish("TfIdfVectorizer", [chain.read(x)], mode=g.choose(["TF", "IDF", "TFIDF"]),
                        min_gram_length=g.choose([1, 1, 2]), max_gram_length=2,
                        max_skip_count=int(g.rng.integers(0, 3)), ngram_counts=[0, 3], ngram_indexes=[5, 0, 1, 2, 4, 3],
                        pool_int64s=pool, **weights)


def select_boxes(g):
    """Boxes whose scores all differ, so that their order is known."""
    batch, classes, boxes = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4)), int(g.rng.integers(1, 20))
    corners = g.rng.uniform(0, 10, [batch, boxes, 4]).astype(np.float32)
    scores = g.rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes)
    inputs = [g.new_value((np.float32,), array=corners, open_axes=[0, 1]),
              g.new_value((np.float32,), array=(scores / scores.size).astype(np.float32), open_axes=[0, 2])]
    bounds = [np.asarray([g.rng.integers(0, 6)], np.int64), np.asarray([g.rng.uniform(0.1, 0.9)], np.float32),
              np.asarray([g.rng.uniform(0, 0.8)], np.float32)]
    inputs += [g.index_operand(b) for b in bounds[:int(g.rng.integers(1, 4))]]
    return inputs, {"center_point_box": int(g.chance(0.4))}
