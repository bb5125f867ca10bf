"""Attention of the probe rows in double, from what the model handed over and its own mask.

It honours scale, soft cap, sink and the mask that the model built; windows and chunks enter
through that mask alone. So `attnstress verify`, which derives legality from positions, proves
that the stored contract means what the model did.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import Unsupported

LOGIT_BYTES = 256 << 20  # of one block of logits


@dataclass
class MaskRows:
    """legal [P, n] bool; bias [1 or Hq, P, n] float or None."""

    legal: torch.Tensor
    bias: torch.Tensor | None


def mask_rows(mask: torch.Tensor | None, rows: torch.Tensor, keys: int, causal: bool,
              layer: int) -> MaskRows:
    """The rows of a mask as transformers builds it: absent, boolean (True: attend) or additive."""
    if mask is None:
        index = torch.arange(keys, device=rows.device)
        legal = index[None] <= rows[:, None] if causal else torch.ones(
            len(rows), keys, dtype=torch.bool, device=rows.device)
        return MaskRows(legal, None)
    if mask.dim() != 4 or mask.shape[0] != 1 or mask.shape[-1] < keys:
        raise Unsupported(f"layer {layer}: an attention mask of shape {tuple(mask.shape)} is not "
                          f"understood; expected [1, heads, queries, {keys}]")
    part = mask[0, :, rows, :keys] if mask.shape[2] > 1 else mask[0, :, :, :keys].expand(
        -1, len(rows), -1)
    if mask.dtype == torch.bool:
        legal, bias = part, None
    else:
        legal = part > torch.finfo(mask.dtype).min / 2
        bias = torch.where(legal, part, 0).float()
        if not bool((bias != 0).any()):
            bias = None
    if legal.shape[0] > 1 and not bool((legal == legal[:1]).all()):
        raise Unsupported(f"layer {layer}: the heads have different masks, which a capture cannot say")
    return MaskRows(legal[0], bias)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: MaskRows, scale: float,
              softcap: float, sink: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
    """q [Hq, P, d], k [Hkv, n, d], v [Hkv, n, dv] -> out [Hq, P, dv], lse [Hq, P], and
    sum w |v| [Hq, P], the size that rounding errors of `out` are measured against; in double."""
    if q.device.type == "mps":  # has no double
        q, k, v = q.cpu(), k.cpu(), v.cpu()
        mask = MaskRows(mask.legal.cpu(), None if mask.bias is None else mask.bias.cpu())
        sink = None if sink is None else sink.cpu()
    heads, probes, _ = q.shape
    group, keys = heads // k.shape[0], k.shape[1]
    step = max(1, LOGIT_BYTES // (8 * group * keys))
    out = torch.empty(heads, probes, v.shape[2], dtype=torch.float64, device=q.device)
    lse = torch.empty(heads, probes, dtype=torch.float64, device=q.device)
    size = torch.empty_like(lse)
    for kv in range(k.shape[0]):
        kd, vd = k[kv].double(), v[kv].double()
        v_norm = vd.norm(dim=-1)
        mine = slice(kv * group, (kv + 1) * group)
        for a in range(0, probes, step):
            part = slice(a, a + step)
            x = q[mine, part].double() @ kd.T * scale
            if softcap:
                x = softcap * torch.tanh(x / softcap)
            if mask.bias is not None:
                x = x + (mask.bias[mine, part] if mask.bias.shape[0] > 1 else mask.bias[:, part])
            x = x.masked_fill(~mask.legal[part], -torch.inf)
            total = x.logsumexp(-1)
            if sink is not None:
                total = torch.logaddexp(total, sink[mine].double()[:, None].expand_as(total))
            w = (x - total[..., None]).exp()
            out[mine, part], lse[mine, part], size[mine, part] = w @ vd, total, w @ v_norm
    return out, lse, size


# Rounding of one attention output in the model's own arithmetic, relative to sum w |v|: weights
# and result are rounded once each, softmax and sums add a few units.
TOLERANCE = {torch.float32: 1e-4, torch.float16: 6e-3, torch.bfloat16: 4e-2}


def check(model_out: torch.Tensor, out: torch.Tensor, size: torch.Tensor, dtype: torch.dtype,
          layer: int, inner: str) -> float:
    """Worst difference between the model's own output [Hq, P, dv] and the reference."""
    gap = (model_out.to(out.device, torch.float64) - out).norm(dim=-1) / size
    worst = float(gap.max())
    if not worst <= TOLERANCE[dtype]:
        at = int(gap.flatten().argmax())
        raise Unsupported(
            f"layer {layer}, head {at // gap.shape[1]}: the model's own attention ({inner}) differs "
            f"from a double reference by {worst:.2g} of the value norm, more than rounding can "
            f"({TOLERANCE[dtype]:.0e}). The model does something here that this adapter does not "
            "understand, or its attention implementation ignores a soft cap or sink that it was "
            "given; load it with attn_implementation='eager' and try again")
    return worst
