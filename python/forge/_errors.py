# SPDX-License-Identifier: Apache-2.0
"""Exceptions. Each has the sentence of the library."""

from __future__ import annotations


class Error(Exception):
    """The work failed. The subclasses are more specific causes.

    code: the exit status that the command-line tools have for it
    """

    code = 1


class UsageError(Error, ValueError):
    """A wrong name, element type or shape, or an extent that is not bound."""

    code = 2


class FileError(Error):
    """The file does not exist or is malformed."""

    code = 3


class DeviceError(Error):
    """The device is not available."""

    code = 4


class RefusedError(Error):
    """The model cannot run on this device, or exceeds its memory."""

    code = 5


OF_CODE = {kind.code: kind for kind in (Error, UsageError, FileError, DeviceError, RefusedError)}
