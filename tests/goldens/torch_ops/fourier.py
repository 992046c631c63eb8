# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, and functions of complex numbers."""

import math

import torch


def dft(a, re, im=None):
    y = (torch.fft.ifft if a["inverse"] else torch.fft.fft)(
        torch.complex(re, torch.zeros_like(re) if im is None else im), dim=a["axis"],
        norm="forward" if a["inverse"] else "backward")
    return y.real, y.imag


def fourier(forward, inverse):
    def run(a, x):
        backwards = a.get("inverse", forward is None)
        norm = a["norm"] if a["norm"] != "none" else "forward" if backwards else "backward"
        return (inverse if backwards else forward)(x, a["sizes"] or None, a["axes"], norm)

    return run


def nan_in_both(function):
    """NaN where a part of the operand is; C gives numbers for a NaN beside an infinity."""

    def run(a, x):
        y = function(x)
        return torch.where(x.isnan(), torch.full_like(y, math.nan), y) if x.is_complex() else y

    return run


def overflowing(function, least=-math.inf):
    """0 for complex numbers of which PyTorch's formula overflows on the way, to NaN."""

    def run(a, x):
        y = function(x)
        if not x.is_complex():
            return y
        return torch.where(y.isnan() & (x.real < -700) & (x.real >= least), torch.zeros_like(y), y)

    return run
