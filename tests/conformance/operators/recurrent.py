# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks."""

import numpy as np


def recurrent(gates, states, **attributes):
    def generate(g):
        directions, hidden, features, batch, steps = (int(n) for n in g.rng.integers([1, 1, 1, 1, 1], [3, 6, 5, 4, 6]))
        batch_first = g.opset >= 14 and g.chance(0.3)
        shape = [batch, steps, features] if batch_first else [steps, batch, features]
        x = g.new_value((np.float32,), shape=shape, open_axes=[0, 1])
        given = {name: draw(g, directions) for name, draw in attributes.items()}
        state = [batch, directions, hidden] if batch_first else [directions, batch, hidden]
        operands = [([directions, gates * hidden, features], 1), ([directions, gates * hidden, hidden], 1),
                    ([directions, 2 * gates * hidden], 0.6)]
        inputs = [x] + [g.constant(g.numbers(s, np.float32, -1, 1)) if g.chance(p) else None for s, p in operands]
        lengths = g.constant(g.rng.integers(1, steps + 1, batch).astype(np.int32)) if g.chance(0.4) else None
        inputs += [lengths] + [g.constant(g.numbers(state, np.float32, -1, 1)) if g.chance(0.5) else None
                               for _ in range(states)]
        if gates == 4:
            inputs.append(g.constant(g.numbers([directions, 3 * hidden], np.float32, -1, 1)) if g.chance(0.3) else None)
        direction = "bidirectional" if directions == 2 else g.choose(["forward", "reverse"])
        given |= {"hidden_size": hidden, "direction": direction}
        return inputs, given | ({"layout": 1} if batch_first else {}), 1 + states

    return generate
