"""`attnstress.capture`: attention inputs of a Hugging Face model into a capture file."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from .errors import BadInput, Interrupted, Unsupported
from .prompts import Prompt
from .spans import SpansLike
from .writer import CaptureWriter

if TYPE_CHECKING:  # torch is imported when something is captured
    from .hf.text import Sample

Probes = Union[int, str, Sequence[int]]
Layers = Union[str, int, Iterable[int]]
Readouts = Union[None, str, Mapping[str, tuple[Any, Any]]]

log = logging.getLogger("attnstress")
PRODUCER = "attnstress python"
W_O_LIMIT = 256 << 20  # bytes of output projections that residual="auto" stores
HASHED_WHOLE = 4 << 30  # larger models are hashed in samples


def capture(model: Any, inputs: Any, out: str | os.PathLike[str], layers: Layers = "all",
            probes: Probes = 4, spans: Union[SpansLike, Sequence[SpansLike]] = None,
            readouts: Readouts = None, residual: bool | str = "auto", *, tokenizer: Any = None,
            ids: Sequence[str] | None = None, clusters: Sequence[str] | None = None,
            checkpoint: str = "", weights_hash: str | None = None, overwrite: bool = False,
            progress: bool = True, add_special_tokens: bool | None = None,
            allow_past_max: bool = False) -> Path:
    """Runs the model on every input and writes q, k, v of its attention to `out`.

    model: a transformers model whose attention is `sdpa` or `eager`; it is left as it was.
    inputs: text, `Prompt`s, token ids, or a tokenizer's output (padding at either end is dropped),
        one or many. Text needs `tokenizer`.
    layers: "all" or layer numbers.
    probes: query rows to keep: a count of last rows, "last", "all", the role of a span, or rows.
    spans: marks in the text (`[[gold: ...]]`) when None; {role: regular expression}; or a list of
        (role, start, stop) in characters (in tokens for token ids); or one of these per sample.
    readouts: {name: (answer, foil)} directions of the unembedding, as words or token ids; foil
        None: against the mean; "auto": the prompts' own answers and foils.
    residual: also store the output projection of every head; "auto": when it is small.

    A stopped capture goes on when it is called again with the same arguments. Raises `Unsupported`
    for anything in the model or input that is not understood, and leaves no file then.
    """
    model = _base_model(model)
    samples = _samples(inputs, probes, spans, tokenizer, ids, clusters, add_special_tokens)
    config = _text_config(model)
    limit = int(getattr(config, "max_position_embeddings", 0) or (1 << 20))
    _check_ids(model, samples)
    for sample in samples:
        top = int(sample.info.position.max()) + 1
        if top > limit and not allow_past_max:
            raise BadInput(f"sample {sample.info.id!r} reaches position {top - 1}, but the model was made "
                           f"for {limit} positions (max_position_embeddings); shorten it or use "
                           "allow_past_max=True")
    wanted = _layer_set(layers, config)
    with_w_o = _residual(model, residual)
    directions = _readouts(model, readouts, samples, tokenizer)
    header = {"model_id": str(getattr(config, "_name_or_path", "") or type(model).__name__),
              "checkpoint": checkpoint, "weights_hash": weights_hash or _weights_hash(model),
              "tokenizer_hash": _tokenizer_hash(tokenizer), "producer": PRODUCER}
    writer = CaptureWriter(out, header, _fingerprint(header, samples, wanted, with_w_o), overwrite)
    try:
        _run(model, writer, samples, wanted, with_w_o, limit, progress)
        path = writer.finish(len(samples), directions)
    except BadInput:
        writer.discard()
        raise
    if progress:
        print(f"{path}: {len(samples)} samples; next: attnstress verify {path}", file=sys.stderr)
    return path


def _run(model: Any, writer: CaptureWriter, samples: Sequence[Sample], wanted: set[int] | None,
         with_w_o: bool, limit: int, progress: bool) -> None:
    from .hf.session import session

    done = sum(writer.has(i) for i in range(len(samples)))
    with _bar(len(samples), done, progress) as bar, session(model) as current:
        for i, sample in enumerate(samples):
            if writer.has(i):
                continue
            try:
                _one(model, current, writer, i, sample, wanted, with_w_o, limit)
            except KeyboardInterrupt as stop:
                kept = sum(writer.has(j) for j in range(len(samples)))
                raise Interrupted(f"stopped; {kept} of {len(samples)} samples are kept in {writer.parts}; "
                                  "the same call goes on there") from stop
            bar.update(1)
        for note in current.notes:
            log.warning(note)


def _one(model: Any, current: Any, writer: CaptureWriter, index: int, sample: Sample,
         wanted: set[int] | None, with_w_o: bool, limit: int) -> None:
    import torch

    from .hf.session import LayerCapture, Request

    info, infos = sample.info, {}  # type: ignore[var-annotated]
    device = model.get_input_embeddings().weight.device
    with writer.sample(index, info, infos) as part:

        def sink(layer: LayerCapture) -> None:
            infos[layer.index] = layer.info
            part.layer(layer.index, layer.q, layer.k, layer.v, layer.out, layer.lse, layer.keep,
                       layer.bias)

        request = Request(torch.as_tensor(sample.keys), torch.as_tensor(info.probe_index),
                          torch.as_tensor(np.asarray(info.position, np.int64)), wanted,
                          with_w_o and index == 0, limit)
        arguments = {k: v.to(device) for k, v in sample.arguments.items()}
        target, extra = _callable(model, arguments)
        current.model, previous = target, current.model
        try:
            result = current.forward(request, sink, {**arguments, **extra})
        finally:
            current.model = previous
        _check_layers(model, current.seen, wanted)
        _note_answer(part, sample, result)


def _callable(model: Any, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model and what keeps it from a cache and from the logits of every row."""
    accepted = inspect.signature(model.forward).parameters
    loose = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    if "logits_to_keep" not in accepted and hasattr(model, "base_model") and model.base_model is not model:
        model = model.base_model
        accepted = inspect.signature(model.forward).parameters
    if "position_ids" in arguments and "position_ids" not in accepted and not loose:
        raise Unsupported(f"{type(model).__name__} takes no position_ids; give it input without padding")
    extra: dict[str, Any] = {"use_cache": False} if "use_cache" in accepted or loose else {}
    if "logits_to_keep" in accepted:
        extra["logits_to_keep"] = 1
    return model, extra


