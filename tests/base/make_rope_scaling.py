"""Writes rope_scaling.inc: frequencies and magnitudes of Hugging Face transformers.

usage: make_rope_scaling.py > rope_scaling.inc   (needs transformers and torch; float32 there)
"""
import sys

import torch
import transformers
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "original_max_position_embeddings": 4096}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
CASES = [
    ("linear", 64, {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}),
    ("llama3 8B", 128, LLAMA3),
    ("llama3 1B", 64, LLAMA3 | {"factor": 32.0}),
    ("yarn 64", 64, YARN | {"factor": 64.0}),
    ("yarn stated factor", 64, YARN | {"factor": 64.0, "attention_factor": 1.0}),
    ("yarn below 1", 64, YARN | {"factor": 0.5}),
    ("deepseek", 64, YARN | {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "beta_fast": 32, "beta_slow": 1}),
    ("deepseek uneven", 64, YARN | {"factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.0}),
    ("gpt-oss", 64, {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0,
                     "beta_slow": 1.0, "truncate": False,
                     "original_max_position_embeddings": 4096}),
    ("yarn other betas", 32, YARN | {"factor": 4.0, "rope_theta": 1000000.0, "beta_fast": 16,
                                     "beta_slow": 2, "original_max_position_embeddings": 32768}),
]
FIELDS = ["factor", "attention_factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow",
          "low_freq_factor", "high_freq_factor"]

print(f"/* made by make_rope_scaling.py with transformers {transformers.__version__}, "
      f"torch {torch.__version__} */")
for name, dim, params in CASES:
    config = LlamaConfig(hidden_size=dim, num_attention_heads=1, head_dim=dim,
                         max_position_embeddings=131072, rope_parameters=dict(params))
    freq, magnitude = ROPE_INIT_FUNCTIONS[params["rope_type"]](config, device="cpu")
    given = [f".{f} = {params[f]!r}" for f in FIELDS if f in params]
    if params.get("truncate") is False:
        given.append(".keep_fractions = true")
    if "original_max_position_embeddings" in params:
        given.append(f".original_max_position = {params['original_max_position_embeddings']}")
    print(f'{{"{name}",\n {{.type = ATS_ROPE_{params["rope_type"].upper()}, .rotary_dim = {dim}, '
          f'.theta = {params["rope_theta"]!r},\n  ' + ",\n  ".join(given) + "},")
    print(f" {magnitude!r},\n {{")
    values = [f"{x:.9g}" for x in freq.tolist()]
    for i in range(0, len(values), 6):
        print("  " + ", ".join(values[i:i + 6]) + ",")
    print(" }},")
