# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a call of the library: Python's own handler runs only after the call, which this ends early."""

from __future__ import annotations

import os
import signal
import socket
import threading


class _Watcher:
    """A thread that learns of signals through a socket and cancels the call in progress."""

    def __init__(self):
        self._lock = threading.Lock()
        self._cancel = None
        self._missed = b""
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        threading.Thread(target=self._watch, name="forge-interrupt", daemon=True).start()

    def _watch(self):
        while numbers := self._read.recv(64):
            with self._lock:
                self._missed += numbers
                if signal.SIGINT in numbers and self._cancel is not None:
                    self._cancel()

    def call(self, work, cancel):
        """Calls `work`; Ctrl-C meanwhile calls `cancel` from another thread."""
        before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        with self._lock:
            self._cancel = cancel
        try:
            return work()
        finally:
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            with self._lock:
                self._cancel = None
                missed, self._missed = self._missed, b""
            if missed and before != -1:
                _pass_on(before, missed)


def _pass_on(descriptor, numbers):
    """Tells the owner of the wakeup descriptor (an event loop) what came while it was not set."""
    with socket.socket(fileno=descriptor) as owner:
        try:
            owner.send(numbers)
        except OSError:
            pass  # a full buffer has woken the owner already
        finally:
            owner.detach()


_watcher = None
_process = None


def interruptible(work, cancel):
    """Calls `work`. In the main thread, Ctrl-C calls `cancel` and then raises KeyboardInterrupt as usual."""
    global _watcher, _process  # noqa: PLW0603 (one thread for each process)
    if threading.current_thread() is not threading.main_thread():
        return work()
    if _watcher is None or _process != os.getpid():
        _watcher, _process = _Watcher(), os.getpid()
    return _watcher.call(work, cancel)