def _check_layers(model: Any, seen: set[int], wanted: set[int] | None) -> None:
    config = _text_config(model)
    count = int(getattr(config, "num_hidden_layers", 0) or 0)
    kinds = list(getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or [])
    attends = {i for i in range(count) if i >= len(kinds) or "attention" in str(kinds[i])
               and "linear" not in str(kinds[i])}
    missing = sorted((attends if wanted is None else wanted) - seen)
    if not seen and not missing:
        raise Unsupported(f"no layer of {type(model).__name__} attends through the attention interface of "
                          "transformers, so there is nothing to capture")
    if missing:
        raise Unsupported(f"layers {', '.join(map(str, missing))} of {type(model).__name__} do not attend "
                          "through the attention interface of transformers; what they compute cannot "
                          "be seen, so nothing was captured")


def _note_answer(part: Any, sample: Sample, result: Any) -> None:
    logits = getattr(result, "logits", None)
    if logits is None or sample.keys[-1] + 1 != sample.arguments["input_ids"].shape[1]:
        return  # no head, or padding follows the last token
    last = logits[0, -1].float()
    top = int(last.argmax())
    attrs = part.group.attrs
    attrs["model_top_token_id"] = top
    if sample.answer_token is not None:
        attrs["p_answer"] = float(last.softmax(-1)[sample.answer_token])
        attrs["answered_right"] = int(top == sample.answer_token)


