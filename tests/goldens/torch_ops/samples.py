# SPDX-License-Identifier: Apache-2.0
"""Forge's op, attributes and operands for a call of a function of PyTorch: functions here take what PyTorch's take."""

import math

import torch

from torch_ops.common import NotInTorch


class NotMapped(Exception):
    """What no single op of Forge expresses, with the reason."""


def check(condition, reason):
    if not condition:
        raise NotMapped(reason)


def numbers(*operands):
    """Operands of one type; numbers become tensors of it."""
    types = {x.dtype for x in operands if isinstance(x, torch.Tensor)}
    check(len(types) == 1, "operands of several types: importers promote them")
    dtype = types.pop()
    for x in operands:
        check(isinstance(x, torch.Tensor) or dtype.is_floating_point or dtype.is_complex or
              isinstance(x, int) and not isinstance(x, bool), "a number of another type: importers promote it")
    return [x if isinstance(x, torch.Tensor) else torch.tensor(x, dtype=dtype) for x in operands]


def all_axes(x, dim):
    if dim is None or dim == () or dim == []:
        return list(range(x.ndim))
    return [dim] if isinstance(dim, int) else list(dim)


def same_type(x, dtype):
    check(dtype is None or dtype == x.dtype, "a result of another type: importers add a cast")


def reduce(kind):
    def call(x, dim=None, keepdim=False, *, dtype=None):
        same_type(x, dtype)
        check(x.dtype.is_floating_point or x.dtype.is_complex or kind in ("max", "min") or x.dtype == torch.int64,
              "integers are summed in i64: importers add a cast")
        check(kind == "mean" or x.dtype != torch.bool, "bools are reduced as integers: importers add a cast")
        return "reduce", {"kind": kind, "axes": all_axes(x, dim), "keep_dims": keepdim}, [x]

    return call


def truth(op):
    def call(x, dim=None, keepdim=False):
        check(x.dtype != torch.uint8, "u8 gives u8 in PyTorch")
        return op, {"axes": all_axes(x, dim), "keep_dims": keepdim}, [x]

    return call


