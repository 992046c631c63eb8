# SPDX-License-Identifier: Apache-2.0
"""How each ATen overload becomes nodes: one table for each family.

A key is an overload ("aten.max.dim") or a packet, for all of its overloads ("aten.relu"). A rule is called with the
`Translator` and the arguments of the call: Values for tensors, numbers, sizes, lists. It returns a Value, or a tuple of
them where the call has several results. It raises Unsupported with a reason.
"""

from . import (attention, backward, complex_numbers, control, creation, elementwise, indexing, losses, movement, norms,
               products, quantization, random_numbers, recurrent, reductions, sparse, windows)

RULES = {}
for family in (elementwise, reductions, movement, creation, indexing, products, windows, norms, attention, recurrent,
               losses, complex_numbers, quantization, sparse, backward, control, random_numbers):
    assert not RULES.keys() & family.RULES.keys(), RULES.keys() & family.RULES.keys()
    RULES.update(family.RULES)
