"""What rotation the model really applies: layout and inverse frequencies, proved on its own rows.

While a model is captured its functions `apply_*rot*` are watched. A layer's rotation is accepted
when one of the model's frequency tables, in one of the two layouts, turns the unrotated keys of
several rows into the rotated ones. Anything else is refused or marked as not movable.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch

from ..errors import Unsupported

WATCHED = re.compile(r"^_?apply_.*rot")
IGNORED = re.compile(r"vision|audio|time")
TOLERANCE = {torch.float32: 2e-3, torch.float16: 8e-3, torch.bfloat16: 3e-2}
DYNAMIC = ("dynamic", "longrope", "su")
ROWS_CHECKED = 16


@dataclass
class Rotation:
    """One call: rows before and after."""

    before: torch.Tensor
    after: torch.Tensor


@dataclass(frozen=True)
class Table:
    """inv_freq [r / 2] float64 on the CPU; `kind` as the model's configuration calls it."""

    inv_freq: torch.Tensor
    name: str
    kind: str


@dataclass(frozen=True)
class Rope:
    """`table` is None where rotated and plain dimensions are mixed so that rows cannot be moved."""

    table: Table | None
    layout: str

    @property
    def dynamic(self) -> bool:
        return self.table is not None and self.table.kind in DYNAMIC


class Watch:
    def __init__(self) -> None:
        self.last: list[Rotation] = []

    def take(self) -> list[Rotation]:
        last, self.last = self.last, []
        return last

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            given = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)]
            made = result if isinstance(result, tuple) else (result,)
            # (q, k) at once, or functions of one tensor that are called for q, then for k
            for before, after in zip(given, made[:2]):
                if isinstance(after, torch.Tensor) and after.dim() == 4:
                    self.last = [*self.last[-3:], Rotation(before, after)]
            return result

        return watched


@contextmanager
def watching(model: torch.nn.Module) -> Iterator[Watch]:
    """Replaces the rotation functions in the modules that define the model's layers."""
    watch, replaced = Watch(), []
    try:
        for name in {type(m).__module__ for m in model.modules()}:
            module = sys.modules.get(name)
            for key, value in list(vars(module).items()) if module else []:
                if callable(value) and WATCHED.match(key) and not IGNORED.search(key):
                    replaced.append((module, key, value))
                    setattr(module, key, watch.wrap(value))
        yield watch
    finally:
        for module, key, value in replaced:
            setattr(module, key, value)


def tables(model: torch.nn.Module) -> list[Table]:
    """Frequency tables as they are now; a dynamic one may have been changed by the last forward."""
    found = []
    for path, module in model.named_modules():
        for name, value in [*module._buffers.items(), *vars(module).items()]:
            if not name.endswith("inv_freq") or "original" in name or "long_" in name:
                continue
            if isinstance(value, torch.Tensor) and value.dim() == 1:
                kind = getattr(module, "rope_type", "default")
                if isinstance(kind, dict):
                    kind = kind.get(name.removesuffix("_inv_freq"), "default")
                found.append(Table(value.detach().double().cpu(), f"{path}.{name}", str(kind)))
    return found


def rotate(x: torch.Tensor, angle: torch.Tensor, layout: str) -> torch.Tensor:
    """x [..., m, r], angle [m, r / 2]."""
    cos, sin = angle.cos(), angle.sin()
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def _rows_first(x: torch.Tensor, heads: int, keys: int) -> torch.Tensor | None:
    """[1, H, n, w] or [1, n, H, w] -> [H, n, w]."""
    x = x[0]
    if x.shape[:2] == (heads, keys):
        return x
    if x.shape[:2] == (keys, heads):
        return x.transpose(0, 1)
    return None


def _error(before: torch.Tensor, after: torch.Tensor, position: torch.Tensor, table: Table,
           layout: str) -> float:
    """Worst relative error over rows, a constant factor (YaRN's) taken out."""
    r = 2 * len(table.inv_freq)
    if r > before.shape[-1]:
        return float("inf")
    expected = rotate(before[..., :r], position[:, None] * table.inv_freq, layout)
    actual = after[..., :r]
    factor = float((expected * actual).sum() / expected.square().sum().clamp_min(1e-300))
    if factor <= 0:
        return float("inf")
    gap = (actual - factor * expected).norm(dim=-1)
    rest = (after[..., r:] - before[..., r:]).norm(dim=-1)
    return float(((gap + rest) / after.norm(dim=-1).clamp_min(1e-30)).max())


def _parallel(after: torch.Tensor, entering: torch.Tensor) -> bool:
    """Is every row that enters the dot product a positive multiple of what the rotation made? A factor
    of each row (a norm) stands any further turn, a factor of each dimension does not. Rounding to
    bfloat16 alone leaves 1 - cosine below 1e-5."""
    a, b = after.double(), entering[..., : after.shape[-1]].double()
    return a.shape == b.shape and bool(
        (torch.nn.functional.cosine_similarity(a, b, dim=-1) > 1 - 5e-5).all())


def recognise(calls: list[Rotation], query: torch.Tensor, key: torch.Tensor, position: torch.Tensor,
              candidates: list[Table], layer: int) -> Rope | None:
    """The rotation in queries [Hq, n, d] and keys [Hkv, n, d]; None when the layer rotated nothing."""
    if not calls:
        return None
    heads, keys, _ = key.shape
    call = calls[-1]
    before, after = (_rows_first(x, heads, keys) for x in (call.before, call.after))
    rows = torch.unique(torch.linspace(0, keys - 1, min(keys, ROWS_CHECKED)).long())
    if before is None or after is None:
        return Rope(None, "none")
    if not candidates:
        raise Unsupported(f"layer {layer}: the model rotates its keys, but has no frequency table "
                          "(a buffer named ...inv_freq) that says how")

    def pick(x: torch.Tensor) -> torch.Tensor:
        return x[:, rows.to(x.device)].cpu().double()

    b, a, p = pick(before), pick(after), position[rows.to(position.device)].double().cpu()
    ranked = sorted(((_error(b, a, p, table, layout), i, layout)
                     for i, table in enumerate(candidates) for layout in ("half", "interleaved")))
    error, index, layout = ranked[0]
    if not error <= TOLERANCE.get(key.dtype, 0.0):
        raise Unsupported(
            f"layer {layer}: no frequency table of the model explains how its keys are rotated "
            f"(closest: {candidates[index].name}, {layout}, error {error:.2g}); positions could not "
            "be moved correctly")
    # A move acts on the first r dimensions of what enters the dot product.
    turned = _rows_first(calls[-2].after, query.shape[0], keys) if len(calls) > 1 else None
    leads = _parallel(a, pick(key)) and turned is not None and _parallel(pick(turned), pick(query))
    return Rope(candidates[index], layout) if leads else Rope(None, "none")