def spread(op):
    def call(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        check(correction is None or correction == int(correction), "a correction that is no integer")
        rest = 1 if correction is None and unbiased is not False else int(correction or 0)
        return op, {"axes": all_axes(x, dim), "correction": rest, "keep_dims": keepdim}, [x]

    return call


def arg_reduce(kind):
    def call(x, dim=None, keepdim=False):
        return "arg_reduce", {"kind": kind, "all": dim is None, "axis": -1 if dim is None else dim,
                              "keep_dims": keepdim}, [x]

    return call


def scan(kind):
    def call(x, dim, *, dtype=None):
        same_type(x, dtype)
        check(x.dtype.is_floating_point or x.dtype.is_complex or x.dtype == torch.int64,
              "integers are summed in i64: importers add a cast")
        return "scan", {"kind": kind, "axis": dim}, [x]

    return call


def scan_with_index(kind):
    return lambda x, dim: ("scan_with_index", {"kind": kind, "axis": dim}, [x])


def softmax(op):
    def call(x, dim, dtype=None, **more):
        check(not more, "an attribute of another name")
        same_type(x, dtype)
        return op, {"axis": dim}, [x]

    return call


def sort(x, *args, **more):
    if args and isinstance(args[0], bool) and "stable" not in more:
        raise NotMapped("an order of its own")
    dim, descending = (list(args) + [more.get("dim", -1), more.get("descending", False)])[:2] if len(args) != 1 else \
        (args[0], more.get("descending", False))
    return "sort", {"axis": dim, "descending": descending}, [x]


def topk(x, k, dim=-1, largest=True, sorted=True):
    check(sorted, "results in any order")
    return "top_k", {"k": k, "axis": dim, "largest": largest}, [x]


def kthvalue(x, k, dim=-1, keepdim=False):
    return "kth_value", {"k": k, "axis": dim, "keep_dims": keepdim}, [x]


def clamp(x, min=None, max=None):
    check(not isinstance(min, torch.Tensor) and not isinstance(max, torch.Tensor), "bounds that are tensors")
    return "clamp", {"low": -math.inf if min is None else min, "high": math.inf if max is None else max}, [x]


def pad(x, pad, mode="constant", value=None):
    check(mode == "constant", "modes other than constant of trailing axes")
    before, after = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    return "pad", {"before": before, "after": after, "value": value or 0}, [x]


def index_update(op):
    def call(x, dim, index, source, **more):
        return op, {"axis": dim, **more}, [x, index, source]

    return call


def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    kinds = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min"}
    return "scatter_reduce", {"axis": dim, "include_self": include_self, "kind": kinds[reduce]}, [x, index, src]


def scatter(mode):
    def call(x, dim, index, src=None, *, reduce=None, value=None):
        check(isinstance(src, torch.Tensor) and reduce is None, "a number, or a reduction")
        check(tuple(src.shape) == tuple(index.shape), "more updates than indices")
        return "scatter", {"axis": dim, "mode": mode}, [x, index, src]

    return call


def fourier(op, inverse):
    def call(x, n=None, dim=-1, norm=None):
        check(x.is_complex() == (op != "rfft"), "operands of another type: importers convert them")
        check(not isinstance(dim, (tuple, list)), "several axes")
        attributes = {"axes": [dim], "sizes": [] if n is None else [n], "norm": norm or "backward"}
        return op, {**attributes, "inverse": inverse} if op == "fft" else attributes, [x]

    return call


def fourier_of_axes(op, inverse, standard):
    def call(x, s=None, dim=None, norm=None):
        check(x.is_complex() == (op != "rfft"), "operands of another type: importers convert them")
        axes = list(dim) if dim is not None else standard(x) if s is None else list(range(-len(s), 0))
        attributes = {"axes": axes, "sizes": list(s or []), "norm": norm or "backward"}
        return op, {**attributes, "inverse": inverse} if op == "fft" else attributes, [x]

    return call


def one_number(op, name, standard):
    def call(x, value=standard, inplace=False, **more):
        check(isinstance(value, (int, float)), "a tensor in place of a number")
        return op, {name: more.pop(name, value)}, [x]

    return call


def for_each(axes, v):
    return [v] * axes if isinstance(v, int) else list(v) * (axes // len(v))


def conv(op):
    def call(x, weight, bias=None, stride=1, padding=0, *rest):
        names = ("output_padding", "groups", "dilation") if op == "conv_transpose" else ("dilation", "groups")
        return build(x, weight, bias, stride, padding, **dict(zip(names, rest)))

    def build(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
        axes = weight.ndim - 2
        check(x.ndim == weight.ndim, "an image without a batch")
        check(not isinstance(padding, str), "padding in words")
        attributes = {"strides": for_each(axes, stride), "padding": for_each(axes, padding) * 2,
                      "dilations": for_each(axes, dilation), "groups": groups}
        if op == "conv_transpose":
            attributes["output_padding"] = for_each(axes, output_padding)
        return op, attributes, [x, weight, bias]

    return lambda *args, **more: build(*args, **more) if more else call(*args)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    check(weight is not None or bias is None, "beta without gamma")
    check(weight is None or weight.ndim == 1, "gamma of several axes")
    check(len(normalized_shape) > 0, "no axis")
    return "layer_norm", {"axis": -len(normalized_shape), "epsilon": eps}, [x, weight, bias]


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    return "group_norm", {"groups": num_groups, "epsilon": eps}, [x, weight, bias]


def add_matmul(x, a, b, *, beta=1, alpha=1):
    return "add_matmul", {"alpha": alpha, "beta": beta}, [x, a, b]


def regression(op, *names):
    def call(x, y, *more, reduction="mean", **attributes):
        check(not more and not set(attributes) - set(names), "arguments by place")
        return op, {"reduction": reduction, **attributes}, [x, y]

    return call


def quantile(skip):
    def call(x, q, dim=None, keepdim=False, *, interpolation="linear"):
        check(dim is not None, "of all elements: importers reshape")
        check(isinstance(q, torch.Tensor) and q.ndim == 1, "one quantile: importers drop its axis")
        return "quantile", {"q": q.tolist(), "axis": dim, "keep_dims": keepdim, "interpolation": interpolation,
                            "skip_nan": skip}, [x]

    return call


def along(op, **attributes):
    return lambda x, dim=None, keepdim=False: (
        check(dim is not None, "of all elements: importers reshape"),
        (op, {"axis": dim, "keep_dims": keepdim, **attributes}, [x]))[1]


def roll(x, shifts, dims=()):
    return "roll", {"shifts": for_each(1, shifts) if isinstance(shifts, int) else list(shifts),
                    "axes": for_each(1, dims) if isinstance(dims, int) else list(dims)}, [x]


def permute(x, *dims):
    dims = dims[0] if dims and isinstance(dims[0], (tuple, list)) else dims
    return "transpose", {"permutation": [d % x.ndim for d in dims]}, [x]


def reshape(x, *shape):
    shape = shape[0] if shape and isinstance(shape[0], (tuple, list, torch.Size)) else shape
    return "reshape", {"shape": list(x.reshape(*shape).shape) if shape else []}, [x]


def cat(xs, dim=0, **more):
    check("out" not in more and all(x.ndim == xs[0].ndim for x in xs), "an empty operand of another rank")
    return "concat", {"axis": more.get("dim", dim)}, numbers(*xs)


def stack(xs, dim=0):
    return "stack", {"axis": dim}, numbers(*xs)


def triangle(upper):
    return lambda x, diagonal=0: ("triangle", {"upper": upper, "diagonal": diagonal}, [x])


def diagonal(x, offset=0, dim1=0, dim2=1):
    return "diagonal", {"offset": offset, "axis1": dim1, "axis2": dim2}, [x]


def diff(x, n=1, dim=-1, prepend=None, append=None):
    return "diff", {"n": n, "axis": dim}, [x, prepend, append]


def einsum(equation, *xs):
    xs = xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) else xs
    return "einsum", {"equation": f'"{equation}"'}, numbers(*xs)


def masked_fill(x, mask, value):
    check(not isinstance(value, (torch.Tensor, complex)), "a tensor as the number")
    check(torch.broadcast_shapes(x.shape, mask.shape) == x.shape, "a mask that extends x")
    return "masked_fill", {"value": value}, [x, mask]


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    kinds = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    attributes = {"kind": kinds[mode], "padding": padding_mode, "align_corners": bool(align_corners)}
    return "grid_sample", attributes, [x, grid]


def glu(x, dim=-1):
    return "glu", {"axis": dim}, [x]


def gelu(x, approximate="none"):
    return "gelu", {"tanh_form": approximate == "tanh"}, [x]


def softplus(x, beta=1, threshold=20):
    return "softplus", {"beta": beta, "threshold": threshold}, [x]


def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    same_type(x, dtype)
    return "vector_norm", {"p": ord, "axes": all_axes(x, dim), "keep_dims": keepdim}, [x]


def logsumexp(x, dim, keepdim=False):
    return "log_sum_exp", {"axes": all_axes(x, dim), "keep_dims": keepdim}, [x]


def where(x, condition, y):  # as OpInfo orders them
    return "select", {}, [condition, *numbers(x, y)]


def div(x, y, *, rounding_mode=None):
    check(rounding_mode is None, "a mode of rounding")
    check(not isinstance(x, torch.Tensor) or x.dtype.is_floating_point or x.is_complex(),
          "integers are divided as floats: importers add casts")
    return "div", {}, numbers(x, y)


def scaled(op):
    def call(x, y, *, alpha=1):
        check(alpha == 1, "alpha")
        return op, {}, numbers(x, y)

    return call


def unary_or_binary(op):
    def call(*operands, **more):
        check(not more, "attributes that the op has not")
        return op, {}, numbers(*operands)

    return call


# A name of OpInfo, and of a variant of it after a dot.
MAPPED = {
    "T": lambda x: ("transpose", {"permutation": list(range(x.ndim))[::-1]}, [x]),
    "add": scaled("add"), "addmm": add_matmul, "all": truth("all"), "amax": reduce("max"), "amin": reduce("min"),
    "any": truth("any"), "argmax": arg_reduce("max"), "argmin": arg_reduce("min"),
    "argsort": lambda x, dim=-1, descending=False, stable=True: (
        "arg_sort", {"axis": dim, "descending": descending}, [x]),
    "baddbmm": add_matmul, "bmm": unary_or_binary("matmul"), "cat": cat, "clamp": clamp,
    "cummax": scan_with_index("max"), "cummin": scan_with_index("min"), "cumprod": scan("prod"), "cumsum": scan("sum"),
    "diagonal": diagonal, "diff": diff, "div": div, "einsum": einsum,
    "fft.fft": fourier("fft", False), "fft.fft2": fourier_of_axes("fft", False, lambda x: [-2, -1]),
    "fft.fftn": fourier_of_axes("fft", False, lambda x: list(range(x.ndim))),
    "fft.ifft": fourier("fft", True), "fft.ifft2": fourier_of_axes("fft", True, lambda x: [-2, -1]),
    "fft.ifftn": fourier_of_axes("fft", True, lambda x: list(range(x.ndim))),
    "fft.irfft": fourier("irfft", True), "fft.irfft2": fourier_of_axes("irfft", True, lambda x: [-2, -1]),
    "fft.irfftn": fourier_of_axes("irfft", True, lambda x: list(range(x.ndim))),
    "fft.rfft": fourier("rfft", False), "fft.rfft2": fourier_of_axes("rfft", False, lambda x: [-2, -1]),
    "fft.rfftn": fourier_of_axes("rfft", False, lambda x: list(range(x.ndim))),
    "flip": lambda x, dims: ("flip", {"axes": list(dims)}, [x]),
    "gather": lambda x, dim, index: ("gather_elements", {"axis": dim}, [x, index]),
    "index_add": index_update("index_add"), "index_copy": index_update("index_copy"),
    "index_select": lambda x, dim, index: ("gather", {"axis": dim}, [x, index]),
    "kthvalue": kthvalue, "linalg.vector_norm": vector_norm, "log_softmax": softmax("log_softmax"),
    "logcumsumexp": scan("log_sum_exp"), "logsumexp": logsumexp, "masked_fill": masked_fill,
    "mean": reduce("mean"), "median": along("median"), "mm": unary_or_binary("matmul"), "mode": along("mode"),
    "nanmedian": along("median", skip_nan=True), "nanquantile": quantile(True),
    "nn.functional.celu": one_number("celu", "alpha", 1.0), "nn.functional.conv1d": conv("conv"),
    "nn.functional.conv2d": conv("conv"), "nn.functional.conv3d": conv("conv"),
    "nn.functional.conv_transpose1d": conv("conv_transpose"), "nn.functional.conv_transpose2d": conv("conv_transpose"),
    "nn.functional.conv_transpose3d": conv("conv_transpose"), "nn.functional.elu": one_number("elu", "alpha", 1.0),
    "nn.functional.gelu": gelu, "nn.functional.glu": glu, "nn.functional.grid_sample": grid_sample,
    "nn.functional.group_norm": group_norm, "nn.functional.huber_loss": regression("huber_loss", "delta"),
    "nn.functional.l1_loss": regression("l1_loss"), "nn.functional.layer_norm": layer_norm,
    "nn.functional.mse_loss": regression("mse_loss"), "nn.functional.pad.constant": pad,
    "nn.functional.smooth_l1_loss": regression("smooth_l1_loss", "beta"),
    "nn.functional.soft_margin_loss": regression("soft_margin_loss"),
    "nn.functional.softplus": softplus, "permute": permute, "quantile": quantile(False), "reshape": reshape,
    "roll": roll, "scatter": scatter("set"), "scatter_add": scatter("add"), "scatter_reduce.amax": scatter_reduce,
    "scatter_reduce.amin": scatter_reduce, "scatter_reduce.mean": scatter_reduce,
    "scatter_reduce.prod": scatter_reduce, "scatter_reduce.sum": scatter_reduce, "softmax": softmax("softmax"),
    "sort": sort, "stack": stack, "std": spread("standard_deviation"), "sub": scaled("sub"), "sum": reduce("sum"),
    "tile": lambda x, dims: ("tile", {"repeats": [1] * (x.ndim - len(dims)) + list(dims)}, [x]),
    "topk": topk, "tril": triangle(False), "triu": triangle(True), "var": spread("variance"), "where": where,
}


def call_of(name, variant, sample, plain):
    """The op, attributes and operands of a sample.  plain: ops without attributes by the name of PyTorch's function.
    errors: NotMapped"""
    function = MAPPED.get(f"{name}.{variant}" if variant else name) or MAPPED.get(name)
    if function is None and name in plain and not variant:
        function = unary_or_binary(plain[name])
    check(function is not None, "no op of its own here")
    operands = (sample.input, *sample.args)
    check(not any(isinstance(x, torch.Tensor) and x.is_conj() for x in operands), "a lazy conjugate")
    try:
        op, attributes, operands = function(sample.input, *sample.args, **sample.kwargs)
    except (TypeError, NotInTorch) as error:
        raise NotMapped(f"arguments: {error}") from error
    check(operands[0].ndim > 0 or not {"axis", "axes"} & set(attributes), "a number with an axis: importers reshape")
    check(not any(isinstance(v, complex) for v in attributes.values()), "an attribute that is a complex number")
    check(not isinstance(attributes.get("alpha"), bool), "an attribute that is a bool")
    return op, attributes, operands
