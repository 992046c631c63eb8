# SPDX-License-Identifier: Apache-2.0
"""PyTorch in: `forge.export`, and the backend "forge" of torch.compile. Importing this package imports torch."""

from .export import export
from .translator import UnsupportedError

__all__ = ["UnsupportedError", "export"]
