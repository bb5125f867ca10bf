"""Positions that enter a model other than by a rotation.

Before its first layer: rows of such a model cannot be moved. It is found out, not looked up: one
token, repeated, must enter the first layer as the same row everywhere. The pass ends there, before
any attention. Names of modules say it for models that add positions later.

In the temperature of its queries (Llama 4, Ministral 3): 1 up to some position, then growing. The
configuration says from where.
"""

from __future__ import annotations

from typing import Any

import torch

REPEATS = 4
TOLERANCE = 1e-5  # relative; rows that differ by nothing but their position are equal bit by bit
NAMES = {"wpe", "position_embeddings", "embed_positions", "position_embedding"}


class _Entered(Exception):
    """Ends the pass where the first layer begins."""


def absolute(model: torch.nn.Module) -> bool:
    """True as well when it cannot be seen: such rows must not be moved."""
    if any(path.rsplit(".", 1)[-1] in NAMES for path, _ in model.named_modules()):
        return True
    rows = _entering(model)
    if rows is None:
        return True
    rows = rows[0].float()
    return bool((rows - rows[:1]).abs().max() > TOLERANCE * rows.abs().max())


def _entering(model: torch.nn.Module) -> torch.Tensor | None:
    """Hidden states [1, REPEATS, d_model] that the first module with a layer number is given."""
    seen: list[torch.Tensor] = []

    def enter(_: torch.nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        for x in (*args, *keywords.values()):
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() == 3 and (
                    x.shape[:2] == (1, REPEATS)):
                seen.append(x.detach())
                raise _Entered

    hooks = [m.register_forward_pre_hook(enter, with_kwargs=True) for m in model.modules()
             if isinstance(getattr(m, "layer_idx", None), int)]
    weight = model.get_input_embeddings().weight  # type: ignore[operator]
    padding = getattr(model.config, "pad_token_id", None)  # some count their positions from it
    token = (padding or 0) + 1 if (padding or 0) + 1 < weight.shape[0] else 0
    try:
        with torch.no_grad():
            model(input_ids=torch.full((1, REPEATS), token, device=weight.device))
    except _Entered:
        pass
    except Exception:  # whatever a model does not bear in so short a text: nothing was seen
        return None
    finally:
        for hook in hooks:
            hook.remove()
    return seen[0] if seen else None


def scaled_from(module: torch.nn.Module) -> int | None:
    """First position whose query the layer scales by its position; None: it never does."""
    if getattr(module, "attn_temperature_tuning", False) and not getattr(module, "use_rope", False):
        return int(getattr(module, "floor_scale", 1)) - 1
    rope = getattr(getattr(module, "config", None), "rope_parameters", None)
    if isinstance(rope, dict) and rope.get("llama_4_scaling_beta"):
        return int(rope.get("original_max_position_embeddings") or 0)
    return None
