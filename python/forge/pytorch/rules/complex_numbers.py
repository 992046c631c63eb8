# SPDX-License-Identifier: Apache-2.0
"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from .elementwise import COMPLEX

COMPLEX_OF = {"f32": "c64", "f64": "c128"}
OTHER_NORM = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def only_complex(op):
    """The op on complex numbers; real ones stay"""
    return lambda t, x: t.op(op, x) if x.dtype in COMPLEX else x


def angle(t, x):
    """The argument; of a real number 0 or pi"""
    return t.op("angle", *t.promoted(x, kind="float"))


def _as_float(t, x):
    return x if x.dtype in ("f32", "f64") else t.cast(x, "f32")


def _as_complex(t, x):
    if x.dtype in COMPLEX:
        return x
    x = _as_float(t, x)
    return t.cast(x, COMPLEX_OF[x.dtype])


def transform(op, inverse=None, swap_norm=False, conjugate=None, many=None):
    """A Fourier transform.

    inverse: an attribute of the op     conjugate: "before" or "after"
    many: the default axes of the overloads of several axes; None for those of one
    """

    def rule(t, x, size=None, dim="default", norm=None):
        x = _as_float(t, x) if op == "rfft" else _as_complex(t, x)
        x = t.op("conj", x) if conjugate == "before" else x
        axes = _axes(x, size, dim, many)
        sizes = [] if size is None else [size] if many is None else size
        sizes = [x.shape[axis] if n == -1 else t.dim(n) for axis, n in zip(axes, sizes)]
        norm = OTHER_NORM[norm or "backward"] if swap_norm else norm or "backward"
        attributes = {} if inverse is None else {"inverse": inverse}
        y = t.op(op, x, axes=axes, sizes=sizes, norm=norm, **attributes)
        return t.op("conj", y) if conjugate == "after" else y

    return rule


def _axes(x, size, dim, many):
    if many is None:
        return [-1 if dim == "default" else dim]
    if dim not in ("default", None):
        return list(dim)
    if many == "two":
        return [-2, -1]
    return list(range(x.rank if size is None else len(size)))[:x.rank] if size is None else list(range(-len(size), 0))


# What the primitive calls divide by, 0, 1, 2: nothing, the root of the number of elements, and the number itself.
NORMS = {False: ("backward", "ortho", "forward"), True: ("forward", "ortho", "backward")}  # by whether it is inverse


def real_to_complex(t, x, dim, normalization, onesided):
    """aten._fft_r2c"""
    if onesided:
        return t.op("rfft", x, axes=dim, norm=NORMS[False][normalization])
    return complex_to_complex(t, _as_complex(t, x), dim, normalization, True)


def complex_to_complex(t, x, dim, normalization, forward):
    """aten._fft_c2c"""
    return t.op("fft", x, axes=dim, norm=NORMS[not forward][normalization], inverse=not forward)


def complex_to_real(t, x, dim, normalization, last_dim_size):
    """aten._fft_c2r"""
    sizes = [x.shape[axis] for axis in dim[:-1]] + [t.dim(last_dim_size)]
    return t.op("irfft", x, axes=dim, sizes=sizes, norm=NORMS[True][normalization])


def shifted(sign):
    """fft_fftshift: half of each axis moved to its other end"""

    def rule(t, x, dim=None):
        axes = list(range(x.rank)) if dim is None else [dim] if isinstance(dim, int) else dim
        sizes = [t.fixed(x.shape[axis], "an extent") for axis in axes]
        return t.op("roll", x, shifts=[n // 2 if sign > 0 else (n + 1) // 2 for n in sizes], axes=axes)

    return rule


def _each(suffix, many):
    return {f"aten.fft_fft{suffix}": transform("fft", False, many=many),
            f"aten.fft_ifft{suffix}": transform("fft", True, many=many),
            f"aten.fft_rfft{suffix}": transform("rfft", many=many),
            f"aten.fft_irfft{suffix}": transform("irfft", many=many)}


RULES = {
    "aten.real": only_complex("real"),
    "aten.imag": only_complex("imag"),
    "aten.conj": only_complex("conj"),
    "aten._conj": only_complex("conj"),
    "aten.conj_physical": only_complex("conj"),
    "aten._conj_physical": only_complex("conj"),
    "aten.angle": angle,
    "aten.complex": lambda t, re, im: t.op("complex", *(t.expand(x, t.out_shape()) for x in (re, im))),
    "aten.polar": lambda t, re, argument: t.op("polar", *(t.expand(x, t.out_shape()) for x in (re, argument))),
    "aten.view_as_real": lambda t, x: t.op("view_as_real", x),
    "aten.view_as_complex": lambda t, x: t.op("view_as_complex", x),
    **_each("", None),
    **_each("2", "two"),
    **_each("n", "all"),
    "aten._fft_r2c": real_to_complex,
    "aten._fft_c2c": complex_to_complex,
    "aten._fft_c2r": complex_to_real,
    "aten.fft_hfft": transform("irfft", swap_norm=True, conjugate="before"),
    "aten.fft_ihfft": transform("rfft", swap_norm=True, conjugate="after"),
    "aten.fft_fftshift": shifted(1),
    "aten.fft_ifftshift": shifted(-1),
}
