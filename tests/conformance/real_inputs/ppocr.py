# SPDX-License-Identifier: Apache-2.0
"""PP-OCR: pictures in which text is to be found, turned and read."""

import numpy as np
import onnxruntime

from case import Case
from drawing import as_input, page, strip

LETTER = [
    (40, 30, 44, "black", "Sans-Bold", "Quarterly report"),
    (40, 120, 28, "#203080", "Serif", "Sales grew in every region,"),
    (40, 190, 28, "#203080", "Serif", "costs did not."),
    (320, 280, 36, "#a02020", "Sans", "+12.5 %"),
    (60, 400, 18, "black", "SansMono", "SHA-256 d2a7720d45a54257208b"),
    (60, 520, 60, "#106010", "Sans-Bold", "THE END"),
]
SIGN = [
    (30, 24, 54, "white", "Sans-Bold", "Platform 9"),
    (30, 140, 30, "#ffe040", "Sans", "Trains to Leipzig leave at 17:42"),
    (30, 250, 22, "white", "Serif", "Mind the gap between train and platform"),
]
SHELF = [(16, 22, 40, "black", "Sans", "Shelf 42-B")]


def det_cases(_):
    """Pages of the sizes that the model is used at; the second of a batch of two is blank."""
    whole = as_input(page(640, 640, LETTER))
    wide = as_input(page(736, 352, SIGN, paper="#304050"))
    small = page(96, 64, [(6, 14, 26, "black", "Sans-Bold", "Exit")])
    blank = page(96, 64, [], paper="#c0c0c0")
    shelf = as_input(page(320, 96, SHELF, paper="#f0e8d0"))
    noise = np.random.default_rng(7).uniform(-1, 1, (1, 3, 64, 96)).astype(np.float32)
    return [
        Case("64x96-batch-2", {"x": np.stack([as_input(small), as_input(blank)])}, [1, 0]),
        Case("96x320", {"x": shelf[None]}, [1]),
        # Of scores that are all below 1e-5 onnxruntime's sigmoid, off by up to 1e-7 and 0 from -18 on,
        # tells nothing: what goes into it is compared.
        Case("64x96-noise", {"x": noise}, inner="p2o.Add.281"),
        Case("352x736", {"x": wide[None]}, [len(SIGN)]),
        Case("640x640", {"x": whole[None]}, [len(LETTER)]),
    ]


def judge_det(case, outputs, _):
    """The lines of a page, which share no row of pixels, make as many bands of high scores."""
    for number, lines in enumerate(case.meaning or []):
        rows = (outputs["sigmoid_0.tmp_0"][number, 0] > 0.3).any(axis=1)
        bands = int(rows[0]) + int((rows[1:] & ~rows[:-1]).sum())
        if bands != lines:
            yield f"{bands} lines found in picture {number}, not {lines}"


def rec_case(width, *texts, **style):
    pictures = [as_input(strip(text, 48, **style), width) for text in texts]
    name = f"width-{width}" + (f"-batch-{len(texts)}" if len(texts) > 1 else "")
    return Case(name, {"x": np.stack(pictures)}, list(texts))


def rec_cases(_):
    return [
        rec_case(32, "7"),
        rec_case(96, "No", "42", face="Serif"),
        rec_case(160, "12:30", "Hello", "x+y", colour="#802020", paper="#f0f0d0"),
        rec_case(320, "Forge reads 7", face="Sans-Bold"),
        rec_case(640, "The quick brown fox jumps", colour="white", paper="#304050"),
    ]


def judge_rec(case, outputs, model):
    """What greedy decoding reads: the best class of each step, repeats and blanks dropped."""
    metadata = onnxruntime.InferenceSession(model).get_modelmeta().custom_metadata_map
    alphabet = ["", *metadata["character"].splitlines(), " "]
    scores = outputs["softmax_11.tmp_0"]
    for text, best in zip(case.meaning, scores.argmax(-1), strict=True):
        kept = [c for c, before in zip(best, [0, *best[:-1]]) if c != before]
        read = "".join(alphabet[c] for c in kept)
        if read != text:
            yield f"it reads '{read}', not '{text}'"


def cls_cases(_):
    texts = ["Which way up", "Shelf 42-B", "leave at 17:42"]
    turned = [False, True, False, True, True, False]
    pictures = [
        as_input(strip(texts[i % 3], 48, turned=turn)[:, :192], 192) for i, turn in enumerate(turned)
    ]
    batch = np.stack(pictures)
    return [
        Case("batch-1", {"x": batch[1:2]}, turned[1:2]),
        Case("batch-6", {"x": batch}, turned),
    ]


def judge_cls(case, outputs, _):
    (scores,) = outputs.values()
    for number, (row, turned) in enumerate(zip(scores, case.meaning, strict=True)):
        if (row[1] > row[0]) != turned:
            yield f"line {number} has scores {row}, but it is turned: {turned}"
