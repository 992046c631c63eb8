# SPDX-License-Identifier: Apache-2.0
"""What cannot be exported."""

from __future__ import annotations

import collections

from .._errors import RefusedError


class Unsupported(Exception):
    """Raised by a rule: this call has no counterpart, for this reason."""


class UnsupportedError(RefusedError):
    """The program calls operators that have no counterpart.

    problems: {(operator, reason): modules that call it, once for each call}
    nodes: the calls
    """

    def __init__(self, problems: dict[tuple[str, str], list[str]], nodes=()):
        self.problems, self.nodes = problems, list(nodes)
        lines = []
        for (operator, reason), modules in sorted(problems.items(), key=lambda item: (-len(item[1]), item[0])):
            counts = collections.Counter(modules)
            places = ", ".join(f"{name or 'the module itself'}{f' ({n})' if n > 1 else ''}"
                               for name, n in counts.most_common(4))
            more = f" and {len(counts) - 4} more" if len(counts) > 4 else ""
            lines.append(f"  {len(modules)} x {operator}: {reason}; in {places}{more}")
        super().__init__("these operators cannot be exported:\n" + "\n".join(lines))
