# SPDX-License-Identifier: Apache-2.0
"""Forge: one model file, any device, the same answers.

    import forge
    session = forge.load("model.bin").session(device="vulkan")
    outputs = session.run(image=array)

Importing this needs neither numpy nor torch. Errors are `forge.Error`; its subclasses tell what went wrong.
"""

from __future__ import annotations

from ._errors import DeviceError, Error, FileError, RefusedError, UsageError
from ._graph import Graph, Value, ops
from ._library import version
from ._model import Device, Model, devices, load
from ._session import Port, Session
from ._training import Grades, Training

__version__ = version()
__all__ = ["Device", "DeviceError", "Error", "FileError", "Grades", "Graph", "Model", "Port", "RefusedError", "Session",
           "Training", "UsageError", "Value", "devices", "export", "load", "ops"]


def export(module, args=(), kwargs=None, *, dynamic_shapes=None, path=None):
    """Exports a PyTorch module, or a `torch.export.ExportedProgram`, to a model. Needs torch.

    args, kwargs: example inputs of the module, as torch.export.export takes them
    dynamic_shapes: the axes whose extents vary, as torch.export.export takes them; a `Dim`'s name becomes the
        dimension's name
    path: where to write model.bin; None writes nothing

    Returns the Model. Its inputs and outputs have the names of the module's. Weights are not copied: the Model uses the
    memory of the module's tensors, so do not change them in place while it is in use.

    Raises forge.pytorch.UnsupportedError, which lists every operator that has no counterpart, with its count and the
    modules that call it; nothing is written then.
    """
    from .pytorch.export import export as export_module  # noqa: PLC0415 (torch is loaded only here)

    return export_module(module, args, kwargs, dynamic_shapes=dynamic_shapes, path=path)
