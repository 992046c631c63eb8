# SPDX-License-Identifier: Apache-2.0
"""Sessions: a model on a device."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from ctypes import c_char_p, c_int64, c_void_p, memmove
from dataclasses import dataclass

from ._arrays import View, is_torch, named_tensors, new_array, shape_of, view_for_output, view_of
from ._errors import UsageError
from ._interrupt import interruptible
from ._library import Handle, Input, Output, call, check
from ._progress import Reports


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    dtype: "f32", "i64", "bool" ...
    shape: numbers, and names or expressions of dimensions that vary; None where the rank is known only after a run
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None

    def __str__(self):
        shape = "*" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype}[{shape}]"


def make_options(*, function, outputs, dims, precision, memory_limit, threads, autotune, fuse, reports):
    """The options of a session; what is None has its default."""
    options = Handle(call("options_create"), free=call("options_free"))

    def put(name, *values):
        check(call(f"options_{name}")(options.pointer, *values))

    put("set_function", function.encode())
    for name in outputs or ():
        put("add_output", name.encode())
    for name, extent in (dims or {}).items():
        put("set_dim", name.encode(), extent)
    put("set_precision", precision.encode())
    if memory_limit is not None:
        put("set_memory_limit", memory_limit)
    if threads is not None:
        put("set_threads", threads)
    if autotune is not None:
        put("set_autotune", autotune)
    if not fuse:
        put("set_fusion", 0)
    if reports is not None:
        put("set_progress", reports.callback, None)
    return options


def _ports(session, kind):
    def ask(what, *arguments):
        return call(f"session_{kind}_{what}")(session, *arguments)

    ports = []
    for i in range(ask("count")):
        rank = ask("rank", i)
        shape = None
        if rank >= 0:
            extents = ask("shape", i)[:rank]
            shape = tuple(e if e >= 0 else ask("symbol", i, axis).decode() for axis, e in enumerate(extents))
        ports.append(Port(ask("name", i).decode(), ask("dtype", i).decode(), shape))
    return ports


class Session:
    """A model on a device; made by `Model.session`. A context manager: leaving it frees the session.

    inputs, outputs: the model's, in its order
    device: the name of the device

    Threads may share a session; its calls wait for each other, without the interpreter's lock. Sessions run
    concurrently. After a fork the child makes new sessions.
    """

    def __init__(self, model: Handle, device: str, options: Handle, reports: Reports | None = None):
        self._reports = reports
        self._handle = Handle(call("session_create_with"), model.pointer, device.encode(), options.pointer,
                              free=call("session_free"))
        if reports is not None:
            reports.raise_failure()
            reports.cancel = self.cancel
        self._lock = threading.Lock()  # between a binding and the run that uses it
        self._bound = None  # the shapes of the newest binding
        self._shapes: list[tuple[int, ...]] = []  # of the outputs, at that binding
        self.inputs: list[Port] = _ports(self._handle.pointer, "input")
        self.outputs: list[Port] = _ports(self._handle.pointer, "output")
        self.device: str = call("session_device_name")(self._handle.pointer).decode()
        self._names = [port.name for port in self.inputs]
        self._in_parts = bool(call("session_runs_in_parts")(self._handle.pointer))
        self._inputs = (Input * len(self.inputs))()
        self._outputs = (Output * len(self.outputs))()

    def run(self, *inputs, out: Mapping | None = None, **named):
        """Runs the model; returns a dict of arrays by the names of the outputs.

        inputs: arrays in the model's order, or one mapping of names to arrays; `named`: arrays by name. Arrays are of
            numpy, of torch, or of what supports DLPack; they are used without a copy where they are dense and in host
            memory. Python numbers and lists become arrays of the input's element type.
        out: arrays that outputs are written into, by name

        Outputs are tensors of torch where an input is one, otherwise arrays of numpy; both support DLPack.
        Raises UsageError with what was expected. Ctrl-C ends the run.
        """
        given = self._match(inputs, named)
        views = [self._view(port, given[port.name]) for port in self.inputs]
        as_torch = any(is_torch(value) for value in given.values())
        with self._lock:
            pointer = self._open()
            if self._in_parts:
                return self._run_in_parts(pointer, views, out or {}, as_torch)
            for slot, view in zip(self._inputs, views):
                slot.shape, slot.rank, slot.data, slot.bytes = view.extents, len(view.shape), view.address, view.bytes
            self._bind_for(pointer, tuple(view.shape for view in views))
            arrays = self._arrays(out or {}, as_torch, [port.dtype for port in self.outputs])
            for slot, (_, view) in zip(self._outputs, arrays):
                slot.data, slot.bytes = view.address, view.bytes
            self._call(pointer, "session_run_into", self._inputs, len(views), self._outputs, len(arrays))
        return {port.name: array for port, (array, _) in zip(self.outputs, arrays)}

    def _run_in_parts(self, pointer, views, out, as_torch):
        """Runs a model whose outputs have shapes only when they are there."""
        tensors, given = named_tensors({port.name: view for port, view in zip(self.inputs, views)})
        made = (c_void_p * len(self.outputs))()
        self._call(pointer, "session_run", given, len(tensors), made, len(made))
        try:
            self._shapes = [shape_of(t) for t in made]
            dtypes = [call("tensor_dtype")(t).decode() for t in made]
            arrays = self._arrays(out, as_torch, dtypes)
            for tensor, (_, view) in zip(made, arrays):
                memmove(view.address, call("tensor_data")(tensor), view.bytes)
        finally:
            for tensor in made:
                call("tensor_free")(tensor)
        return {port.name: array for port, (array, _) in zip(self.outputs, arrays)}

    def bind(self, **extents: int) -> None:
        """Compiles for these extents of the model's dimensions ahead of the first run. Raises UsageError."""
        names = (c_char_p * len(extents))(*(name.encode() for name in extents))
        values = (c_int64 * len(extents))(*extents.values())
        with self._lock:
            self._bound = None
            self._call(self._open(), "session_bind", names, values, len(extents))

    def set_step_value(self, name: str, value: int) -> None:
        """Gives a step value that no input's shape tells, such as the position in a cache, for later runs."""
        with self._lock:
            self._bound = None
            check(call("session_set_step_value")(self._open(), name.encode(), value))

    def cancel(self) -> None:
        """Ends the call in progress in another thread, which raises Error."""
        pointer = self._handle.pointer
        if pointer is not None:
            call("session_cancel")(pointer)

    def close(self) -> None:
        """Frees the session, after the call in progress."""
        with self._lock:
            self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        if self._handle.pointer is None:
            raise UsageError("the session is closed")
        return self._handle.pointer

    def _call(self, pointer, name, *arguments):
        function = call(name)
        error = interruptible(lambda: function(pointer, *arguments), lambda: call("session_cancel")(pointer))
        try:
            check(error)
        finally:
            if self._reports is not None:
                self._reports.raise_failure()

    def _match(self, inputs, named):
        """Inputs by name, of which none is missing or unknown."""
        if len(inputs) == len(self._names) and not named and not (inputs and isinstance(inputs[0], Mapping)):
            return dict(zip(self._names, inputs))
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            given = dict(inputs[0])
        elif len(inputs) > len(self.inputs):
            raise UsageError(f"the model has {len(self.inputs)} inputs, but {len(inputs)} are given")
        else:
            given = {port.name: value for port, value in zip(self.inputs, inputs)}
        twice = given.keys() & named.keys()
        given.update(named)
        names = self._names
        wrong = [name for name in given if name not in names] or sorted(twice)
        if wrong or len(given) < len(names):
            problem = (f"input '{wrong[0]}' is {'given twice' if twice else 'unknown'}" if wrong else
                       f"input '{next(name for name in names if name not in given)}' is missing")
            raise UsageError(f"{problem}; the model wants {', '.join(map(str, self.inputs)) or 'none'}")
        return given

    @staticmethod
    def _view(port, value) -> View:
        try:
            view = view_of(value, port.dtype)
        except (UsageError, TypeError, ValueError, BufferError) as error:
            raise UsageError(f"input '{port.name}': {error}") from error
        if view.dtype != port.dtype:
            raise UsageError(f"input '{port.name}' is {view.type()}, but the model wants {port}")
        return view

    def _bind_for(self, pointer, shapes):
        if shapes == self._bound:
            return
        self._bound = None
        self._call(pointer, "session_bind_inputs", self._inputs, len(shapes))
        self._shapes = []
        for i in range(len(self.outputs)):
            shape = call("session_bound_output_shape")(pointer, i)
            self._shapes.append(tuple(shape[:call("session_output_rank")(pointer, i)]))
        self._bound = shapes

    def _arrays(self, out, as_torch, dtypes):
        """An array and its view for each output."""
        unknown = [name for name in out if all(name != port.name for port in self.outputs)]
        if unknown:
            raise UsageError(f"output '{unknown[0]}' is unknown; the model has {', '.join(map(str, self.outputs))}")
        arrays = []
        for port, shape, dtype in zip(self.outputs, self._shapes, dtypes):
            if port.name not in out:
                arrays.append(new_array(dtype, shape, as_torch))
                continue
            view = view_for_output(out[port.name])
            if view.dtype != dtype or view.shape != shape:
                wanted = View(dtype, shape, 0, 0, None).type()
                raise UsageError(f"output '{port.name}' is {wanted}, but the array for it is {view.type()}")
            arrays.append((out[port.name], view))
        return arrays
