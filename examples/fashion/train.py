#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on Fashion-MNIST and writes it as ONNX.

  apt-get install dataset-fashion-mnist
  python3 -m venv venv && venv/bin/pip install -r requirements.txt
  venv/bin/python train.py --output fashion.onnx

Input `image`, f32 [N, 1, 28, 28]; output `probabilities`, f32 [N, 10]. A picture is prepared as the
metadata entry `preprocess` says, here and in every program that runs the model: bytes become
value / 255, then (value - mean) / std. The metadata entry `labels` is a JSON array of class names.
5,000 training pictures are held back to show progress; the test pictures are used once, at the end.
"""

import argparse
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

import dataset
import export

CHANNELS = (16, 32, 64)  # Of the three convolutions, each followed by a 2x2 max pool.
HIDDEN = 96
VALIDATION = 5000
BATCH = 256
BATCH_NORM_DECAY = 0.95
EPSILON = 1e-5  # Of batch normalisation.
MAX_SHIFT = 1  # Pixels, of the random translation of training pictures.


def init_model(rng):
    """Fresh parameters (trained by gradient) and statistics (running mean and variance)."""
    params, stats = {}, {}
    fan_in = 1
    for i, channels in enumerate(CHANNELS, 1):
        scale = np.sqrt(2 / (9 * fan_in))
        params[f"conv{i}"] = rng.normal(0, scale, (channels, fan_in, 3, 3))
        params[f"norm{i}"] = {"scale": np.ones(channels), "bias": np.zeros(channels)}
        stats[f"norm{i}"] = {"mean": np.zeros(channels), "var": np.ones(channels)}
        fan_in = channels
    fan_in *= 3 * 3  # 28 -> 14 -> 7 -> 3 after three pools.
    for name, width in (("hidden", HIDDEN), ("scores", len(dataset.LABELS))):
        weight = rng.normal(0, np.sqrt(2 / fan_in), (width, fan_in))
        params[name] = {"weight": weight, "bias": np.zeros(width)}
        fan_in = width
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (params, stats))


def batch_norm(x, params, stats, training):
    """Normalises x [n, h, w, c] per channel; returns it and the new running statistics."""
    if training:
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        fresh = {"mean": mean, "var": var}
        blend = lambda old, new: BATCH_NORM_DECAY * old + (1 - BATCH_NORM_DECAY) * new
        new_stats = jax.lax.stop_gradient(jax.tree.map(blend, stats, fresh))
    else:
        mean, var, new_stats = stats["mean"], stats["var"], stats
    return (x - mean) / jnp.sqrt(var + EPSILON) * params["scale"] + params["bias"], new_stats


def forward(params, stats, x, training):
    """Scores before softmax, f32 [n, 10], of x [n, 1, 28, 28]; and the new statistics."""
    new_stats = {}
    x = x.transpose(0, 2, 3, 1)  # Channels last runs faster on CPUs.
    for i in range(1, len(CHANNELS) + 1):
        x = jax.lax.conv_general_dilated(
            x, params[f"conv{i}"], (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC")
        )
        name = f"norm{i}"
        x, new_stats[name] = batch_norm(x, params[name], stats[name], training)
        x = jax.nn.relu(x)
        n, h, w, c = x.shape
        x = x[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ params["hidden"]["weight"].T + params["hidden"]["bias"])
    return x @ params["scores"]["weight"].T + params["scores"]["bias"], new_stats


def augment(key, x):
    """Mirrors half of the pictures and moves each by up to MAX_SHIFT pixels, edges filled black."""
    flip_key, shift_key = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, shape=(x.shape[0], 1, 1, 1))
    x = jnp.where(flip, x[..., ::-1], x)
    black = -dataset.MEAN / dataset.STD
    pad = [(0, 0), (0, 0), (MAX_SHIFT, MAX_SHIFT), (MAX_SHIFT, MAX_SHIFT)]
    padded = jnp.pad(x, pad, constant_values=black)
    offsets = jax.random.randint(shift_key, (x.shape[0], 2), 0, 2 * MAX_SHIFT + 1)
    crop = lambda p, o: jax.lax.dynamic_slice(p, (0, o[0], o[1]), (1, 28, 28))
    return jax.vmap(crop)(padded, offsets)


def make_step(optimizer):
    """The compiled function that takes one optimisation step on one batch."""

    def loss_of(params, stats, x, labels):
        scores, stats = forward(params, stats, x, training=True)
        losses = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
        return losses.mean(), stats

    @jax.jit
    def step(params, stats, state, key, x, labels):
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, stats), grads = gradient(params, stats, augment(key, x), labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), stats, state, loss

    return step


@jax.jit
def predict(params, stats, x):
    """The most probable class of each picture."""
    return forward(params, stats, x, training=False)[0].argmax(1)


def accuracy(params, stats, x, labels):
    """The share of x that is classified right, in batches of 1,000."""
    hits = sum(
        int((np.asarray(predict(params, stats, x[i : i + 1000])) == labels[i : i + 1000]).sum())
        for i in range(0, len(x), 1000)
    )
    return hits / len(x)


def train(pictures, labels, epochs, seed):
    """Trains for `epochs`, printing a line for each; returns parameters and statistics."""
    x = dataset.normalise(pictures)
    held_x, held_labels = x[-VALIDATION:], labels[-VALIDATION:]
    x, labels = x[:-VALIDATION], labels[:-VALIDATION].astype(np.int32)
    rng = np.random.default_rng(seed)
    params, stats = init_model(rng)
    steps = len(x) // BATCH
    schedule = optax.cosine_onecycle_schedule(epochs * steps, 4e-3, pct_start=0.2)
    optimizer = optax.adamw(schedule, weight_decay=1e-2)
    state, step = optimizer.init(params), make_step(optimizer)
    key = jax.random.key(seed)
    for epoch in range(1, epochs + 1):
        start, total = time.monotonic(), 0.0
        for batch in rng.permutation(len(x))[: steps * BATCH].reshape(steps, BATCH):
            key, sub = jax.random.split(key)
            params, stats, state, loss = step(params, stats, state, sub, x[batch], labels[batch])
            total += float(loss)
        held = accuracy(params, stats, held_x, held_labels)
        seconds = time.monotonic() - start
        print(
            f"epoch {epoch:2}/{epochs}  loss {total / steps:.4f}  "
            f"held-out accuracy {100 * held:.2f} %  {seconds:.1f} s",
            flush=True,
        )
    return params, stats


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=dataset.DEBIAN_FOLDER, help="folder of the idx files")
    parser.add_argument("--output", default=here / "fashion.onnx", type=pathlib.Path)
    parser.add_argument("--epochs", default=9, type=int)
    parser.add_argument("--seed", default=1, type=int)
    args = parser.parse_args()

    params, stats = train(*dataset.load("train", args.data), args.epochs, args.seed)
    export.save(export.build(jax.tree.map(np.asarray, (params, stats)), EPSILON), args.output)
    pictures, labels = dataset.load("t10k", args.data)
    hits = (export.run(args.output, pictures).argmax(1) == labels).sum()
    size = args.output.stat().st_size
    print(f"{args.output}: {size} bytes, {hits} of {len(labels)} test pictures right (onnxruntime)")


if __name__ == "__main__":
    main()
