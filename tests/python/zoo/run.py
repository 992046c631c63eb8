#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the architectures of torchvision, timm and transformers with seeded weights, and compares them with PyTorch:
run.py [--devices cpu,vulkan] [--write] [FILTER]

Needs the packages of ../export/requirements.txt; nothing is downloaded. Each architecture has a process of its own.
"""

import argparse
import csv
import multiprocessing
import os
import pathlib
import re
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "export"))
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers_zoo  # noqa: E402
import vision  # noqa: E402
from compare import Outcome, compare  # noqa: E402

TABLE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "model_zoo.tsv"
COLLECTIONS = {"torchvision": vision, "timm": vision, "transformers": transformers_zoo}
KEYS = ("collection", "family", "model")
GIBIBYTE = 1 << 30
LONGEST = 160  # characters of a cell


def made(collection, family, name):
    """A module with seeded weights, its arguments and keyword arguments."""
    torch.manual_seed(1)
    if not name:
        raise LookupError("vision.tsv names no member of this family")
    module, args, kwargs = COLLECTIONS[collection].make(collection, family, name)
    seed(module)
    return module.eval(), args, kwargs


@torch.no_grad()
def seed(module):
    """Gives weights that are all equal, such as the scales of norms and layers that start at 0, random values: results
    depend on each then."""
    tensors = list(module.named_parameters()) + [b for b in module.named_buffers() if "running_" in b[0]]
    for _, tensor in tensors:
        if not tensor.is_floating_point() or tensor.numel() < 2 or tensor.ne(tensor.flatten()[0]).any():
            continue
        if tensor.flatten()[0].abs() > 0.5:
            tensor.mul_(torch.empty_like(tensor).uniform_(0.8, 1.2))
        else:
            tensor.copy_(torch.randn_like(tensor) * (0.1 if tensor.dim() == 1 else tensor[0].numel() ** -0.5))


def examine(pipe, entry, options):
    """Sends what became of an architecture."""
    resource.setrlimit(resource.RLIMIT_AS, (options.memory * GIBIBYTE,) * 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # torch prints whole programs of what it refuses
    try:
        module, args, kwargs = made(*entry)
        outcome = compare("", module, [(args, kwargs)], options.devices)
        parameters = sum(p.numel() for p in module.parameters())
    except Exception as error:
        outcome, parameters = Outcome("", refused=f"not made: {type(error).__name__}: {error}".splitlines()[0]), 0
    pipe.send((outcome, parameters))


def outcome_of(entry, options):
    """What became of an architecture, in a process of its own: an outcome and the number of parameters."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=examine, args=(theirs, entry, options))
    child.start()
    theirs.close()
    try:
        if ours.poll(options.seconds):
            return ours.recv()
        problem = f"took more than {options.seconds} s"
    except EOFError:
        child.join()
        problem = f"its process ended with {child.exitcode}"
    finally:
        child.kill()
        child.join()
        ours.close()
    return Outcome("", refused=problem), 0


def row(entry, outcome, parameters, devices):
    """A line of the table. A cell of what was not done is empty."""
    line = dict(zip(KEYS, entry), parameters=parameters, exported=cell(outcome.refused) or "yes")
    return line | {device: cell(outcome.devices.get(device, "")) for device in devices}


def cell(text):
    """A text in one line that is not too long."""
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def summary(rows, devices):
    """The sums of each collection."""
    for collection in COLLECTIONS:
        own = [r for r in rows if r["collection"] == collection]
        if own:
            counts = [f"{sum(r[d] == 'equal' for r in own)} equal on {d}" for d in devices]
            exported = sum(r["exported"] == "yes" for r in own)
            print(f"{collection}: {len(own)} architectures, {exported} exported, {', '.join(counts)}")


def write(rows, entries):
    """Writes the table of docs, with these rows in place of those that it has of the same architectures."""
    table = {}
    if TABLE.exists():
        with TABLE.open(encoding="utf-8") as lines:
            table = {tuple(r[key] for key in KEYS): r for r in csv.DictReader(lines, delimiter="\t")}
    for r in rows:
        key = tuple(r[key] for key in KEYS)
        table[key] = table.get(key, {}) | r
    kept = [table[entry] for entry in entries if entry in table]
    columns = list(dict.fromkeys(name for r in kept for name in r))
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, restval="", delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


def main():
    """Prints a line for each; status 1 where one was not exported or differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="cpu", help="separated by commas", type=lambda text: text.split(","))
    parser.add_argument("--write", action="store_true", help=f"enter the results in docs/{TABLE.name}")
    parser.add_argument("--seconds", type=int, default=600, help="limit of one architecture (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=16, help="limit of its address space, GiB (default: %(default)s)")
    parser.add_argument("filter", nargs="?", default="", help="a regular expression of collection/family/name")
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    entries = [(name, *entry) for name, zoo in COLLECTIONS.items() for entry in zoo.architectures(name)]
    rows = []
    for entry in entries:
        if not re.search(options.filter, "/".join(entry)):
            continue
        started = time.time()
        rows.append(row(entry, *outcome_of(entry, options), options.devices))
        print(f"{'/'.join(entry):58} {time.time() - started:6.1f} s  {told(rows[-1], options.devices)}", flush=True)
    summary(rows, options.devices)
    if options.write and rows:
        write(rows, entries)
    sys.exit(not rows or any(r[d] != "equal" for r in rows for d in options.devices))


def told(line, devices):
    """What became of an architecture, for people."""
    if line["exported"] != "yes":
        return f"not exported: {line['exported']}"
    return "  ".join(f"{device} {line[device]}" for device in devices)


if __name__ == "__main__":
    main()
