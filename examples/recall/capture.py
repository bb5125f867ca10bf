"""Asks the recall model about planted documents and captures its attention.

usage: capture.py WEIGHTS.npz OUT.h5 [--documents 100] [--length 1024] [--seed 70000] [--inserted 1,2,4,8,16,32,64]

Needs torch, and the Python package of this repository (PYTHONPATH=python).
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import documents
import model as recall
import numpy as np
import torch
from attnstress import CaptureWriter, LayerInfo, SampleInfo, Span, Tensor

PROBES = 1  # the last key word: there the answer is said


def bits(t: torch.Tensor) -> Tensor:
    return Tensor(t.bfloat16().contiguous().view(torch.uint16).numpy(), "bfloat16")


def log_sum_exp(q: torch.Tensor, k: torch.Tensor) -> np.ndarray:
    """[heads, probes] in double; q [heads, probes, d], k [key heads, n, d]."""
    n, group = k.shape[1], recall.HEADS // recall.KEY_HEADS
    z = q.double() @ k.double().repeat_interleave(group, 0).mT * recall.HEAD_SIZE**-0.5
    hidden = torch.arange(n)[None] > torch.arange(n - PROBES, n)[:, None]
    return torch.logsumexp(z.masked_fill(hidden, -torch.inf), -1).float().numpy()


def layers(model: recall.Recall) -> dict[int, LayerInfo]:
    def slices(w: torch.Tensor) -> Tensor:
        per_head = w.detach().T.reshape(recall.HEADS, recall.HEAD_SIZE, recall.WIDTH)
        return Tensor(per_head.contiguous().numpy(), "float32")

    return {i: LayerInfo(recall.HEADS, recall.KEY_HEADS, recall.HEAD_SIZE, recall.HEAD_SIZE,
                         recall.HEAD_SIZE**-0.5, rope_layout="half", positions="rope",
                         inv_freq=recall.INV_FREQ, w_o=slices(block.wo.weight))
            for i, block in enumerate(model.blocks)}


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("weights", type=Path)
    p.add_argument("out", type=Path)
    p.add_argument("--documents", type=int, default=100)
    p.add_argument("--length", type=int, default=1024)
    p.add_argument("--near", type=int, default=4, help="near misses of each asked fact in the base")
    p.add_argument("--seed", type=int, default=70000)
    p.add_argument("--inserted", default="1,2,4,8,16,32,64")
    a = p.parse_args()
    numbers = [int(x) for x in a.inserted.split(",") if x]
    model, header = recall.load(a.weights), {
        "model_id": "recall-3x128", "checkpoint": a.weights.stem, "producer": "examples/recall/capture.py",
        "weights_hash": hashlib.sha256(a.weights.read_bytes()).hexdigest(),
        "tokenizer_hash": hashlib.sha256(b"recall-vocab-259").hexdigest()}
    job = {k: str(v) for k, v in vars(a).items()} | {"weights_hash": header["weights_hash"]}
    writer, contract, count, right = CaptureWriter(a.out, header, job), layers(model), 0, 0
    for d in range(a.documents):
        for ask in documents.planted(a.seed + d, a.length, a.near, numbers):
            logits, taps = model.run(ask.tokens)
            p_next, top, n = torch.softmax(logits.double(), -1), int(logits.argmax()), len(ask.tokens)
            info = SampleInfo(
                ask.id, np.array(ask.tokens), np.arange(n), np.arange(n - PROBES, n),
                ["question"] * (PROBES - 1) + ["answer"], [Span(*s) for s in ask.spans], ask.document,
                [documents.text(t) for t in ask.tokens],
                f"{ask.document}-{ask.kind}" if ask.inserted else None,
                np.array(ask.base_index) if ask.inserted else None,
                {"answer": documents.text(ask.answer), "model_top_token": documents.text(top),
                 "p_answer": float(p_next[ask.answer]), "p_top": float(p_next[top]),
                 "question_kind": ask.kind, "inserted_facts": ask.inserted})
            with writer.sample(count, info, contract) as sample:
                for i, (q, k, v, o) in enumerate(taps):
                    q, o = q[:, -PROBES:], o[:, -PROBES:]
                    sample.layer(i, bits(q), bits(k), bits(v), o.contiguous().numpy(), log_sum_exp(q, k))
            count, right = count + 1, right + (top == ask.answer)
    writer.finish(count)
    print(f"{a.out}: {count} samples, {right} answered right")


if __name__ == "__main__":
    main()
