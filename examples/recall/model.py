"""A small decoder that retrieves facts: 3 layers, 4 query heads on 2 key heads of 32, about half a million weights.

Tokens: 0 BOS, 1 FACT, 2 ASK, 64 first key words, 64 second key words, 64 values, 64 filler words.
A fact is FACT k1 k2 value; a question is ASK k1 k2, and the next token is the value of the latest
fact with that key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from documents import FILLER, WORDS
from torch import Tensor, nn

VOCABULARY = FILLER + WORDS
LAYERS, WIDTH, HEADS, KEY_HEADS, HEAD_SIZE, HIDDEN = 3, 128, 4, 2, 32, 256
INV_FREQ = 10000.0 ** (-np.arange(0, HEAD_SIZE, 2) / HEAD_SIZE)


def rotate(x: Tensor) -> Tensor:
    """RoPE, half layout, at positions 0, 1, ...; x [batch, heads, rows, HEAD_SIZE]."""
    angle = (torch.arange(x.shape[-2]).double()[:, None] * torch.from_numpy(INV_FREQ)).float()
    c, s, (a, b) = angle.cos(), angle.sin(), x.chunk(2, -1)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.wq = nn.Linear(WIDTH, HEADS * HEAD_SIZE)
        self.wk = nn.Linear(WIDTH, KEY_HEADS * HEAD_SIZE)
        self.wv = nn.Linear(WIDTH, KEY_HEADS * HEAD_SIZE, bias=False)
        self.wo = nn.Linear(HEADS * HEAD_SIZE, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
        # every token sees its two predecessors before it is made into a query or key
        self.mix = nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH, bias=False)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.n1(x)
        y = y + self.mix(F.pad(y.transpose(1, 2), (2, 0))).transpose(1, 2)

        def heads(z: Tensor) -> Tensor:
            return z.unflatten(-1, (-1, HEAD_SIZE)).transpose(1, 2)

        return rotate(heads(self.wq(y))), rotate(heads(self.wk(y))), heads(self.wv(y))

    def rest(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The stream after this block, and the attention's output [batch, heads, rows, HEAD_SIZE]."""
        o = F.scaled_dot_product_attention(q, k.repeat_interleave(HEADS // KEY_HEADS, 1),
                                           v.repeat_interleave(HEADS // KEY_HEADS, 1), is_causal=True)
        x = x + self.wo(o.transpose(1, 2).flatten(2))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), o


class Recall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for name, p in self.named_parameters():
            if name.endswith(("wq.bias", "wk.bias")):
                nn.init.normal_(p, std=1.0)
            elif p.dim() == 2:
                small = 0.3 if name.endswith(("wo.weight", "down.weight")) else 1.0
                nn.init.normal_(p, std={"emb.weight": 1.0, "head.weight": 0.02}.get(
                    name, small * p.shape[1] ** -0.5))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.emb(tokens)
        for block in self.blocks:
            x, _ = block.rest(x, *block.qkv(x))
        return self.head(self.norm(x))

    def run(self, tokens: list[int]) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Logits of the last token and per layer q, k, v, output, with q, k, v rounded to bfloat16
        before they are used, so that 16 stored bits are what the model saw."""
        taps: list[Any] = []
        with torch.inference_mode():
            x = self.emb(torch.tensor([tokens]))
            for block in self.blocks:
                q, k, v = (t.bfloat16().float() for t in block.qkv(x))
                x, o = block.rest(x, q, k, v)
                taps.append((q[0], k[0], v[0], o[0]))
            return self.head(self.norm(x))[0, -1], taps


def load(path: str | Path) -> Recall:
    model = Recall()
    with np.load(path) as f:
        model.load_state_dict({k: torch.from_numpy(f[k].astype("f4")) for k in f.files})
    return model.eval()


def save(model: Recall, path: str | Path) -> None:
    np.savez_compressed(path, **{k: v.numpy().astype("f2") for k, v in model.state_dict().items()})
