# SPDX-License-Identifier: Apache-2.0
"""Exports a module, runs it on devices and compares with PyTorch."""

import copy
import dataclasses
import warnings

import torch
from torch.utils import _pytree as pytree

import forge

warnings.filterwarnings("ignore")
RTOL, ATOL = 1e-4, 1e-5  # relative to the element, and to the largest one
MOST_ERRORS = 4  # of PyTorch in f32, where a module's own rounding is beyond these bounds


@dataclasses.dataclass
class Outcome:
    """What became of a module.

    refused: why it was not exported; "" where it was
    devices: "equal" or what differs, by device
    """

    id: str
    refused: str = ""
    devices: dict = dataclasses.field(default_factory=dict)


def tensors_of(result):
    """The tensors of a module's result, and numbers as tensors; the integers of quantised ones."""
    tensors = [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(result) if leaf is not None]
    return [tensor.int_repr() if tensor.is_quantized else tensor for tensor in tensors]


def difference(got, expected, floor=1e-30):
    """"" where they are equal within the bound, else what differs.

    floor: a size of elements; where all are smaller the bound is as for it
    """
    if list(got.shape) != list(expected.shape):
        return f"shape {list(got.shape)} instead of {list(expected.shape)}"
    if got.dtype != expected.dtype:
        return f"{got.dtype} instead of {expected.dtype}"
    wide = torch.complex128 if expected.is_complex() else torch.float64
    got, expected = got.to(wide), expected.to(wide)
    finite = expected[torch.isfinite(expected)].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    if torch.allclose(got, expected, rtol=RTOL, atol=ATOL * max(scale, floor), equal_nan=True):
        return ""
    return f"differs by {float((got - expected).abs().nan_to_num().max()):.3g} of {scale:.3g}"


def first_line(error):
    """The first sentence of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, forge.RefusedError) and len(lines) > 1:
        return "; ".join(lines[1:])
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def run(session, inputs):
    """The outputs in the model's order, for inputs in the module's order of which some may not be inputs of the model."""
    result = session.run(*inputs[:len(session.inputs)])
    return [torch.as_tensor(result[port.name]) for port in session.outputs]


def compare(identifier, module, variants, devices, dynamic_shapes=None, kwargs=None):
    """Exports with the first of the variants of the arguments, and runs and compares all of them.

    variants: (args, kwargs) each
    """
    outcome = Outcome(identifier)
    args, kwargs = variants[0]
    try:
        model = forge.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    except Exception as error:  # torch.export raises whatever it likes
        outcome.refused = first_line(error)
        return outcome
    for device in devices:
        outcome.devices[device] = _on_device(model, module, variants, device)
    return outcome


@torch.no_grad()
def rounds_alike(got, expected, module, args, kwargs):
    """Are the results about as near to those in f64 as PyTorch's? Deep modules amplify what each layer rounds."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x,
                                        (args, kwargs))
    try:
        exact = tensors_of(copy.deepcopy(module).double()(*args, **kwargs))
    except Exception:  # a module that insists on f32
        return False
    return getattr(module, "as_near", _as_near)(got, expected, exact)


def _as_near(got, expected, exact):
    """Are results in f32 as near to the exact ones as those that are expected? A module may have a rule of its own."""
    return all(x.dtype == y.dtype == torch.float32 and x.shape == y.shape == e.shape
               and _error(x, e) <= MOST_ERRORS * _error(y, e) for x, y, e in zip(got, expected, exact))


def _error(x, exact):
    return float((x.double() - exact).abs().max()) if exact.numel() else 0.0


def _problem(session, module, args, kwargs):
    with torch.no_grad():
        expected = tensors_of(module(*args, **kwargs))
    got = run(session, [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)])
    if len(got) != len(expected):
        return f"{len(got)} outputs instead of {len(expected)}"
    problems = [p for p in map(difference, got, expected) if p]
    return "" if not problems or rounds_alike(got, expected, module, args, kwargs) else problems[0]


def _on_device(model, module, variants, device):
    try:
        with model.session(device=device) as session:
            problems = filter(None, (_problem(session, module, *variant) for variant in variants))
            return next(problems, "equal")
    except forge.Error as error:
        return first_line(error)


def print_table(outcomes, devices):
    """A line for each, and the sums."""
    width = max(len(o.id) for o in outcomes)
    for o in outcomes:
        cells = f"not exported: {o.refused}" if o.refused else "  ".join(
            f"{device} {o.devices[device]}" for device in devices)
        print(f"{o.id:{width}}  {cells}"[:400], flush=True)
    exported = [o for o in outcomes if not o.refused]
    counts = ", ".join(f"{sum(o.devices[d] == 'equal' for o in exported)} equal on {d}" for d in devices)
    print(f"{len(outcomes)} modules: {len(exported)} exported, {counts}")
