"""One forward pass with the adapter in place of the model's attention.

`attnstress` is registered as an attention and as a mask implementation. The attention function
hands the call on to the implementation that the model had (so the model computes what it always
does), checks the result against a reference in double, and passes q, k, v of one layer at a time
to a sink. Nothing is kept after the layer. Only one session is active in a process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..errors import InternalError, Unsupported
from ..writer import LayerInfo, Tensor
from . import positions, reference, rope

NAME = "attnstress"
INNER = ("sdpa", "eager")
# What models hand to every attention function besides what is read below; none of it enters the
# arithmetic of these two implementations.
HARMLESS = {
    "position_ids", "cache_position", "position_embeddings", "use_cache", "output_attentions",
    "output_hidden_states", "return_dict", "num_items_in_batch", "logits_to_keep", "layer_idx",
    "output_router_logits", "deterministic", "target_dtype",
}
STORAGE_NAME = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


@dataclass
class LayerCapture:
    """What one layer of one sample gives to the file."""

    index: int
    info: LayerInfo
    q: Tensor
    k: Tensor
    v: Tensor
    out: np.ndarray
    lse: np.ndarray
    keep: np.ndarray | None
    bias: np.ndarray | None
    error: float


@dataclass
class Request:
    """keys: rows of the padded input that are real; probes index into keys."""

    keys: torch.Tensor
    probes: torch.Tensor
    position: torch.Tensor
    layers: set[int] | None
    residual: bool
    max_position: int


def to_tensor(x: torch.Tensor) -> Tensor:
    x = x.detach().contiguous().cpu()
    storage = STORAGE_NAME[x.dtype]
    data = x.numpy() if storage == "float32" else x.view(torch.int16).numpy().view(np.uint16)
    return Tensor(data, storage)


class Session:
    def __init__(self, model: torch.nn.Module, inner: str, absolute: bool):
        self.model, self.inner, self.absolute = model, inner, absolute
        self.watch: rope.Watch | None = None
        self.request: Request | None = None
        self.sink: Callable[[LayerCapture], None] | None = None
        self.seen: set[int] = set()
        self.notes: dict[str, None] = {}

    def forward(self, request: Request, sink: Callable[[LayerCapture], None],
                arguments: Mapping[str, Any]) -> Any:
        self.request, self.sink, self.seen = request, sink, set()
        try:
            with torch.no_grad():
                return self.model(**arguments)
        finally:
            self.request = self.sink = None

    def attend(self, module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
               value: torch.Tensor, mask: torch.Tensor | None, keywords: dict[str, Any]) -> Any:
        request = self.request
        if request is None or self.sink is None or self.watch is None:
            raise InternalError("the model ran under attnstress outside of a capture")
        index = layer_index(module)
        refuse_unknown(module, index, query, key, value, keywords)
        result = inner_function(module, self.inner)(module, query, key, value, mask, **keywords)
        calls = self.watch.take()
        if index in self.seen:
            raise Unsupported(f"layer {index} attends more than once in a forward pass; which call "
                              "to capture is not defined")
        self.seen.add(index)
        if request.layers is None or index in request.layers:
            self.sink(self.layer(module, index, query, key, value, mask, keywords, result, calls))
        return result

    def layer(self, module: torch.nn.Module, index: int, query: torch.Tensor, key: torch.Tensor,
              value: torch.Tensor, mask: torch.Tensor | None, keywords: dict[str, Any],
              result: Any, calls: list[rope.Rotation]) -> LayerCapture:
        request = self.request
        assert request is not None
        keys = request.keys.to(key.device)
        rows = keys[request.probes.to(key.device)]
        q, k, v = query[0, :, rows], key[0][:, keys], value[0][:, keys]
        scale = keywords.get("scaling")
        scale = float(scale) if scale is not None else query.shape[-1] ** -0.5
        softcap = float(keywords.get("softcap") or 0.0)
        sink = keywords.get("s_aux")
        sink = None if sink is None else sink.detach().reshape(-1)
        causal = self.causal(module, keywords)
        full = reference.mask_rows(mask, rows, key.shape[2], causal, index)
        padding = torch.ones(key.shape[2], dtype=torch.bool, device=key.device)
        padding[keys] = False
        if bool(full.legal[:, padding].any()):
            raise Unsupported(f"layer {index}: the model's mask lets probes attend padding")
        own = reference.MaskRows(full.legal[:, keys],
                                 None if full.bias is None else full.bias[:, :, keys])
        out, lse, size = reference.attention(q, k, v, own, scale, softcap, sink)
        heads_out = result[0][0][rows].transpose(0, 1)
        error = reference.check(heads_out, out, size, query.dtype, index, self.inner)
        contract, keep = self.contract(module, index, own.legal, keywords)
        info = LayerInfo(
            n_q_heads=q.shape[0], n_kv_heads=k.shape[0], d_qk=q.shape[2], d_v=v.shape[2],
            scale=scale, softcap=softcap,
            sink=None if sink is None else sink.float().cpu().numpy(),
            w_o=projection(module, index, q.shape[0], v.shape[2]) if request.residual else None,
            **contract, **self.movement(module, index, query[0], key[0], calls))
        return LayerCapture(
            index, info, to_tensor(q), to_tensor(k), to_tensor(v), out.float().cpu().numpy(),
            lse.float().cpu().numpy(), keep,
            None if own.bias is None else own.bias.cpu().numpy(), error)

    def causal(self, module: torch.nn.Module, keywords: dict[str, Any]) -> bool:
        """What an absent mask means: sdpa is told by a flag, eager then masks nothing."""
        if self.inner == "eager":
            return False
        flag = keywords.get("is_causal")
        return bool(getattr(module, "is_causal", True) if flag is None else flag)

    def contract(self, module: torch.nn.Module, index: int, legal: torch.Tensor,
                 keywords: dict[str, Any]) -> tuple[dict[str, Any], np.ndarray | None]:
        """Causality, window and chunk that give exactly the model's mask; else the mask itself."""
        request = self.request
        assert request is not None
        position = request.position.to(legal.device)
        distance = position[request.probes.to(legal.device)][:, None] - position[None]
        chunks = position[request.probes.to(legal.device)][:, None], position[None]
        window, chunk = said_window(module, index, keywords)
        tries = [(True, window, 0), (True, 0, chunk), (True, 0, 0), (False, window, 0), (False, 0, 0)]
        for causal, w, c in dict.fromkeys(tries):
            expected = distance >= 0 if causal else torch.ones_like(legal)
            if w:
                expected = expected & (distance < w) & (distance > -w)
            if c:
                expected = expected & (chunks[0] // c == chunks[1] // c)
            if bool((expected == legal).all()):
                return {"causal": causal, "window": w, "chunk": c}, None
        self.notes.setdefault(f"layer {index}: its mask is neither causal, a window nor chunks of "
                              "positions; it is stored as a plane and does not move with edits")
        return {"causal": False, "window": 0, "chunk": 0}, legal.to(torch.uint8).cpu().numpy()

    def movement(self, module: torch.nn.Module, index: int, query: torch.Tensor, key: torch.Tensor,
                 calls: list[rope.Rotation]) -> dict[str, Any]:
        """How far rows may be moved, and by which rotation."""
        request = self.request
        assert request is not None
        found = self.rotation(index, query, key, calls)
        even = positions.scaled_from(module)
        if even is None:
            return {**found, "max_position": request.max_position}
        if int(request.position[request.probes.cpu()].max()) >= even:
            self.notes.setdefault(f"layer {index}: from position {even} on the model scales its queries by "
                                  "their position; rows of it cannot be moved")
            return {"positions": "absolute", "max_position": request.max_position}
        return {**found, "max_position": min(request.max_position, even)}

    def rotation(self, index: int, query: torch.Tensor, key: torch.Tensor,
                 calls: list[rope.Rotation]) -> dict[str, Any]:
        request = self.request
        assert request is not None
        position = torch.zeros(key.shape[1], dtype=torch.int64)
        position[request.keys.cpu()] = request.position.cpu()
        if len(request.keys) < key.shape[1]:  # judge on real rows alone
            rows = request.keys
            calls = [rope.Rotation(_real(c.before, rows, key), _real(c.after, rows, key))
                     for c in calls]
            query, key = query[:, rows.to(key.device)], key[:, rows.to(key.device)]
            position = request.position.cpu()
        found = rope.recognise(calls, query, key, position, rope.tables(self.model), index)
        if self.absolute:
            return {"positions": "absolute"}
        if found is None:
            return {"positions": "none"}
        if found.table is None:
            self.notes.setdefault(f"layer {index}: rotated and plain dimensions are mixed, or "
                                  "normalised or scaled after the rotation; rows of it cannot be moved")
            return {"positions": "absolute"}
        return {"positions": "rope", "rope_layout": found.layout, "rope_dynamic": found.dynamic,
                "inv_freq": found.table.inv_freq.numpy()}


def _real(x: torch.Tensor, rows: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    axis = 2 if x.dim() == 4 and x.shape[2] == key.shape[1] else 1
    return x.index_select(axis, rows.to(x.device))


def layer_index(module: torch.nn.Module) -> int:
    index = getattr(module, "layer_idx", None)
    if not isinstance(index, int):
        raise Unsupported(f"{type(module).__name__} does not know its layer (no layer_idx)")
    return index


def refuse_unknown(module: torch.nn.Module, index: int, query: torch.Tensor, key: torch.Tensor,
                   value: torch.Tensor, keywords: dict[str, Any]) -> None:
    """Anything that may enter the arithmetic and is not read by `Session.layer` ends the capture."""
    known = {"scaling", "dropout", "softcap", "s_aux", "sliding_window", "is_causal"} | HARMLESS
    for name, what in keywords.items():
        if name in known or what is None or what is False:
            continue
        raise Unsupported(f"layer {index}: the model passes {name}={_short(what)} to its attention, "
                          "which this adapter does not know; captured numbers could be wrong")
    if keywords.get("dropout"):
        raise Unsupported(f"layer {index}: attention dropout {keywords['dropout']} is active; put the "
                          "model into eval mode")
    if query.shape[0] != 1:
        raise Unsupported(f"layer {index}: a batch of {query.shape[0]}; samples are captured one by one")
    if getattr(module, "is_cross_attention", False) or key.shape[2] != query.shape[2]:
        raise Unsupported(f"layer {index}: {query.shape[2]} queries and {key.shape[2]} keys: cross "
                          "attention or a cache, which a capture does not hold")
    if query.shape[1] % key.shape[1] or key.shape[1] != value.shape[1]:
        raise Unsupported(f"layer {index}: {query.shape[1]} query, {key.shape[1]} key and "
                          f"{value.shape[1]} value heads do not fit together")
    expected = getattr(getattr(module, "config", None), "num_attention_heads", query.shape[1])
    if isinstance(expected, int) and query.shape[1] < expected:
        raise Unsupported(f"layer {index}: {query.shape[1]} of {expected} query heads are here: a "
                          "tensor-parallel shard; gather the model on one device or use "
                          "device_map='auto'")
    if query.dtype not in STORAGE_NAME or {key.dtype, value.dtype} != {query.dtype}:
        raise Unsupported(f"layer {index}: q, k, v are {query.dtype}, {key.dtype}, {value.dtype}; a "
                          "capture holds float16, bfloat16 or float32, one for all three")


def _short(x: Any) -> str:
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)[:60]


def said_window(module: torch.nn.Module, index: int, keywords: dict[str, Any]) -> tuple[int, int]:
    """Window and chunk that call, module or configuration speak of; the mask decides."""
    config = getattr(module, "config", None)
    kinds = getattr(config, "layer_types", None) or []
    kind = kinds[index] if index < len(kinds) else ""
    window = keywords.get("sliding_window") or getattr(module, "sliding_window", None)
    if not window and kind == "sliding_attention":
        window = getattr(config, "sliding_window", None)
    if kind == "full_attention":
        window = None
    chunk = getattr(config, "attention_chunk_size", None) if kind == "chunked_attention" else None
    return (int(window) if isinstance(window, int) else 0), int(chunk or 0)


def projection(module: torch.nn.Module, index: int, heads: int, width: int) -> Tensor:
    """W_O as slices [Hq, d_v, d_model]."""
    for name in ("o_proj", "out_proj", "dense", "c_proj", "wo"):
        layer = getattr(module, name, None)
        weight = getattr(getattr(layer, "base_layer", layer), "weight", None)
        if weight is None:
            continue
        if weight.dim() != 2 or weight.dtype not in STORAGE_NAME:
            raise Unsupported(f"layer {index}: {name} is stored as {weight.dtype}, not as plain floats; "
                              "use residual=False")
        matrix = weight.detach() if type(layer).__name__ == "Conv1D" else weight.detach().T
        if matrix.shape[0] != heads * width:
            raise Unsupported(f"layer {index}: {name} takes {matrix.shape[0]} inputs, not {heads} heads "
                              f"of {width}; use residual=False")
        return to_tensor(matrix.reshape(heads, width, -1))
    raise Unsupported(f"layer {index}: {type(module).__name__} has no output projection that is known "
                      "here; use residual=False")


def inner_function(module: torch.nn.Module, inner: str) -> Callable[..., Any]:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if inner != "eager":
        return ALL_ATTENTION_FUNCTIONS[inner]
    home = sys.modules[type(module).__module__]
    function = getattr(home, "eager_attention_forward", None)
    if function is None:
        raise Unsupported(f"{type(module).__name__} has no eager attention beside it ({home.__name__})")
    return function


_active: Session | None = None


def _attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor,
               value: torch.Tensor, attention_mask: torch.Tensor | None = None,
               **keywords: Any) -> Any:
    if _active is None:
        raise InternalError("the attention named attnstress works inside attnstress.capture only")
    return _active.attend(module, query, key, value, attention_mask, keywords)


