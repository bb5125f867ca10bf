"""Tiny random models of many families, from their configurations."""

from __future__ import annotations

from typing import Any, Callable

import torch
import transformers as tf

COMMON: dict[str, Any] = dict(vocab_size=199, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
                              pad_token_id=0, bos_token_id=1, eos_token_id=2)
WINDOW = 16


def _make(config: Any, attention: str = "sdpa", dtype: torch.dtype = torch.float32) -> Any:
    torch.manual_seed(1)
    config._attn_implementation = attention
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation=attention).to(dtype).eval()
    with torch.no_grad():  # sharper routes than a fresh model's, and norms that are not 1
        for name, p in model.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight", "qkv_proj.weight")):
                p.mul_(6)
            elif "norm" in name or name.endswith("sinks"):
                p.add_(0.3 * torch.randn_like(p))
    return model


def _kinds(*kinds: str) -> list[str]:
    return [f"{k}_attention" for k in kinds]


FAMILIES: dict[str, Callable[[], Any]] = {
    "llama-llama3": lambda: _make(tf.LlamaConfig(**COMMON, rope_parameters={
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 128})),
    "llama-yarn": lambda: _make(tf.LlamaConfig(**COMMON, rope_parameters={
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
        "original_max_position_embeddings": 128})),
    "llama-linear": lambda: _make(tf.LlamaConfig(**COMMON, rope_parameters={
        "rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0})),
    "llama-bf16": lambda: _make(tf.LlamaConfig(**COMMON), dtype=torch.bfloat16),
    "llama-fp16": lambda: _make(tf.LlamaConfig(**COMMON), dtype=torch.float16),
    "llama-eager": lambda: _make(tf.LlamaConfig(**COMMON), "eager"),
    "qwen2": lambda: _make(tf.Qwen2Config(**COMMON, use_sliding_window=True, sliding_window=WINDOW,
                                          max_window_layers=1)),
    "qwen3": lambda: _make(tf.Qwen3Config(**COMMON, head_dim=16)),
    "gemma2": lambda: _make(tf.Gemma2Config(
        **COMMON, head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=24,
        attn_logit_softcapping=3.0), "eager"),
    "gemma3": lambda: _make(tf.Gemma3TextConfig(
        **COMMON, head_dim=16, sliding_window=WINDOW, query_pre_attn_scalar=24,
        layer_types=_kinds("sliding", "sliding", "full"))),
    "mistral": lambda: _make(tf.MistralConfig(**COMMON, sliding_window=WINDOW)),
    "phi3": lambda: _make(tf.Phi3Config(**COMMON, sliding_window=WINDOW)),
    "phi": lambda: _make(tf.PhiConfig(**COMMON, partial_rotary_factor=0.5)),
    "olmo2": lambda: _make(tf.Olmo2Config(**COMMON)),
    "gpt-oss": lambda: _make(tf.GptOssConfig(
        **COMMON, head_dim=16, sliding_window=WINDOW, num_local_experts=4, num_experts_per_tok=2,
        layer_types=_kinds("sliding", "full", "sliding")), "eager"),
    "granite": lambda: _make(tf.GraniteConfig(**COMMON, attention_multiplier=0.2)),
    "cohere": lambda: _make(tf.CohereConfig(**COMMON)),
    "cohere2": lambda: _make(tf.Cohere2Config(
        **COMMON, sliding_window=WINDOW, layer_types=_kinds("sliding", "full", "sliding"))),
    "smollm3": lambda: _make(tf.SmolLM3Config(**COMMON, no_rope_layers=[1, 0, 1])),
    "glm": lambda: _make(tf.GlmConfig(**COMMON, head_dim=16)),
    "starcoder2": lambda: _make(tf.Starcoder2Config(**COMMON, sliding_window=WINDOW)),
    "mixtral": lambda: _make(tf.MixtralConfig(**COMMON, num_local_experts=4, num_experts_per_tok=2)),
    "stablelm": lambda: _make(tf.StableLmConfig(**COMMON, partial_rotary_factor=0.25)),
    "gpt-neox": lambda: _make(tf.GPTNeoXConfig(**{k: v for k, v in COMMON.items()
                                                  if k != "num_key_value_heads"})),
    "gpt2": lambda: _make(tf.GPT2Config(vocab_size=199, n_embd=64, n_layer=3, n_head=4, n_positions=512,
                                        bos_token_id=1, eos_token_id=2)),
    "llama4": lambda: _make(tf.Llama4TextConfig(
        **COMMON, head_dim=16, intermediate_size_mlp=96, num_local_experts=2, attention_chunk_size=WINDOW,
        layer_types=_kinds("chunked", "chunked", "full"), no_rope_layers=[1, 1, 0])),
}