def _base_model(model: Any) -> Any:
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as missing:
        raise BadInput(f"capture needs {missing.name}: pip install 'attnstress[capture]'") from missing
    if hasattr(model, "_orig_mod"):
        raise Unsupported("a compiled model (torch.compile) has its attention traced away; give the model "
                          "itself (model._orig_mod)")
    if hasattr(model, "get_base_model"):
        model = model.get_base_model()
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise BadInput(f"{type(model).__name__} is no transformers model; for your own model write the file "
                       "with attnstress.CaptureWriter")
    if getattr(model.config, "is_encoder_decoder", False):
        raise Unsupported(f"{type(model).__name__} is an encoder-decoder model; its cross attention cannot be "
                          "captured")
    if int(getattr(model, "_tp_size", None) or 1) > 1 or any(
            type(p).__name__ == "DTensor" or type(p.data).__name__ == "DTensor"
            for p in model.parameters()):
        raise Unsupported("the model is split into tensor-parallel shards, each sees only its heads; load it "
                          "on one device or with device_map='auto'")
    return model


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _samples(inputs: Any, probes: Probes, spans: Any, tokenizer: Any, ids: Sequence[str] | None,
             clusters: Sequence[str] | None, add_special_tokens: bool | None) -> list[Sample]:
    from .hf.text import build, rows_of

    rows = rows_of(inputs)
    for name, values in (("ids", ids), ("clusters", clusters)):
        if values is not None and len(values) != len(rows):
            raise BadInput(f"{len(values)} {name} for {len(rows)} inputs")
    each = _spans_each(spans, len(rows))
    samples: list[Sample] = []
    by_id: dict[str, Sample] = {}
    for i, row in enumerate(rows):
        parent = by_id.get(row.variant_of or "") if isinstance(row, Prompt) else None
        sample = build(row, i, ids[i] if ids else None, clusters[i] if clusters else None, each[i],
                       probes, tokenizer, add_special_tokens, parent)
        if sample.info.id in by_id:
            raise BadInput(f"two samples have the id {sample.info.id!r}; give ids=")
        by_id[sample.info.id] = sample
        samples.append(sample)
    return samples


def _spans_each(spans: Any, count: int) -> list[Any]:
    """Spans per sample: one description for all, or a list with one per sample."""
    if spans is None or isinstance(spans, Mapping):
        return [spans] * count
    items = list(spans)
    flat = all(not isinstance(x, (list, type(None))) and not (
        isinstance(x, Mapping) and "start" not in x) for x in items)
    if flat and items and count > 1:
        raise BadInput(f"one list of offsets for {count} inputs; give a list of spans for each input")
    if flat:
        return [items] * count
    if len(items) != count:
        raise BadInput(f"spans for {len(items)} samples, but there are {count} inputs")
    return items


def _check_ids(model: Any, samples: Sequence[Sample]) -> None:
    size = model.get_input_embeddings().weight.shape[0]
    for sample in samples:
        low, high = int(sample.info.tokens.min()), int(sample.info.tokens.max())
        if low < 0 or high >= size:
            raise BadInput(f"sample {sample.info.id!r} has token id {low if low < 0 else high}, but the model "
                           f"knows {size} tokens; is this the model's own tokenizer?")


def _layer_set(layers: Layers, config: Any) -> set[int] | None:
    if isinstance(layers, str):
        if layers != "all":
            raise BadInput(f"layers={layers!r}: use \"all\" or layer numbers")
        return None
    count = int(getattr(config, "num_hidden_layers", 0) or 0)
    wanted = {layers} if isinstance(layers, int) else {int(x) for x in layers}
    wanted = {x + count if x < 0 else x for x in wanted}
    wrong = sorted(x for x in wanted if not 0 <= x < count)
    if wrong or not wanted:
        raise BadInput(f"layers {wrong or 'given are none'}: the model has layers 0 to {count - 1}")
    return wanted


def _residual(model: Any, residual: bool | str) -> bool:
    if residual != "auto":
        if not isinstance(residual, bool):
            raise BadInput(f"residual={residual!r}: use True, False or \"auto\"")
        return residual
    import torch

    total = 0
    for module in model.modules():
        if not isinstance(getattr(module, "layer_idx", None), int):
            continue
        for name in ("o_proj", "out_proj", "dense", "c_proj", "wo"):
            weight = getattr(getattr(module, name, None), "weight", None)
            if weight is not None:
                plain = weight.dtype in (torch.float16, torch.bfloat16, torch.float32)
                total += weight.numel() * weight.element_size() if plain else W_O_LIMIT + 1
    return 0 < total <= W_O_LIMIT


