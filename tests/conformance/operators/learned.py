# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain ai.onnx.ml: linear models, trees, and what prepares their features."""

import numpy as np

from operators.common import Chain

DOMAIN = "ai.onnx.ml"
POST = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def table(g, columns=None):
    """Rows of features"""
    rows, columns = int(g.rng.integers(1, 6)), columns or int(g.rng.integers(1, 5))
    return g.new_value((np.float32,), shape=[rows, columns], open_axes=[0])


def reals(g, count, low=-2, high=2):
    return [float(v) for v in np.round(g.rng.uniform(low, high, count), 2)]


def labels(g, count):
    """Class labels that are integers: those that are strings are no outputs of a graph of tensors"""
    return [int(v) for v in g.rng.choice(100, count, replace=False)]


def linear_regressor(g):
    targets, x = int(g.rng.integers(1, 4)), table(g)
    attributes = {"coefficients": reals(g, targets * x.array.shape[1]), "targets": targets,
                  "post_transform": g.choose(POST if targets > 1 else POST[:1])}
    if g.chance(0.7):
        attributes["intercepts"] = reals(g, targets)
    return [x], attributes


def linear_classifier(g):
    classes, x = int(g.choose([1, 2, 3, 4])), table(g)
    columns = x.array.shape[1]
    post = g.choose(POST)
    names = labels(g, max(classes, 2))
    return [x], {"coefficients": reals(g, classes * columns), "intercepts": reals(g, classes), "post_transform": post,
                 "classlabels_ints": names}, 2


def grow(g, tree, columns, nodes):
    """Adds the nodes of a random tree; returns the numbers of its leaves."""
    leaves, waiting, count = [], [0], 1
    while waiting:
        node = waiting.pop(int(g.rng.integers(0, len(waiting))))
        inner = count < 8 and (node == 0 and g.chance(0.9) or node > 0 and g.chance(0.5))
        yes, no = (count, count + 1) if inner else (0, 0)
        row = {"treeids": tree, "nodeids": node, "featureids": int(g.rng.integers(0, columns)),
               "modes": g.choose(MODES) if inner else "LEAF", "values": float(g.rng.integers(-4, 5)) / 2,
               "truenodeids": yes, "falsenodeids": no, "missing_value_tracks_true": int(g.chance(0.3))}
        for name, value in row.items():
            nodes.setdefault("nodes_" + name, []).append(value)
        if inner:
            waiting += [yes, no]
            count += 2
        else:
            leaves.append(node)
    return leaves


def trees(g, of, targets, low, high, least=1):
    """x and the attributes of some trees whose leaves have weights of `least` targets or more"""
    x, attributes = table(g), {}
    lists = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(int(g.rng.integers(1, 4))):
        for leaf in grow(g, tree, x.array.shape[1], attributes):
            count = int(g.rng.integers(least, len(targets) + 1))
            for target in sorted(g.rng.choice(targets, count, replace=False).tolist()):
                for name, value in zip(lists, (tree, leaf, target, reals(g, 1, low, high)[0])):
                    lists[name].append(value)
    return x, attributes | {f"{of}_{name}": values for name, values in lists.items()}


def tree_regressor(g):
    targets = int(g.rng.integers(1, 4))
    x, attributes = trees(g, "target", list(range(targets)), -2, 2)
    # onnxruntime transforms no single scores.
    attributes |= {"n_targets": targets, "post_transform": g.choose(POST if targets > 1 else POST[:1]),
                   "aggregate_function": g.choose(["SUM", "AVERAGE", "MIN", "MAX"])}
    # Nor does it add base values where no leaf has the target.
    if g.chance(0.4) and targets == 1:
        attributes["base_values"] = reals(g, targets)
    return [x], attributes


def tree_classifier(g):
    """Of two classes the weights are those of the first, since onnxruntime labels others with what is no label; of more,
    every leaf has weights of all, since it never labels with a class that no leaf has."""
    classes = int(g.choose([2, 2, 3, 4]))
    targets = [0] if classes == 2 else list(range(classes))
    x, attributes = trees(g, "class", targets, g.choose([0.01, -1]), 1, least=len(targets))
    attributes |= {"classlabels_int64s": labels(g, classes), "post_transform": g.choose(POST)}
    if classes > 2 and g.chance(0.4):
        attributes["base_values"] = reals(g, classes)
    return [x], attributes, 2


def array_feature_extractor(g):
    x = g.new_value((np.float32, np.int64), least_rank=1)
    extent = x.array.shape[-1]
    return [x, g.constant(g.rng.integers(0, extent, int(g.rng.integers(1, 4))))], {}


def binarizer(g):
    return [table(g)], {"threshold": float(g.rng.integers(-2, 3))}


def feature_vectorizer(g):
    rows, parts = int(g.rng.integers(1, 5)), int(g.rng.integers(1, 4))
    inputs = [g.new_value((np.float32,), shape=[rows, int(g.rng.integers(1, 4))], static=True) for _ in range(parts)]
    return inputs, {"inputdimensions": [v.array.shape[1] for v in inputs]}


def imputer(g):
    x = table(g)
    count = g.choose([1, x.array.shape[1]])
    return [x], {"imputed_value_floats": reals(g, count), "replaced_value_float": float(g.rng.integers(-2, 3))}


def normalizer(g):
    return [table(g)], {"norm": g.choose(["MAX", "L1", "L2"])}


def one_hot_encoder(g):
    x = g.new_value((np.int64, np.float32), array=g.rng.integers(0, 5, [int(g.rng.integers(1, 6))]).astype(np.int64))
    return [x], {"cats_int64s": [0, 1, 2, 4], "zeros": 1}


def scaler(g):
    x = table(g)
    return [x], {"offset": reals(g, x.array.shape[1]), "scale": reals(g, x.array.shape[1])}


def label_encoder(g):
    keys, values = labels(g, 4), reals(g, 4)
    x = g.new_value((np.int64,), array=g.rng.choice([*keys, 101], [int(g.rng.integers(1, 9))]))
    return [x], {"keys_int64s": keys, "values_floats": values, "default_float": -7.0}


def category_mapper(g):
    """Integers to strings and back"""
    chain, names = Chain(g), ["a", "b", "c"]
    numbers = labels(g, 3)
    x = g.new_value((np.int64,), array=g.rng.choice([*numbers, 101], [int(g.rng.integers(1, 9))]))
    words = chain.add("CategoryMapper", [chain.read(x)], domain=DOMAIN, cats_int64s=numbers, cats_strings=names,
                      default_string="none")
    return chain.finish("CategoryMapper", [words], domain=DOMAIN, cats_int64s=numbers[::-1], cats_strings=names,
                        default_int64=-5)


LEARNED = {
    "ArrayFeatureExtractor": array_feature_extractor,
    "Binarizer": binarizer,
    "CategoryMapper": category_mapper,
    "FeatureVectorizer": feature_vectorizer,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "OneHotEncoder": one_hot_encoder,
    "Scaler": scaler,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
}
