#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports whole models with seeded weights and compares them with PyTorch:
run_models.py [--devices cpu,reference] [FILTER]

Needs torch, torchvision and transformers; nothing is downloaded.
"""

import argparse
import re
import sys
import time

import torch
from compare import Outcome, compare, print_table
from torch import nn
from torch.export import Dim


class FirstOutput(nn.Module):
    """A model of transformers without its cache: a tensor of tokens to one of hidden states or logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False)[0]


BATCH, SEQUENCE = Dim("batch", max=64), Dim("sequence", max=64)
TOKENS = ({0: BATCH, 1: SEQUENCE},)


def tokens(*shapes):
    """Arguments of tokens, of each of these shapes"""
    return [((torch.randint(0, 96, shape),), {}) for shape in shapes]


def images(*shapes):
    """Arguments of an image"""
    return [((torch.randn(shape),), {}) for shape in shapes]


def gpt2(layers):
    """GPT-2's body of this many layers, at its real width"""
    from transformers import GPT2Config, GPT2Model

    return FirstOutput(GPT2Model(GPT2Config(n_layer=layers, attn_implementation="sdpa"))), tokens((2, 8), (3, 5)), TOKENS


def small_gpt2():
    """GPT-2 with its language head, whose weight is that of the embedding"""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=96, n_positions=64)
    return FirstOutput(GPT2LMHeadModel(config)), tokens((2, 8), (1, 5)), TOKENS


def qwen3(**sizes):
    """Qwen3's body: 16 query heads, 8 of keys and values, norms of queries and keys"""
    from transformers import Qwen3Config, Qwen3Model

    config = Qwen3Config(num_attention_heads=16, num_key_value_heads=8, **sizes)
    return FirstOutput(Qwen3Model(config)), tokens((2, 8), (3, 5)), TOKENS


def tiny_qwen3():
    """Two narrow layers"""
    return qwen3(vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, head_dim=16,
                 max_position_embeddings=64)


def real_qwen3():
    """The sizes of Qwen3-0.6B"""
    return qwen3(vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, head_dim=128,
                 max_position_embeddings=40960, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})


def bert():
    """BERT, tiny"""
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                        max_position_embeddings=64)

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertModel(config)

        def forward(self, input_ids):
            return self.model(input_ids).last_hidden_state

    return Hidden(), tokens((2, 8), (3, 5)), TOKENS


def vision(name, size=64):
    """A classifier of torchvision"""
    def make():
        import torchvision

        model = torchvision.models.get_model(name, weights=None)
        return model, images((2, 3, size, size), (3, 3, size, size)), ({0: BATCH},)

    return make


MODELS = {"gpt2-2-layers": lambda: gpt2(2), "gpt2-12-layers": lambda: gpt2(12), "gpt2-tiny-lm": small_gpt2,
          "qwen3-tiny": tiny_qwen3, "qwen3-0.6b": real_qwen3, "bert-tiny": bert,
          "resnet18": vision("resnet18"), "mobilenet_v3_small": vision("mobilenet_v3_small"),
          "shufflenet_v2_x0_5": vision("shufflenet_v2_x0_5"), "squeezenet1_1": vision("squeezenet1_1"),
          "efficientnet_b0": vision("efficientnet_b0"), "mnasnet0_5": vision("mnasnet0_5"),
          "densenet121": vision("densenet121"), "regnet_y_400mf": vision("regnet_y_400mf"),
          "convnext_tiny": vision("convnext_tiny"), "swin_t": vision("swin_t"), "vit_b_16": vision("vit_b_16", 224),
          "googlenet": vision("googlenet"), "alexnet": vision("alexnet"), "maxvit_t": vision("maxvit_t", 224)}


def main():
    """Prints a table; status 1 where a model was not exported or differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="cpu", help="separated by commas")
    parser.add_argument("filter", nargs="?", default="", help="a regular expression of names")
    options = parser.parse_args()
    devices, outcomes = options.devices.split(","), []
    for name, make in MODELS.items():
        if not re.search(options.filter, name):
            continue
        torch.manual_seed(1)
        started = time.time()
        try:
            module, variants, dynamic = make()
        except ImportError as error:
            outcomes.append(Outcome(name, refused=str(error)))
            continue
        outcomes.append(compare(name, module.eval(), variants, devices, dynamic))
        print(f"{name}: {time.time() - started:.1f} s", file=sys.stderr, flush=True)
    print_table(outcomes, devices)
    sys.exit(any(o.refused or any(v != "equal" for v in o.devices.values()) for o in outcomes) or not outcomes)


if __name__ == "__main__":
    main()
