# SPDX-License-Identifier: Apache-2.0
"""Reports of long work."""

from __future__ import annotations

import sys
import time

from ._library import PROGRESS


class Reports:
    """Passes what the library reports on to a function; an exception in it ends the work and is raised after it."""

    def __init__(self, function):
        self._function = function
        self._failure = None
        self.cancel = None  # ends the work
        self.callback = PROGRESS(self._report)

    def _report(self, _, what, done, total):
        if self._failure is not None:
            return
        try:
            self._function(what.decode(), done, total)
        except BaseException as failure:  # KeyboardInterrupt, too
            self._failure = failure
            if self.cancel is not None:
                self.cancel()

    def raise_failure(self):
        """Raises what the function raised."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class Line:
    """A line of a terminal, or of a notebook, that tells how far work is."""

    INTERVAL = 0.1  # seconds between two changes

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._shown = ""
        self._next = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and now < self._next:
            return
        self._next = now + self.INTERVAL
        text = "" if done >= total else f"{what} {done} of {total}"
        self._stream.write("\r" + text.ljust(len(self._shown)) + ("" if text else "\r"))
        self._stream.flush()
        self._shown = text


def function_of(progress):
    """What `progress` of Model.session stands for: a function or None"""
    if progress is not True:
        return progress or None
    watched = sys.stderr is not None and sys.stderr.isatty()
    return Line() if watched or "ipykernel" in sys.modules else None
