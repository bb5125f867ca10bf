"""Trains the recall model by the plan of short.npz and long.npz (one thread; the loss starts to fall late).

usage: train.py short OUT.npz MINUTES
       train.py long OUT.npz MINUTES --start SHORT.npz
"""

from __future__ import annotations

import argparse
import time

import documents
import model as recall
import numpy as np
import torch
import torch.nn.functional as F

# (until this share of the time, batch, tokens, live keys, share of near misses)
PLANS = {"short": [(0.3, 64, 64, 8, 0.0), (0.4, 48, 96, 8, 0.3), (0.6, 24, 192, 12, 0.3), (1.0, 12, 512, 24, 0.3)],
         "long": [(0.3, 8, 1024, 32, 0.4), (1.0, 4, 2048, 48, 0.4)]}
RATE = {"short": 3e-3, "long": 5e-4}


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("kind", choices=PLANS)
    p.add_argument("out")
    p.add_argument("minutes", type=float)
    p.add_argument("--start")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(a.seed)
    rng, model = np.random.default_rng(a.seed), recall.Recall()
    if a.start:
        model = recall.load(a.start).train()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    started, step, recent = time.monotonic(), 0, []
    while (done := (time.monotonic() - started) / 60 / a.minutes) < 1:
        _, batch, length, live, near = next(x for x in PLANS[a.kind] if done <= x[0])
        decay = 1 if done < 0.6 else max(0.02, (1 - done) / 0.4)
        for group in optimizer.param_groups:
            group["lr"] = RATE[a.kind] * min(1, (step + 1) / 100) * decay
        made = [documents.sequence(rng, length + 1, live, near) for _ in range(batch)]
        tokens, is_answer = (torch.from_numpy(np.stack(x)) for x in zip(*made))
        logits, target, asked = model(tokens[:, :-1]), tokens[:, 1:], is_answer[:, 1:]
        loss = F.cross_entropy(logits[asked], target[asked])
        total = loss + 0.05 * F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        recent.append((logits[asked].argmax(-1) == target[asked]).float().mean().item())
        if step % 50 == 0:
            print(f"{done:4.0%} step {step} tokens {length} loss {loss.item():.3f} "
                  f"right {np.mean(recent[-50:]):.3f}", flush=True)
    recall.save(model.eval(), a.out)


if __name__ == "__main__":
    main()
