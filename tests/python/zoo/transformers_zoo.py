# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers with tiny configurations."""

from __future__ import annotations

import inspect

import torch
from torch import nn

# Sizes of every configuration that has them by these names.
SMALL = {
    "vocab_size": 96, "hidden_size": 32, "d_model": 32, "n_embd": 32, "embedding_size": 32, "emb_dim": 32, "dim": 32,
    "intermediate_size": 64, "ffn_dim": 64, "d_ff": 64, "d_inner": 64, "n_inner": 64, "ffn_hidden_size": 64,
    "hidden_dim": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4, "num_heads": 4,
    "n_head": 4, "n_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "max_position_embeddings": 64,
    "n_positions": 64, "n_ctx": 64, "max_seq_len": 64, "image_size": 32, "patch_size": 8, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "moe_intermediate_size": 32, "num_experts": 4,
    "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "q_lora_rank": 16, "kv_lora_rank": 16,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "sliding_window": 8, "num_mel_bins": 16,
    "max_source_positions": 64, "max_target_positions": 64,
}

# The architectures of each kind, by transformers' names of model types.
KINDS = {
    "text": """albert apertus arcee bert bert-generation big_bird biogpt bloom camembert canine codegen cohere cohere2
        convbert ctrl deberta deberta-v2 diffllama distilbert electra ernie ernie4_5 esm eurobert exaone4 falcon flaubert
        fnet funnel gemma gemma2 gemma3_text glm glm4 gpt-sw3 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gptj
        granite helium hunyuan_v1_dense ibert internlm3 jais2 layoutlm lilt llama longformer luke markuplm megatron-bert
        ministral mistral mobilebert modernbert mpnet mpt mra nemotron nomic_bert nystromformer olmo olmo2 olmo3
        openai-gpt opt persimmon phi phi3 qwen2 qwen3 rembert roberta roberta-prelayernorm roc_bert roformer seed_oss
        smollm3 splinter squeezebert stablelm starcoder2 tapas vaultgemma xglm xlm xlm-roberta xlm-roberta-xl xlnet xmod
        yoso""",
    "mixture of experts": """deepseek_v2 deepseek_v3 dots1 ernie4_5_moe flex_olmo glm4_moe gpt_oss granitemoe
        granitemoeshared hunyuan_v1_moe jetmoe llama4_text minimax mixtral olmoe phimoe qwen2_moe qwen3_moe""",
    "state space": """bamba falcon_h1 falcon_mamba granitemoehybrid jamba lfm2 mamba mamba2 nemotron_h qwen3_next
        recurrent_gemma rwkv xlstm""",
    "encoder-decoder": """bart bigbird_pegasus blenderbot blenderbot-small fsmt led longt5 m2m_100 marian mbart mt5 mvp
        nllb-moe pegasus pegasus_x plbart prophetnet switch_transformers t5 umt5""",
    "vision": """beit bit clip_vision_model convnext convnextv2 cvt data2vec-vision deit detr dinov2
        dinov2_with_registers dinov3_vit dpt efficientnet focalnet glpn ijepa levit mobilenet_v1 mobilenet_v2 mobilevit
        mobilevitv2 poolformer pvt pvt_v2 regnet resnet segformer siglip_vision_model swiftformer swin swinv2 textnet vit
        vit_msn vitdet yolos""",
    "speech": """data2vec-audio encodec hubert parakeet_encoder sew sew-d unispeech unispeech-sat wav2vec2 wav2vec2-bert
        wav2vec2-conformer wavlm audio-spectrogram-transformer""",
    "speech to text": """moonshine speech_to_text whisper""",
    "image and text": """clip siglip""",
}

SWIN = {"patch_size": 2, "window_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4]}
CONVNEXT = {"hidden_sizes": [16, 32, 32, 64], "depths": [1, 1, 1, 1], "patch_size": None, "num_hidden_layers": None}

# What else a configuration needs; None leaves a size of SMALL at its default.
EXTRA = {
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8}, "codegen": {"rotary_dim": 4}, "convnext": CONVNEXT,
    "convnextv2": CONVNEXT, "deepseek_v2": {"num_key_value_heads": 4}, "deepseek_v3": {"num_key_value_heads": 4},
    "dots1": {"n_shared_experts": 1}, "efficientnet": {"hidden_dim": None}, "encodec": {"hidden_size": 16,
    "num_filters": 4, "codebook_size": 16, "codebook_dim": 16}, "funnel": {"block_sizes": [1, 1],
    "num_hidden_layers": None, "architectures": ["FunnelModel"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]}, "gptj": {"rotary_dim": 4},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 8}, "levit": {"image_size": 64, "patch_size": None},
    "lilt": {"hidden_size": 48}, "mamba2": {"num_heads": 8}, "mobilevitv2": {"image_size": 64, "patch_size": None},
    "moonshine": {"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4,
                  "decoder_num_attention_heads": 4, "encoder_num_key_value_heads": 4,
                  "decoder_num_key_value_heads": 4},
    "parakeet_encoder": {"num_key_value_heads": 4, "subsampling_conv_channels": 16},
    "prophetnet": {"num_hidden_layers": None, "num_encoder_layers": 2, "num_encoder_attention_heads": 4,
                   "num_decoder_attention_heads": 4},
    "speech_to_text": {"conv_channels": 32, "input_feat_per_channel": 16}, "swin": SWIN, "swinv2": SWIN,
    "wav2vec2-bert": {"feature_projection_input_dim": 16, "output_hidden_size": 32},
    "audio-spectrogram-transformer": {"max_length": 64}, "xlnet": {"max_position_embeddings": None},
    "xmod": {"default_language": "en_XX"},
}


