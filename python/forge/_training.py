# SPDX-License-Identifier: Apache-2.0
"""Models in training."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from ctypes import byref, c_void_p, memmove
from dataclasses import dataclass

from ._arrays import named_tensors, new_array, shape_of, view_of
from ._errors import UsageError
from ._interrupt import interruptible
from ._library import Grades as RawGrades
from ._library import Handle, call, check


@dataclass(frozen=True)
class Grades:
    """What a batch gave: means over its samples.

    correct: how many samples, with cross_entropy; None with other losses
    gradient_norm: of a step that updates the parameters, where it was asked for or limited; otherwise None
    """

    loss: float
    correct: float | None
    gradient_norm: float | None


def _tensors(arrays):
    """Tensors of the library, named."""
    views = {}
    for name, value in arrays.items():
        try:
            views[name] = view_of(value, "f32")
        except (UsageError, TypeError, ValueError, BufferError) as error:
            raise UsageError(f"'{name}': {error}") from error
    return named_tensors(views)


class Training:
    """A model in training on a device; made by `Model.training`. The model itself stays as it is.

    Threads may share it; its calls wait for each other. Ctrl-C ends a call.
    """

    def __init__(self, model: Handle, device: str, options: Mapping):
        text = json.dumps(options).encode()
        self._handle = Handle(call("training_create"), model.pointer, device.encode(), text, free=call("training_free"))
        self._lock = threading.Lock()

    def step(self, learning_rate: float, **batch) -> Grades:
        """Trains on a batch.

        batch: arrays by the names of the model's inputs, and `label`: int64 classes with cross_entropy, otherwise what
            the model should predict

        Raises UsageError with what was expected.
        """
        return self._grade("training_step", batch, learning_rate)

    def evaluate(self, **batch) -> Grades:
        """Grades a batch by the parameters, or by their averages where those are kept; changes nothing."""
        return self._grade("training_evaluate", batch)

    def variables(self) -> dict:
        """The parameters and the states of the optimizer, by name, as arrays of numpy."""
        with self._lock:
            made = (c_void_p * call("training_variable_count")(self._handle.pointer))()
            self._call("training_read", made, len(made))
        try:
            return {call("tensor_name")(t).decode(): _array_of(t) for t in made}
        finally:
            for tensor in made:
                call("tensor_free")(tensor)

    def load(self, variables: Mapping) -> None:
        """Continues from what `variables` returned. Raises UsageError where it is of another model."""
        tensors, pointers = _tensors(variables)
        with self._lock:
            self._call("training_write", pointers, len(tensors))

    def model(self):
        """Returns the model with the trained parameters, or with their averages where those are kept."""
        from ._model import Model  # noqa: PLC0415 (which imports this module)

        with self._lock:
            return Model(Handle(call("training_model"), self._handle.pointer, free=call("model_free")))

    def _grade(self, name, batch, *more):
        tensors, pointers = _tensors(batch)
        grades = RawGrades()
        with self._lock:
            self._call(name, pointers, len(tensors), *more, byref(grades))
        correct, norm = (None if v < 0 else v for v in (grades.correct, grades.gradient_norm))
        return Grades(grades.loss, correct, norm)

    def _call(self, name, *arguments):
        pointer = self._handle.pointer
        check(interruptible(lambda: call(name)(pointer, *arguments), lambda: call("training_cancel")(pointer)))


def _array_of(tensor):
    array, view = new_array(call("tensor_dtype")(tensor).decode(), shape_of(tensor), as_torch=False)
    memmove(view.address, call("tensor_data")(tensor), view.bytes)
    return array
