# SPDX-License-Identifier: Apache-2.0
"""Operators on windows of images."""

import numpy as np

from operators.common import ints


def image(g, axes, channels, least=1):
    """A value of that many spatial axes, whose batch and spatial extents may be open."""
    shape = [int(g.rng.integers(1, 3)), channels] + [int(e) for e in g.rng.integers(max(least, 3), 12, axes)]
    alike = [v for v in g.values if v.array.dtype == np.float32 and v.array.ndim == axes + 2
             and v.array.shape[1] == channels and 1 in v.static and min(v.array.shape[2:]) >= least]
    if alike and g.chance(0.5):
        return g.choose(alike)
    return g.new_value(g.window_types, shape=shape, open_axes=[0, *range(2, axes + 2)])


def window_attributes(g, kernel, dilated):
    axes = len(kernel)
    attributes = {"kernel_shape": kernel, "strides": g.rng.integers(1, 4, axes).tolist()}
    if dilated:
        attributes["dilations"] = g.rng.integers(1, 3, axes).tolist()
    spread = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * axes))]
    if g.chance(0.2):
        attributes["auto_pad"] = g.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attributes["pads"] = [int(g.rng.integers(0, max(1, s // 2 + 1))) for s in spread * 2]
    return attributes, max(spread)


def conv(g):
    axes = int(g.choose([1, 2, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.chance(0.3))
    group = int(g.choose([1, 1, 1, 2, 3]))
    inner = int(g.rng.integers(1, 4)) if g.chance(0.7) else 1
    outer = group * int(g.rng.integers(1, 4))
    x = image(g, axes, group * inner, least)
    inputs = [x, g.constant(g.numbers([outer, inner, *kernel], x.array.dtype))]
    if g.chance(0.6):
        inputs.append(g.constant(g.numbers([outer], x.array.dtype)))
    return inputs, attributes | {"group": group}


def conv_transpose(g):
    axes = int(g.choose([1, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, _ = window_attributes(g, kernel, g.chance(0.2))
    if attributes.pop("auto_pad", None):
        attributes["pads"] = [0] * (2 * axes)
    if g.chance(0.3):
        attributes["output_padding"] = [int(g.rng.integers(0, s)) for s in attributes["strides"]]
    group = int(g.choose([1, 1, 2]))
    inner, outer = group * int(g.rng.integers(1, 4)), int(g.rng.integers(1, 4))
    x = image(g, axes, inner)
    inputs = [x, g.constant(g.numbers([inner, outer, *kernel], x.array.dtype))]
    if g.chance(0.6):
        inputs.append(g.constant(g.numbers([group * outer], x.array.dtype)))
    return inputs, attributes | {"group": group}


def pool(average):
    def generate(g):
        axes = int(g.choose([1, 2, 2]))
        kernel = g.rng.integers(1, 4, axes).tolist()
        dilated = g.opset >= (19 if average else 10) and g.chance(0.3)
        attributes, least = window_attributes(g, kernel, dilated)
        if "pads" in attributes:
            attributes["pads"] = [min(p, k - 1) for p, k in zip(attributes["pads"], kernel * 2)]
        if g.opset >= 10 and g.chance(0.3):
            attributes["ceil_mode"] = 1
        if average:
            attributes["count_include_pad"] = int(g.rng.integers(0, 2))
        elif g.opset >= 8 and g.chance(0.4) and "auto_pad" not in attributes:
            attributes["storage_order"] = int(g.rng.integers(0, 2))
            return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes, 2
        return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes

    return generate


def lp_pool(g):
    axes = int(g.choose([1, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.opset >= 18 and g.chance(0.3))
    if "pads" in attributes:
        attributes["pads"] = [min(p, k - 1) for p, k in zip(attributes["pads"], kernel * 2)]
    return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes | {"p": int(g.rng.integers(1, 4))}


def max_unpool(g):
    axes = int(g.choose([1, 2, 2]))
    kernel, strides = g.rng.integers(1, 4, axes).tolist(), g.rng.integers(1, 3, axes).tolist()
    shape = [int(n) for n in g.rng.integers(1, 4, axes + 2)]
    x = g.new_value((np.float32,), shape=shape, static=True)
    whole = shape[:2] + [(e - 1) * s + k for e, s, k in zip(shape[2:], strides, kernel)]
    count = int(np.prod(shape))
    places = g.rng.permutation(int(np.prod(whole)))
    if count > len(places):
        return [x, g.constant(np.zeros(shape, np.int64))], {"kernel_shape": [0] * axes}  # refused: drawn again
    return [x, g.constant(places[:count].reshape(shape).astype(np.int64))], {"kernel_shape": kernel, "strides": strides}


def grid_sample(g):
    axes = int(g.choose([2, 2, 3])) if g.opset >= 20 else 2
    words = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = str(g.choose(words if axes == 2 else words[:2]))
    batch, channels = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    x = g.new_value((np.float32,), shape=[batch, channels, *g.rng.integers(1, 6, axes)], open_axes=range(2, axes + 2))
    shape = [batch, *g.rng.integers(1, 5, axes), axes]
    places = g.numbers(shape, np.float32, -1.4, 1.4)
    if mode == "nearest":  # away from ties, where onnxruntime's roundings choose another neighbour than PyTorch
        places = np.asarray(places * 0.97 + 0.011, np.float32)
    grid = g.new_value((np.float32,), array=places, open_axes=range(1, axes + 1))
    padding = str(g.choose(["zeros", "border", "reflection"]))
    return [x, grid], {"mode": mode, "padding_mode": padding, "align_corners": int(g.rng.integers(0, 2))}


def affine_grid(g):
    axes = int(g.choose([2, 3]))
    batch = int(g.rng.integers(1, 3))
    theta = g.new_value((np.float32,), shape=[batch, axes, axes + 1], open_axes=[0])
    size = [batch, 1, *(int(n) for n in g.rng.integers(2, 5, axes))]
    return [theta, g.constant(ints(size))], {"align_corners": int(g.rng.integers(0, 2))}


def col2im(g):
    kernel, strides = g.rng.integers(1, 4, 2).tolist(), g.rng.integers(1, 3, 2).tolist()
    windows = g.rng.integers(1, 4, 2)
    sizes = [int((w - 1) * s + k) for w, s, k in zip(windows, strides, kernel)]
    shape = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 3)) * kernel[0] * kernel[1], int(windows[0] * windows[1])]
    x = g.new_value((np.float32,), shape=shape, open_axes=[0])
    return [x, g.constant(ints(sizes)), g.constant(ints(kernel))], {"strides": strides}


def roi_align(g):
    batch, boxes = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    x = g.new_value((np.float32,), shape=[batch, int(g.rng.integers(1, 4)), *g.rng.integers(2, 7, 2)], open_axes=[2, 3])
    corners = np.sort(g.rng.uniform(-1, 14, (boxes, 2, 2)), 1).reshape(boxes, 4).astype(np.float32)
    attributes = {"output_height": int(g.rng.integers(1, 4)), "output_width": int(g.rng.integers(1, 4)),
                  "sampling_ratio": int(g.rng.integers(0, 3)), "spatial_scale": 0.5}
    if g.opset >= 16 and g.chance(0.5):
        attributes["coordinate_transformation_mode"] = str(g.choose(["half_pixel", "output_half_pixel"]))
    batches = g.rng.integers(0, batch, boxes).astype(np.int64)
    return [x, g.constant(corners), g.constant(batches)], attributes


def max_roi_pool(g):
    batch, boxes = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    x = g.new_value((np.float32,), shape=[batch, int(g.rng.integers(1, 4)), *g.rng.integers(2, 7, 2)], open_axes=[2, 3])
    corners = np.sort(g.rng.integers(-1, 14, (boxes, 2, 2)), 1).reshape(boxes, 4)
    places = np.concatenate([g.rng.integers(0, batch, (boxes, 1)), corners], 1).astype(np.float32)
    return [x, g.constant(places)], {"pooled_shape": g.rng.integers(1, 4, 2).tolist(), "spatial_scale": 0.5}


def global_pool(g):
    return [image(g, int(g.choose([1, 2])), int(g.rng.integers(1, 5)))], {}


def batch_norm(g):
    channels = int(g.rng.integers(1, 6))
    x = image(g, int(g.choose([1, 2])), channels)
    ranges = [(0.5, 2), (-1, 1), (-1, 1), (0.5, 2)]
    parameters = [g.constant(g.numbers([channels], x.array.dtype, *r)) for r in ranges]
    return [x, *parameters], {"epsilon": 1e-3}


def instance_norm(g):
    channels = int(g.rng.integers(1, 6))
    x = image(g, int(g.choose([1, 2])), channels)
    parameters = [g.constant(g.numbers([channels], x.array.dtype, *r)) for r in [(0.5, 2), (-1, 1)]]
    return [x, *parameters], {"epsilon": 1e-2}


def group_norm(g):
    groups = int(g.rng.integers(1, 4))
    channels = groups * int(g.rng.integers(1, 4))
    x = image(g, int(g.choose([1, 2])), channels)
    count = channels if g.opset >= 21 else groups
    parameters = [g.constant(g.numbers([count], x.array.dtype, *r)) for r in [(0.5, 2), (-1, 1)]]
    return [x, *parameters], {"num_groups": groups, "epsilon": 1e-2}


def norm(with_bias):
    def generate(g):
        x = g.new_value((np.float32, np.float32, np.float64), least_rank=2, static_last=True)
        last = x.array.shape[-1:]
        inputs = [x, g.constant(g.numbers(last, x.array.dtype))]
        if with_bias and g.chance(0.6):
            inputs.append(g.constant(g.numbers(last, x.array.dtype)))
        return inputs, {"axis": -1, "epsilon": 1e-2}

    return generate


def resize(g):
    axes = int(g.choose([1, 2, 2]))
    x = image(g, axes, int(g.rng.integers(1, 4)))
    scales = np.array([1, 1] + g.rng.choice([0.5, 1, 1.5, 2, 3], axes).tolist(), np.float32)
    mode = g.choose(["nearest", "linear"] if axes == 2 or g.opset < 11 else ["nearest", "linear"])
    if g.opset < 11:
        return [x, g.constant(scales)], {"mode": mode}
    attributes = {"mode": mode, "coordinate_transformation_mode":
                  g.choose(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "linear" and axes == 2 and g.chance(0.3):
        attributes["mode"] = "cubic"
    if mode == "nearest":
        attributes["nearest_mode"] = g.choose(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    roi = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else None
    if g.chance(0.4) and len(x.static) == x.array.ndim:
        sizes = [int(e * s) or 1 for e, s in zip(x.array.shape, scales)]
        empty = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else None
        return [x, roi, empty, g.constant(ints(sizes))], attributes
    return [x, roi, g.constant(scales)], attributes


def upsample(g):
    x = image(g, 2, int(g.rng.integers(1, 4)))
    scales = [1.0, 1.0, *g.rng.choice([1, 2, 3], 2).astype(float).tolist()]
    if g.opset < 9:
        return [x], {"mode": "nearest", "scales": scales}
    return [x, g.constant(np.array(scales, np.float32))], {"mode": "nearest"}


def deform_conv(g):
    axes = 2
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.chance(0.3))
    if attributes.pop("auto_pad", None):
        attributes["pads"] = [0] * (2 * axes)
    group, parts = int(g.choose([1, 1, 2])), int(g.choose([1, 1, 2]))
    channels, outer = 2 * int(g.rng.integers(1, 3)), 2 * int(g.rng.integers(1, 3))
    batch, extents = int(g.rng.integers(1, 3)), [int(e) for e in g.rng.integers(max(least, 3), 9, axes)]
    x = g.new_value((np.float32, np.float32, np.float64), shape=[batch, channels, *extents], static=True)
    dtype, points = x.array.dtype.type, kernel[0] * kernel[1]
    dilations = attributes.get("dilations", [1] * axes)
    out = [(e + attributes["pads"][i] + attributes["pads"][i + axes] - (kernel[i] - 1) * dilations[i] - 1)
           // attributes["strides"][i] + 1 for i, e in enumerate(extents)]
    offset = g.new_value((dtype,), shape=[batch, parts * points * 2, *out], low=-1.7, high=1.7, static=True)
    inputs = [x, g.constant(g.numbers([outer, channels // group, *kernel], dtype)), offset]
    bias = g.constant(g.numbers([outer], dtype)) if g.chance(0.5) else None
    mask = g.new_value((dtype,), shape=[batch, parts * points, *out], low=0, high=1, static=True)
    if g.chance(0.5):
        inputs += [bias, mask]
    elif bias is not None:
        inputs.append(bias)
    return inputs, attributes | {"group": group, "offset_group": parts}
