# SPDX-License-Identifier: Apache-2.0
"""MiniLM: sentences, and which of them mean nearly the same."""

import unicodedata

import numpy as np

from case import Case, read_json

PAIRS = [
    ("A man is playing a guitar on the stage.", "Someone performs music with a guitar."),
    ("The cat sleeps on the warm windowsill.", "A kitten is napping by the window."),
]
PARAGRAPH = (
    "The lighthouse keeper climbed the stairs each evening, carrying a lamp and a tin of oil. "
    "From the gallery he could see the ships that had left the harbour at noon, and the weather "
    "that would meet them in the night. He wrote down the wind, the height of the waves, and the "
    "colour of the sky; nobody had ever asked him for these notes, but he kept them as carefully "
    "as the light itself. "
)


class Tokenizer:
    """BERT's lower-case WordPiece, with the vocabulary of the model's package.

    source: the normalizer, pre_tokenizer and model of its tokenizer.json.
    """

    def __init__(self, model):
        self.vocabulary = read_json(model, "tokenizer.json")["model"]["vocab"]

    def words(self, text):
        """Lower-case words without accents; each mark of punctuation is a word of its own."""
        word = ""
        for c in unicodedata.normalize("NFD", text.lower()):
            category = unicodedata.category(c)
            if category == "Mn":
                continue
            mark = category[0] == "P" or (c.isascii() and not c.isalnum() and not c.isspace())
            if not (mark or c.isspace()):
                word += c
                continue
            if word:
                yield word
            word = ""
            if mark:
                yield c
        if word:
            yield word

    def pieces(self, word):
        """The longest pieces of the vocabulary, from the left; [UNK] where there are none."""
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self.vocabulary), None)
            if end is None:
                return [self.vocabulary["[UNK]"]]
            found.append(self.vocabulary[prefix + word[start:end]])
            start = end
        return found

    def encode(self, text, longest):
        ids = [piece for word in self.words(text) for piece in self.pieces(word)]
        return [self.vocabulary["[CLS]"], *ids[: longest - 2], self.vocabulary["[SEP]"]]


def feeds(tokenizer, texts, sequence):
    """The model's inputs, padded to `sequence` and masked."""
    rows = [tokenizer.encode(text, sequence) for text in texts]
    ids = np.zeros((len(rows), sequence), np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def cases(model):
    tokenizer = Tokenizer(model)
    four = [text for pair in PAIRS for text in pair]
    long = PARAGRAPH * 4
    return [
        Case("1x2", feeds(tokenizer, [""], 2)),
        Case("4x16", feeds(tokenizer, four, 16), "pairs"),
        Case("3x37", feeds(tokenizer, [four[0], "Café, naïve?", long], 37)),
        Case("2x128", feeds(tokenizer, [PARAGRAPH, "A keeper looks after the lamp of a tower."], 128)),
        Case("1x256", feeds(tokenizer, [long], 256)),
        Case("4x256", feeds(tokenizer, [long, *four[:3]], 256)),
    ]


def judge(case, outputs, _):
    """Each sentence is nearest to the other of its pair, by a margin."""
    if case.meaning != "pairs":
        return
    vectors = outputs["sentence_embedding"].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    for i in range(4):
        partner = i ^ 1
        others = max(cosines[i, j] for j in range(4) if j not in (i, partner))
        if cosines[i, partner] < others + 0.2:
            yield f"sentence {i}: cosine {cosines[i, partner]:.3f} to its pair, {others:.3f} to others"
