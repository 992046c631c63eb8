# SPDX-License-Identifier: Apache-2.0
"""magika: files of many kinds, and what it should take each for."""

import gzip
import io
import os
import pathlib
import sys
import zipfile

import numpy as np

from case import Case, read_json

ROOT = pathlib.Path(__file__).resolve().parents[3]

HTML = b"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Tide tables</title>
<style>td { padding: 0 1em } th { text-align: left }</style></head>
<body>
<h1>Tide tables</h1>
<p>Heights are in metres above <a href="datum.html">chart datum</a>.</p>
<table><tr><th>Time</th><th>Height</th></tr><tr><td>04:12</td><td>3.1</td></tr></table>
<script>document.querySelector("h1").onclick = () => alert("high water");</script>
</body>
</html>
"""
XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<catalogue xmlns="http://example.org/catalogue">
  <book id="b1"><title>Sailing alone</title><author>J. Slocum</author><year>1900</year></book>
  <book id="b2"><title>The voyage</title><author>C. Darwin</author><year>1839</year></book>
</catalogue>
"""
SQL = b"""CREATE TABLE tide (station TEXT NOT NULL, at TIMESTAMP, height REAL, PRIMARY KEY (station, at));
INSERT INTO tide VALUES ('Dover', '2024-03-01 04:12', 3.1), ('Dover', '2024-03-01 10:20', 0.9);
SELECT station, MAX(height) FROM tide GROUP BY station HAVING COUNT(*) > 1 ORDER BY station;
"""


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tides/dover.txt", "high water at 04:12\n" * 50)
        archive.writestr("tides/calais.txt", "high water at 04:31\n" * 50)
    return out.getvalue()


def files():
    """Label and content."""
    read = lambda path: (ROOT / path).read_bytes()
    return {
        "c": read("examples/hello/hello.c"),
        "python": read("tools/fetch-models"),
        "json": read("CMakePresets.json"),
        "png": read("examples/fashion/pictures/bag.png"),
        "elf": pathlib.Path(os.path.realpath(sys.executable)).read_bytes(),
        "gzip": gzip.compress(read("README.md"), mtime=0),
        "html": HTML,
        "markdown": read("README.md"),
        "shell": read("tools/test"),
        "xml": XML,
        "sql": SQL,
        "zip": zipped(),
        "cpp": read("runtime/session.cc"),
    }


def features(content, config):
    """The ends of a file without the blanks around it, as magika 1 takes them: i32 [beg + end]."""
    block, padding = config["block_size"], config["padding_token"]
    first, last = content[:block].lstrip(), content[-block:].rstrip()
    first, last = first[: config["beg_size"]], last[-config["end_size"] :]
    row = np.full(config["beg_size"] + config["end_size"], padding, np.int32)
    row[: len(first)] = np.frombuffer(first, np.uint8)
    row[len(row) - len(last) :] = np.frombuffer(last, np.uint8)
    return row


def cases(model):
    config = read_json(model, "config.min.json")
    labels = list(files())
    rows = np.stack([features(content, config) for content in files().values()])
    return [
        Case("one-file", {"bytes": rows[:1]}, labels[:1]),
        Case("all-files", {"bytes": rows}, labels),
    ]


def judge(case, outputs, model):
    names = read_json(model, "config.min.json")["target_labels_space"]
    for wanted, row in zip(case.meaning, outputs["target_label"], strict=True):
        found = names[row.argmax()]
        if found != wanted:
            yield f"it takes {wanted} for {found} ({row.max():.2f})"