def spectrum(frames, bins):
    """Frames of a spectrum, features last"""
    return torch.randn(2, frames, bins)


def tokens(length=8):
    """Two rows of tokens, none of which is a special one"""
    return torch.randint(3, 96, (2, length))


def masked():
    """The inputs of an encoder-decoder, with masks"""
    lengths = {"attention_mask": 8, "decoder_attention_mask": 6}
    masks = {name: torch.ones(2, n, dtype=torch.int64) for name, n in lengths.items()}
    return INPUTS["encoder-decoder"]() | masks


def image(size=32):
    """Two pictures"""
    return torch.randn(2, 3, size, size)


INPUTS = {
    "text": lambda: {"input_ids": tokens()},
    "mixture of experts": lambda: {"input_ids": tokens()},
    "state space": lambda: {"input_ids": tokens()},
    "encoder-decoder": lambda: {"input_ids": tokens(), "decoder_input_ids": tokens(6)},
    "vision": lambda: {"pixel_values": image()},
    "speech": lambda: {"input_values": torch.randn(2, 2000)},
    "speech to text": lambda: {"input_features": torch.randn(2, 16, 128), "decoder_input_ids": tokens(6)},
    "image and text": lambda: {"input_ids": tokens(), "pixel_values": image()},
}

# Of the architectures that take others than their kind.
OWN_INPUTS = {
    "audio-spectrogram-transformer": lambda: {"input_values": spectrum(64, 16)},
    "encodec": lambda: {"input_values": torch.randn(1, 1, 2000)},
    "levit": lambda: {"pixel_values": image(64)},
    "longt5": masked,
    "mobilevitv2": lambda: {"pixel_values": image(64)},
    "moonshine": lambda: {"input_values": torch.randn(2, 2000), "decoder_input_ids": tokens(6)},
    "parakeet_encoder": lambda: {"input_features": spectrum(64, 16)},
    "speech_to_text": lambda: {"input_features": spectrum(64, 16), "decoder_input_ids": tokens(6)},
    "switch_transformers": masked,
    "wav2vec2-bert": lambda: {"input_features": spectrum(64, 16)},
}


class Outputs(nn.Module):
    """A model without its cache. Its results are the tensors among the outputs, by name."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        takes_cache = "use_cache" in inspect.signature(model.forward).parameters
        self.fixed = {"use_cache": False} if takes_cache else {}

    def forward(self, **inputs):
        outputs = self.model(**inputs, **self.fixed)
        return {name: value for name, value in outputs.items() if isinstance(value, torch.Tensor)}


def small_sizes(default):
    """The sizes that a configuration has and that become small"""
    known = set(default.to_dict()) | set(default.attribute_map)
    return {key: size for key, size in SMALL.items()
            if key in known and isinstance(getattr(default, key), (int, type(None)))}


def config(kind, name):
    """The tiny configuration of an architecture."""
    from transformers import AutoConfig

    default = AutoConfig.for_model(name)
    if kind == "image and text":  # two towers
        return AutoConfig.for_model(name, **{part: small_sizes(getattr(default, part))
                                             for part in ("text_config", "vision_config")})
    sizes = small_sizes(default) | EXTRA.get(name, {})
    return AutoConfig.for_model(name, **{key: value for key, value in sizes.items() if value is not None})


def architectures(_):
    """(family, name) of each"""
    return [(kind, name) for kind, names in KINDS.items() for name in names.split()]


def make(_, kind, name):
    """The module of an architecture, its arguments and keyword arguments."""
    import transformers

    transformers.logging.set_verbosity_error()
    model = transformers.AutoModel.from_config(config(kind, name))
    return Outputs(model), (), OWN_INPUTS.get(name, INPUTS[kind])()
