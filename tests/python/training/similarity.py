#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes MiniLM for the similarity of sentences, beside PyTorch: the losses of each step must agree, and the rank
correlation with the scores of tests/data/minilm/pairs.tsv must grow, on the pairs that are held out too.

  PYTHON tests/python/training/similarity.py [--device cpu] [--steps 50]

Needs torch, transformers and the model that tools/fetch-models has brought.
"""

import argparse
import csv
import json
import os
import pathlib
import sys

import numpy as np
import torch
from torch import nn

import forge

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = pathlib.Path(os.environ.get("FORGE_CACHE", pathlib.Path.home() / ".cache/forge")) / "models/minilm"
RATE, BATCH, TOKENS = 2e-5, 16, 24
ALLOWED = 1e-3  # of a loss, in f32, after as many steps of AdamW as are compared


class Similarity(nn.Module):
    """The cosine of the means of what MiniLM says of the tokens of two sentences"""

    def __init__(self):
        from safetensors.torch import load_file
        from transformers import BertConfig, BertModel

        super().__init__()
        self.bert = BertModel(BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                                         intermediate_size=1536, hidden_dropout_prob=0, attention_probs_dropout_prob=0),
                              add_pooling_layer=False)
        weights = load_file(MODEL / "model.safetensors")
        unused = ("pooler.", "embeddings.position_ids")
        missing = self.bert.load_state_dict({k: v for k, v in weights.items() if not k.startswith(unused)}, False)
        if missing.missing_keys or missing.unexpected_keys:
            raise ValueError(f"{MODEL}: {missing}")

    def forward(self, tokens, mask):
        """tokens, mask: [2 n, length], the first sentences of all pairs, then the others"""
        hidden = self.bert(input_ids=tokens, attention_mask=mask).last_hidden_state
        counts = mask.unsqueeze(-1).to(hidden.dtype)
        means = nn.functional.normalize((hidden * counts).sum(1) / counts.sum(1), dim=-1)
        first, other = means.chunk(2)
        return (first * other).sum(-1)


def read_pairs():
    """(tokens [2 n, length], mask, scores [n] in 0 to 1) of each part."""
    sys.path.insert(0, str(ROOT / "tests/conformance/real_inputs"))
    from sentences import Tokenizer, feeds

    tokenizer = Tokenizer(MODEL)
    lines = [line for line in (ROOT / "tests/data/minilm/pairs.tsv").read_text().splitlines() if line[0] != "#"]
    out = {}
    for part in ("train", "test"):
        rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["part"] == part]
        fed = feeds(tokenizer, [row[side] for side in ("sentence", "other") for row in rows], TOKENS)
        out[part] = (torch.from_numpy(fed["input_ids"]), torch.from_numpy(fed["attention_mask"]),
                     torch.tensor([float(row["score"]) / 5 for row in rows]))
    return out


def select(pairs, rows):
    tokens, mask, scores = pairs
    both = torch.cat([rows, rows + len(scores)])
    return tokens[both], mask[both], scores[rows]


def ranks(values):
    """The rank of each value; equal ones share the mean of theirs."""
    values = np.asarray(values)
    return np.array([(values < v).sum() + ((values == v).sum() - 1) / 2 for v in values])


def correlation(module, pairs):
    tokens, mask, scores = pairs
    with torch.no_grad():
        return float(np.corrcoef(ranks(module(tokens, mask).numpy()), ranks(scores.numpy()))[0, 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", default=50, type=int)
    options = parser.parse_args()
    torch.manual_seed(0)
    module, pairs = Similarity().eval(), read_pairs()
    before = {part: correlation(module, of_part) for part, of_part in pairs.items()}
    count = len(pairs["train"][2])
    batches = [torch.randperm(count)[:BATCH] for _ in range(options.steps)]

    example = select(pairs["train"], batches[0])
    training = forge.export(module, example[:2]).training(options.device, loss="mse", optimizer="adamw",
                                                          weight_decay=0.01)
    optimizer = torch.optim.AdamW(module.parameters(), lr=RATE, weight_decay=0.01)
    furthest = 0.0
    for i, rows in enumerate(batches):
        tokens, mask, scores = select(pairs["train"], rows)
        have = training.step(RATE, tokens=tokens.numpy(), mask=mask.numpy(), label=scores.numpy()).loss
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(module(tokens, mask), scores)
        loss.backward()
        optimizer.step()
        furthest = max(furthest, abs(have - loss.item()) / loss.item())
        if i % 10 == 0 or i + 1 == options.steps:
            print(f"step {i + 1:3}  loss {have:.6f}  PyTorch {loss.item():.6f}", flush=True)
    state = training.variables()
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(torch.from_numpy(state[name]))
    after = {part: correlation(module, of_part) for part, of_part in pairs.items()}
    print(json.dumps({"largest relative difference of a loss": furthest, "rank correlation before": before,
                      "after": after}, indent=2))
    sys.exit(0 if furthest <= ALLOWED and all(after[part] > before[part] for part in before) else 1)


if __name__ == "__main__":
    main()
