#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times modules on the CPU beside PyTorch, torch.compile and onnxruntime, which run in turns:
run.py [--threads 1,2] [--write FILE] [TABLE...]

The tables are mlp, block, attention, gpt2 and qwen3 (tests/python/speed/networks.py). A cell is the median of the turns
in milliseconds, and in brackets the fastest and the slowest turn. Needs what ../export/requirements.txt names.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import networks
import onnx
import onnxruntime
import torch

import forge

warnings.filterwarnings("ignore")
TURNS, TURN_SECONDS = 9, 0.1
BOUND = 1e-3  # of the largest element


class OpByOp(torch.fx.Interpreter):
    """Runs each op of an exported module alone, on a session of its own."""

    def __init__(self, module, args, threads):
        super().__init__(torch.export.export(module, args).module())
        self.threads, self.sessions = threads, {}

    def run_node(self, n):
        self.node = n
        return super().run_node(n)

    def call_function(self, target, args, kwargs):
        leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors or not str(target).startswith("aten."):
            return super().call_function(target, args, kwargs)
        if self.node not in self.sessions:
            module = _One(target, leaves, tree)
            self.sessions[self.node] = forge.export(module, tuple(tensors)).session("cpu", threads=self.threads)
        session = self.sessions[self.node]
        results = [torch.as_tensor(y) for y in session.run(*tensors[:len(session.inputs)]).values()]
        return results[0] if len(results) == 1 else results


class _One(torch.nn.Module):
    def __init__(self, target, leaves, tree):
        super().__init__()
        self.target, self.leaves, self.tree = target, leaves, tree

    def forward(self, *tensors):
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.tree)
        return self.target(*args, **kwargs)


def onnxruntime_of(module, args, threads, folder, opset):
    """A function without arguments, and the names of the attention operators in the graph that onnxruntime runs."""
    path, optimised = f"{folder}/{opset}.onnx", f"{folder}/{opset}-optimised.onnx"
    torch.onnx.export(module, args, path, dynamo=True, opset_version=opset, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others are timed in between
    options.optimized_model_filepath = optimised
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", f"{opset}.data")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {port.name: x.numpy() for port, x in zip(session.get_inputs(), args)}
    nodes = onnx.load(optimised, load_external_data=False).graph.node
    return lambda: session.run(None, feeds)[0], sorted({n.op_type for n in nodes if "Attention" in n.op_type})


def forge_of(model, args, threads, **options):
    """A function without arguments."""
    session = model.session("cpu", threads=threads, **options)
    name = session.outputs[0].name
    return lambda: session.run(*args)[name]


def peers_of(table, module, args, threads, folder):
    """{column: function}, and remarks"""
    model = forge.export(module, args)
    runs, remarks = {"Forge": forge_of(model, args, threads)}, {}
    if table in ("mlp", "block"):
        runs["Forge, not fused"] = forge_of(model, args, threads, fuse=False)
        op_by_op = OpByOp(module, args, threads)
        runs["Forge, op by op"] = lambda: op_by_op.run(*args)
    runs["PyTorch"] = lambda: module(*args)
    if table != "attention":
        compiled = torch.compile(module, dynamic=False)
        runs["torch.compile"] = lambda: compiled(*args)
    for opset in (18, 23) if table == "attention" else (18,):
        column = "onnxruntime" + (f", opset {opset}" if table == "attention" else "")
        try:
            runs[column], found = onnxruntime_of(module, args, threads, folder, opset)
            remarks[column] = ", ".join(found)
        except Exception as error:  # exporter and runtime raise whatever they like
            remarks[column] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:80]}"
    return runs, remarks


def measure(runs):
    """{column: milliseconds of each turn}"""
    counts, times = {}, {name: [] for name in runs}
    for name, run in runs.items():
        run(), run()
        began = time.perf_counter()
        run()
        counts[name] = max(1, int(TURN_SECONDS / (time.perf_counter() - began)))
    for _ in range(TURNS):
        for name, run in runs.items():
            run()
            began = time.perf_counter()
            for _ in range(counts[name]):
                run()
            times[name].append((time.perf_counter() - began) / counts[name] * 1e3)
    return times


@torch.inference_mode()
def work(table, row, threads):
    """Measures one row and prints it as JSON."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    module, args = networks.TABLES[table][row]()
    module.eval()
    with tempfile.TemporaryDirectory() as folder:
        runs, remarks = peers_of(table, module, args, threads, folder)
        expected = module(*args)
        for name, run in runs.items():
            error = (torch.as_tensor(run()) - expected).abs().max() / expected.abs().max()
            if not error <= BOUND:
                sys.exit(f"{table}, {row}: {name} differs by {error:.1e}")
        print(json.dumps({"times": measure(runs), "remarks": remarks}))


def cell(times):
    """Three digits that tell."""
    if not times:
        return "-"
    digits = 0 if statistics.median(times) >= 100 else 1 if statistics.median(times) >= 10 else 3
    return f"{statistics.median(times):.{digits}f} ({min(times):.{digits}f}-{max(times):.{digits}f})"


def rows_of(table, threads):
    """Lines of Markdown"""
    lines, columns = [], None
    for row in networks.TABLES[table]:
        done = subprocess.run([sys.executable, __file__, "--work", table, row, "--threads", str(threads)],
                              stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(done.stdout.splitlines()[-1])
        times, remarks = result["times"], result["remarks"]
        if columns is None:
            columns = list(times)
            lines += ["| " + " | ".join(["", *columns, "Forge / fastest other"]) + " |", "|" + "---|" * (len(columns) + 2)]
        peers = [statistics.median(t) for c, t in times.items() if not c.startswith("Forge")]
        cells = [cell(times.get(c)) + (f" {remarks[c]}" if remarks.get(c) else "") for c in columns]
        lines.append("| " + " | ".join([row, *cells, f"{statistics.median(times['Forge']) / min(peers):.2f}"]) + " |")
        print(f"{table}, {threads} threads: {lines[-1]}", flush=True)
    return lines


def processor():
    """The name of the processor, as Linux tells it"""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    """Prints the rows as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--write", help="write the tables to this file")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="default: all")
    options = parser.parse_args()
    if options.work:
        return work(*options.work, int(options.threads))
    lines = ["# PyTorch modules on a CPU", "",
             f"Measured with `tests/python/speed/run.py` on {processor()}: PyTorch {torch.__version__}, onnxruntime "
             f"{onnxruntime.__version__}, Forge {forge.__version__}; milliseconds of a call: the median of {TURNS} turns "
             "(the fastest - the slowest). All run in turns in one process."]
    for table in options.tables or networks.TABLES:
        for threads in map(int, options.threads.split(",")):
            lines += ["", f"## {table}, {threads} thread{'s' if threads > 1 else ''}", "", *rows_of(table, threads)]
            if options.write:
                pathlib.Path(options.write).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