def _readouts(model: Any, readouts: Readouts, samples: Sequence[Sample],
              tokenizer: Any) -> dict[str, np.ndarray] | None:
    """Rows of the unembedding: answer minus foil. A final norm is left out."""
    if readouts is None:
        return None
    pairs: dict[str, tuple[Any, Any]] = {}
    if readouts == "auto":
        for s in samples:
            if s.answer_token is not None and s.info.variant_of is None:
                pairs[f"{s.info.id}: {s.answer} minus {s.foil or 'mean'}"] = (s.answer_token, s.foil_token)
        if not pairs:
            raise BadInput("readouts=\"auto\" needs prompts with an answer")
    elif isinstance(readouts, Mapping):
        pairs = dict(readouts)
    else:
        raise BadInput(f"readouts={readouts!r}: use {{name: (answer, foil)}} or \"auto\"")
    head = model.get_output_embeddings()
    if head is None:
        raise BadInput(f"{type(model).__name__} has no output embedding, so there are no readouts")
    weight = head.weight.detach()
    if not weight.is_floating_point() or weight.dim() != 2:
        raise Unsupported(f"the output embedding is stored as {weight.dtype}, not as plain floats; use "
                          "readouts=None or load the model without quantisation")

    def row(token: Any) -> Any:
        if isinstance(token, str):
            if tokenizer is None:
                raise BadInput("readouts in words need tokenizer=")
            token = tokenizer(" " + token.strip(), add_special_tokens=False)["input_ids"][0]
        if not 0 <= int(token) < weight.shape[0]:
            raise BadInput(f"readout token {token} is not among {weight.shape[0]} tokens")
        return weight[int(token)].float()

    mean = weight.float().mean(0) if any(f is None for _, f in pairs.values()) else None
    return {name: (row(a) - (mean if f is None else row(f))).cpu().numpy()
            for name, (a, f) in pairs.items()}


def _weights_hash(model: Any) -> str:
    """Over names, shapes and bytes of every tensor; of large models over 64 KiB in each MiB."""
    digest = hashlib.blake2b(digest_size=16)
    state = model.state_dict()
    total = sum(x.numel() * x.element_size() for x in state.values() if hasattr(x, "numel"))
    import torch

    for name in sorted(state):
        x = state[name]
        if not isinstance(x, torch.Tensor) or x.is_meta:
            continue
        digest.update(f"{name} {tuple(x.shape)} {x.dtype}".encode())
        flat = x.detach().contiguous().reshape(-1)
        flat = flat.view(torch.uint8) if flat.numel() else flat
        if total > HASHED_WHOLE:
            rows = flat[: flat.numel() // (1 << 20) * (1 << 20)].reshape(-1, 1 << 20)[:, : 1 << 16]
            flat = torch.cat([rows.reshape(-1), flat[-(1 << 16):]])
        digest.update(flat.cpu().numpy().data)
    return ("sampled:" if total > HASHED_WHOLE else "") + digest.hexdigest()


_hashes: dict[int, tuple[Any, str]] = {}


def _tokenizer_hash(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return ""
    if id(tokenizer) not in _hashes:  # a large vocabulary takes a second
        _hashes.clear()
        _hashes[id(tokenizer)] = tokenizer, hashlib.blake2b(backend.to_str().encode(),
                                                            digest_size=16).hexdigest()
    return _hashes[id(tokenizer)][1]


def _fingerprint(header: Mapping[str, str], samples: Sequence[Sample], wanted: set[int] | None,
                 with_w_o: bool) -> dict[str, Any]:
    digest = hashlib.blake2b(digest_size=16)
    for s in samples:
        digest.update(repr((s.info.id, s.info.cluster, s.info.tokens.tolist(), s.info.position.tolist(),
                            list(s.info.spans), s.info.probe_index.tolist(), s.info.variant_of)).encode())
    return {"model": header["model_id"], "weights": header["weights_hash"],
            "checkpoint": header["checkpoint"], "inputs, spans and probes": digest.hexdigest(),
            "layers": "all" if wanted is None else sorted(wanted), "residual": with_w_o}


class _NoBar:
    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, _: int) -> None:
        return None


def _bar(total: int, done: int, progress: bool) -> Any:
    if not progress:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(total=total, initial=done, unit="sample", desc="capture", file=sys.stderr)
