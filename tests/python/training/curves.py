#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the MLP or the CNN on Fashion-MNIST with several seeds, by forge-train on a device and by PyTorch, and draws
the accuracies on the test set after each epoch over each other.

  PYTHON tests/python/training/curves.py --model mnist-mlp --device cpu --write docs/measurements/fashion_mnist
  PYTHON tests/python/training/curves.py --model mnist-cnn --device torch --write docs/measurements/fashion_mnist

Adds its runs to FILE.json in place of those of the same model and device, and writes FILE.svg and FILE.md anew. The
seeds choose the initial weights and the order of the samples, which differ between the two.
Needs torch, numpy and Debian's package dataset-fashion-mnist.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import torch

from compare_torch import forge_epochs, save_data, torch_epochs

NAMES = {"torch": "PyTorch", "cpu": "Forge, CPU", "vulkan": "Forge, Vulkan (lavapipe)"}
COLORS = {"torch": "#d1495b", "cpu": "#2e7d6b", "vulkan": "#3366aa"}
WIDTH, HEIGHT, MARGIN = 420, 300, 48


def curves(args):
    """Accuracies by seed and epoch."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        save_data(args, folder)
        found = []
        for seed in range(args.seeds):
            if args.device == "torch":
                found.append([accuracy for accuracy, _ in torch_epochs(args, seed)])
            else:
                log = folder / f"{seed}.log"
                forge_epochs(args, folder, seed, "--log", log)
                found.append([json.loads(line)["validation"]["accuracy"] for line in log.read_text().splitlines()])
            print(f"{args.model}  {args.device}  seed {seed}  " + "  ".join(f"{a:.4f}" for a in found[-1]), flush=True)
        return found


def panel(runs, model, left):
    """The SVG of one model: a line for each seed, a thick one for their mean."""
    values = [a for run in runs for curve in run["accuracies"] for a in curve]
    low, high = min(values) - 0.005, max(values) + 0.005
    epochs = max(len(run["accuracies"][0]) for run in runs)

    def at(epoch, accuracy):
        across = (epoch - 1) / max(epochs - 1, 1) * (WIDTH - 2 * MARGIN)
        up = (accuracy - low) / (high - low) * (HEIGHT - 2 * MARGIN)
        return f"{left + MARGIN + across:.1f},{HEIGHT - MARGIN - up:.1f}"

    def line(curve, color, width, opacity):
        points = " ".join(at(i + 1, a) for i, a in enumerate(curve))
        return (f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}" '
                f'opacity="{opacity}"/>')

    out = [f'<text x="{left + MARGIN}" y="24" font-weight="bold">{model}</text>']
    for step in range(5):
        accuracy = low + (high - low) * step / 4
        x, y = at(1, accuracy).split(",")
        out.append(f'<line x1="{x}" y1="{y}" x2="{left + WIDTH - MARGIN}" y2="{y}" stroke="#ddd"/>'
                   f'<text x="{float(x) - 6}" y="{float(y) + 4}" text-anchor="end">{accuracy:.3f}</text>')
    for epoch in range(1, epochs + 1):
        x, _ = at(epoch, low).split(",")
        out.append(f'<text x="{x}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{epoch}</text>')
    for row, run in enumerate(runs):
        color = COLORS[run["device"]]
        out += [line(curve, color, 1, 0.35) for curve in run["accuracies"]]
        out.append(line([statistics.mean(a) for a in zip(*run["accuracies"])], color, 2.5, 1))
        out.append(f'<text x="{left + WIDTH - MARGIN}" y="{HEIGHT - MARGIN - 8 - 16 * row}" text-anchor="end" '
                   f'fill="{color}">{NAMES[run["device"]]}</text>')
    return "\n".join(out)


def draw(runs):
    models = sorted({run["model"] for run in runs}, reverse=True)
    panels = [panel([r for r in runs if r["model"] == m], m, i * WIDTH) for i, m in enumerate(models)]
    size = f'width="{WIDTH * len(models)}" height="{HEIGHT}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
            f'<rect {size} fill="white"/>\n' + "\n".join(panels) + "\n</svg>\n")


def table(runs, picture):
    lines = ["# Fashion-MNIST", "",
             "Accuracies on the 10,000 test pictures after training on others, Adam with batches of 64 and a rate that "
             "falls from 0.001 along a cosine: a thin line for each seed, a thick one for their mean. Written by "
             "`tests/python/training/curves.py`.", "",
             f"![Accuracy by epoch]({picture})", "",
             "| model | on | pictures | epochs | seeds | mean accuracy at the end | smallest and largest |",
             "|---|---|---|---|---|---|---|"]
    for run in runs:
        last = [curve[-1] for curve in run["accuracies"]]
        lines.append(f"| {run['model']} | {NAMES[run['device']]} | {run['samples']:,} | {len(run['accuracies'][0])} | "
                     f"{len(last)} | {statistics.mean(last):.4f} | {min(last):.4f}, {max(last):.4f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mnist-mlp", choices=("mnist-mlp", "mnist-cnn"))
    parser.add_argument("--device", default="cpu", choices=tuple(NAMES))
    parser.add_argument("--samples", default=60000, type=int)
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--seeds", default=5, type=int)
    parser.add_argument("--write", metavar="FILE", required=True, help="without its ending")
    args = parser.parse_args()
    torch.set_num_threads(2)
    data = pathlib.Path(args.write + ".json")
    runs = json.loads(data.read_text()) if data.exists() else []
    runs = [r for r in runs if (r["model"], r["device"]) != (args.model, args.device)]
    runs.append({"model": args.model, "device": args.device, "samples": args.samples, "accuracies": curves(args)})
    runs.sort(key=lambda r: (r["model"] != "mnist-mlp", list(NAMES).index(r["device"])))
    data.write_text("[\n" + ",\n".join(json.dumps(r) for r in runs) + "\n]\n")
    pathlib.Path(args.write + ".svg").write_text(draw(runs))
    pathlib.Path(args.write + ".md").write_text(table(runs, pathlib.Path(args.write).name + ".svg"))


if __name__ == "__main__":
    sys.exit(main())