def _mask(*args: Any, **keywords: Any) -> Any:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    if _active is None:
        raise InternalError("the mask named attnstress works inside attnstress.capture only")
    return ALL_MASK_ATTENTION_FUNCTIONS[_active.inner](*args, **keywords)


def register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, _mask)


def configurations(model: torch.nn.Module) -> list[Any]:
    """Every configuration that the model's modules read their implementation from."""
    found = {id(c): c for m in model.modules() if (c := getattr(m, "config", None)) is not None
             and hasattr(c, "_attn_implementation_internal")}
    return list(found.values())


@contextmanager
def session(model: torch.nn.Module) -> Iterator[Session]:
    """Puts the adapter into the model and takes it out again, whatever happens between."""
    global _active
    if _active is not None:
        raise Unsupported("another capture is running in this process; captures do not nest")
    configs = configurations(model)
    known = {id(c) for c in configs}
    attending: list[Any] = [
        c for m in model.modules() if isinstance(getattr(m, "layer_idx", None), int)
        and (c := getattr(m, "config", None)) is not None and id(c) in known]
    names = {str(c._attn_implementation_internal) for c in attending or configs}
    if len(names) != 1 or not names <= set(INNER):
        raise Unsupported(f"the model's attention implementation is {', '.join(sorted(names))}; "
                          f"kernels outside of {' and '.join(INNER)} bypass what is captured: load the "
                          "model with attn_implementation='sdpa'")
    register()
    saved = [(c, c._attn_implementation_internal) for c in configs]
    training = [m for m in model.modules() if m.training]
    try:
        model.eval()
        current = _active = Session(model, names.pop(), positions.absolute(model))
        for c in configs:
            c._attn_implementation_internal = NAME
        with rope.watching(model) as current.watch:
            yield current
    finally:
        for c, name in saved:
            c._attn_implementation_internal = name
        for m in training:
            m.training = True
        _active = None
