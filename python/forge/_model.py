# SPDX-License-Identifier: Apache-2.0
"""Models and devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ._errors import UsageError
from ._library import Handle, call, check
from ._progress import Reports, function_of
from ._session import Session, make_options
from ._training import Training


@dataclass(frozen=True)
class Device:
    """A device.

    id: what `Model.session` accepts, such as "vulkan:0"
    problem: why it cannot be used; None where it can
    """

    id: str
    name: str
    problem: str | None


def devices() -> list[Device]:
    """Lists the devices of every backend, also those that cannot be used."""
    found = Handle(call("devices_list"), free=call("devices_free"))

    def text(what, index):
        value = call(f"devices_{what}")(found.pointer, index)
        return None if value is None else value.decode()

    count = call("devices_count")(found.pointer)
    return [Device(text("id", i), text("name", i), text("problem", i)) for i in range(count)]


class Model:
    """An immutable model. Sessions of one model on one device share weights and kernels."""

    def __init__(self, handle: Handle):
        self._handle = handle

    @property
    def metadata(self) -> dict[str, str]:
        """What the model says of itself, such as its labels."""
        keys = []
        while (key := call("model_metadata_key")(self._handle.pointer, len(keys))) is not None:
            keys.append(key)
        return {key.decode(): call("model_metadata")(self._handle.pointer, key).decode() for key in keys}

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model as model.bin. Raises Error where the file cannot be written."""
        check(call("model_save")(self._handle.pointer, os.fsencode(path)))

    def session(self, device: str = "auto", *, function: str = "main", outputs: list[str] | None = None,
                dims: dict[str, int] | None = None, precision: str = "exact", memory_limit: int | None = None,
                threads: int | None = None, autotune: float | None = None, fuse: bool = True,
                progress: bool | Callable[[str, int, int], None] | None = None) -> Session:
        """Prepares the model for a device.

        device: "auto", "cpu", "vulkan", "vulkan:1", "vulkan:NAME-PART", "reference" ...; see `devices`
        outputs: names of the values to return, which may be inner ones; None: the model's outputs
        dims: extents of dimensions that are the same in all runs
        precision: "f16" or "bf16": operands of products and convolutions of f32 are rounded to it; "fast": the device
            may round them, and may compute functions approximately; "exact": neither
        memory_limit: bytes of device memory for weights, states and the memory of runs
        threads: of the host; None or 0: all
        autotune: seconds to search for faster kernels each time that shapes are new
        fuse: False: each op is a step of its own, to judge what fusion does
        progress: True: a line of the terminal or the notebook tells how far long work is; or a function that is called
            from any thread with what is done, the number of finished units and their total, and may raise to end it

        Raises DeviceError, RefusedError with every op that cannot run there, UsageError.
        """
        report = function_of(progress)
        reports = None if report is None else Reports(report)
        options = make_options(function=function, outputs=outputs, dims=dims, precision=precision,
                               memory_limit=memory_limit, threads=threads, autotune=autotune, fuse=fuse, reports=reports)
        return Session(self._handle, device, options, reports)

    def training(self, device: str = "auto", *, loss: str = "cross_entropy", optimizer: str = "adam",
                 **options) -> Training:
        """Prepares a copy of the model for training: of its first output, by its parameters.

        loss: "cross_entropy", "mse", "l1", "smooth_l1", "huber", "binary_cross_entropy",
            "binary_cross_entropy_with_logits", "kl_div" or "poisson_nll"
        optimizer: "sgd", "adam", "adamw", "adagrad", "rmsprop", "lion" or "muon"
        options: momentum, nesterov, beta1, beta2, alpha, epsilon, weight_decay: of the optimizer, as in torch.optim;
            clip_value, clip_norm: of the gradients; gradient_norm: True to report it without a limit; accumulate:
            batches of an update; average_decay: of an average of the parameters; precision: "exact", "f16", "bf16" or "fast",
            of products in a step; activation_budget: bytes of the results that a step keeps for its gradients, and
            computes again what does not fit, with sizes: {dimension: number} of the open dimensions; frozen, no_decay:
            lists of parameters; by_adamw: matrices that muon leaves to adamw; rates: factors of the learning rate by
            parameter; function, threads

        Raises UsageError (an option, a prediction that does not fit the loss), DeviceError, RefusedError with the op
        that has no gradient or cannot run there.
        """
        return Training(self._handle, device, {"loss": loss, "optimizer": optimizer, **options})


def load(model: str | os.PathLike | bytes | bytearray | memoryview) -> Model:
    """Reads a model.bin or an ONNX model, from a path or from the content of such a file.

    Raises FileError with the place in the file.
    """
    if isinstance(model, (str, os.PathLike)):
        return Model(Handle(call("model_load"), os.fsencode(model), free=call("model_free")))
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise UsageError(f"a model is a path or bytes, not {type(model).__name__}")
    content = bytes(model)
    return Model(Handle(call("model_load_memory"), content, len(content), free=call("model_free")))
