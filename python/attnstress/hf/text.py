"""Inputs of `capture` as samples: token ids, positions, spans, probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
import torch

from ..errors import BadInput, Unsupported
from ..prompts import Prompt
from ..spans import find, to_tokens, unmark
from ..writer import SampleInfo, Span

Probes = Union[int, str, Sequence[int]]
REFUSED_INPUTS = {
    "past_key_values": "a cache", "cache": "a cache", "pixel_values": "images",
    "input_features": "audio", "encoder_hidden_states": "cross attention",
    "inputs_embeds": "embeddings without tokens", "decoder_input_ids": "an encoder-decoder model",
}


@dataclass
class Sample:
    """One row of input as the model gets it, and what is said about its real rows."""

    info: SampleInfo
    arguments: dict[str, torch.Tensor]
    keys: np.ndarray  # rows of the padded input that are real
    answer: str | None = None
    foil: str | None = None
    answer_token: int | None = None
    foil_token: int | None = None
    offsets: list[tuple[int, int]] = field(default_factory=list)  # characters of each token


def rows_of(inputs: Any) -> list[Any]:
    """One item per sample: str, Prompt, token ids, or {input_ids, attention_mask, position_ids}."""
    if isinstance(inputs, (str, Prompt)):
        return [inputs]
    if isinstance(inputs, Mapping) or hasattr(inputs, "input_ids"):
        return _batch_rows(dict(inputs))
    if isinstance(inputs, torch.Tensor):
        return _batch_rows({"input_ids": inputs})
    items = list(inputs)
    if items and all(isinstance(x, (int, np.integer)) for x in items):
        return _batch_rows({"input_ids": torch.tensor([items])})
    rows: list[Any] = []
    for item in items:
        rows += [item] if isinstance(item, (str, Prompt)) else rows_of(item)
    if not rows:
        raise BadInput("no input: give a text, a Prompt, token ids or a tokenizer's output, or a list")
    return rows


def _batch_rows(batch: dict[str, Any]) -> list[dict[str, torch.Tensor]]:
    for name, what in REFUSED_INPUTS.items():
        if batch.get(name) is not None:
            raise Unsupported(f"the input holds {name} ({what}), which a capture cannot hold")
    if batch.get("input_ids") is None:
        raise BadInput(f"the input has no input_ids, only {', '.join(batch) or 'nothing'}")
    tensors = {}
    for name in ("input_ids", "attention_mask", "position_ids"):
        if batch.get(name) is not None:
            x = torch.as_tensor(batch[name])
            tensors[name] = x[None] if x.dim() == 1 else x
    ids = tensors["input_ids"]
    if ids.dim() != 2 or ids.is_floating_point() or ids.numel() == 0:
        raise BadInput(f"input_ids of shape {tuple(ids.shape)} and type {ids.dtype}: use whole numbers "
                       "[batch, tokens], at least one")
    for name, x in tensors.items():
        if x.shape != ids.shape:
            raise Unsupported(f"{name} has shape {tuple(x.shape)}, input_ids {tuple(ids.shape)}; masks "
                              "and positions of another shape are not understood")
    return [{k: x[i] for k, x in tensors.items()} for i in range(ids.shape[0])]


def tokenise(tokenizer: Any, text: str, add_special_tokens: bool | None,
             sample: str) -> tuple[list[int], list[tuple[int, int]]]:
    if tokenizer is None:
        raise BadInput("text needs tokenizer=; without one give token ids")
    if not getattr(tokenizer, "is_fast", False):
        raise Unsupported(f"{type(tokenizer).__name__} gives no character offsets (not a fast "
                          "tokenizer); give token ids, and spans as token offsets")
    if add_special_tokens is None:  # a chat template has put it there already
        bos = getattr(tokenizer, "bos_token", None)
        add_special_tokens = not (bos and text.startswith(bos))
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=add_special_tokens,
                        truncation=False, verbose=False)
    ids = list(encoded["input_ids"])
    # a tokenizer that ends texts with EOS would end the prompt
    end = getattr(tokenizer, "eos_token_id", None)
    offsets = [(int(a), int(b)) for a, b in encoded["offset_mapping"]]
    if add_special_tokens and len(ids) > 1 and ids[-1] == end and offsets[-1][0] == offsets[-1][1]:
        ids, offsets = ids[:-1], offsets[:-1]
    if not ids:
        raise BadInput(f"sample {sample!r}: the text has no token")
    return ids, offsets


def continuation(tokenizer: Any, text: str, ids: Sequence[int], words: str,
                 add_special_tokens: bool | None, sample: str) -> int:
    """First token of `words` when they follow the text."""
    joined = text + ("" if text[-1:].isspace() or words[:1].isspace() else " ") + words
    longer, _ = tokenise(tokenizer, joined, add_special_tokens, sample)
    if longer[: len(ids)] == list(ids) and len(longer) > len(ids):
        return longer[len(ids)]
    return tokenizer(" " + words.strip(), add_special_tokens=False)["input_ids"][0]


def build(row: Any, index: int, name: str | None, cluster: str | None, spans: Any, probes: Probes,
          tokenizer: Any, add_special_tokens: bool | None, base: Sample | None) -> Sample:
    if isinstance(row, (str, Prompt)):
        return _from_text(row, index, name, cluster, spans, probes, tokenizer, add_special_tokens,
                          base)
    ids = row["input_ids"]
    mask = row.get("attention_mask")
    keys = np.arange(len(ids)) if mask is None else np.flatnonzero(np.asarray(mask.cpu()) != 0)
    sample = name or f"s{index:02d}"
    if len(keys) == 0:
        raise BadInput(f"sample {sample!r}: its attention mask leaves no token")
    if keys[-1] - keys[0] + 1 != len(keys):
        raise Unsupported(f"sample {sample!r}: its attention mask has holes; only padding at either end "
                          "is understood")
    arguments = {"input_ids": ids[None]}
    if mask is not None:
        arguments["attention_mask"] = mask[None]
    if row.get("position_ids") is not None:
        arguments["position_ids"] = row["position_ids"][None]
    elif len(keys) < len(ids):  # as generation does: real tokens count from 0
        arguments["position_ids"] = (mask.long().cumsum(-1) - 1).clamp_min(0)[None]
    tokens = ids.cpu().numpy()[keys]
    position = (arguments["position_ids"][0].cpu().numpy()[keys] if "position_ids" in arguments
                else keys.copy())
    if isinstance(spans, Mapping):
        raise BadInput(f"sample {sample!r}: regular expressions need text; give spans of token ids as "
                       "(role, start, stop) in tokens")
    token_spans = [Span(s.name, s.role, s.start, s.stop)
                   for s in find(" " * len(tokens), spans, sample)]
    return _finish(sample, cluster, tokens, position, token_spans, probes, tokenizer, arguments, keys)


def _from_text(row: str | Prompt, index: int, name: str | None, cluster: str | None, spans: Any,
               probes: Probes, tokenizer: Any, add_special_tokens: bool | None,
               base: Sample | None) -> Sample:
    prompt = row if isinstance(row, Prompt) else None
    sample = name or (prompt.id if prompt and prompt.id else f"s{index:02d}")
    if prompt is not None:
        text, found = prompt.text, list(prompt.spans)
        if spans is not None:
            found += find(text, spans, sample)
    elif spans is None:
        text, found = unmark(str(row))
    else:
        text, found = str(row), find(str(row), spans, sample)
    ids, offsets = tokenise(tokenizer, text, add_special_tokens, sample)
    token_spans = to_tokens(found, offsets, sample)
    bos = getattr(tokenizer, "bos_token_id", None)
    if bos is not None and ids[0] == bos and all(s.start > 0 and s.name != "bos" for s in token_spans):
        token_spans.insert(0, Span("bos", "sink", 0, 1))
    tokens = np.array(ids)
    result = _finish(sample, cluster or (prompt.cluster if prompt else None), tokens,
                     np.arange(len(ids)), token_spans, probes, tokenizer,
                     {"input_ids": torch.tensor([ids])}, np.arange(len(ids)))
    result.offsets = offsets
    if prompt is None:
        return result
    for key in ("answer", "foil"):
        words = getattr(prompt, key)
        if words:
            token = continuation(tokenizer, text, ids, words, add_special_tokens, sample)
            setattr(result, key, words)
            setattr(result, f"{key}_token", token)
            result.info.attributes[key] = words  # type: ignore[index]
    if prompt.variant_of is not None:
        if base is None:
            raise BadInput(f"sample {sample!r} is a variant of {prompt.variant_of!r}, which must be "
                           "captured before it in the same file")
        result.info.variant_of = prompt.variant_of
        result.info.base_index = base_index(prompt, offsets, base, tokens)
    result.info.attributes.update(prompt.attributes)  # type: ignore[attr-defined]
    return result


def base_index(prompt: Prompt, offsets: Sequence[tuple[int, int]], base: Sample,
               tokens: np.ndarray) -> np.ndarray:
    """Base row of every row of the variant, -1 for inserted ones: a row is old when it covers
    exactly the characters of a base token, shifted by the text inserted before it."""
    where = {tuple(x): i for i, x in enumerate(base.offsets)}
    result = np.full(len(tokens), -1, dtype=np.int64)
    for i, (a, b) in enumerate(offsets):
        if any(a < stop and b > start for start, stop in prompt.inserted):
            continue
        shift = sum(stop - start for start, stop in prompt.inserted if stop <= a)
        j = i if a == b and i == 0 else where.get((a - shift, b - shift), -1)
        if j >= 0 and base.info.tokens[j] == tokens[i]:
            result[i] = j
    return result


def _finish(sample: str, cluster: str | None, tokens: np.ndarray, position: np.ndarray,
            spans: list[Span], probes: Probes, tokenizer: Any, arguments: dict[str, torch.Tensor],
            keys: np.ndarray) -> Sample:
    index, roles = choose_probes(probes, len(tokens), spans, sample)
    text = None
    if tokenizer is not None:
        text = [tokenizer.decode([int(t)], clean_up_tokenization_spaces=False) for t in tokens]
    info = SampleInfo(id=sample, tokens=tokens, position=position, probe_index=index,
                      probe_role=roles, spans=spans, cluster=cluster, token_text=text, attributes={})
    info.check()
    return Sample(info, arguments, keys)


def choose_probes(probes: Probes, n: int, spans: Sequence[Span],
                  sample: str) -> tuple[np.ndarray, list[str]]:
    """The last N rows, "last", "all", a span's role or name, or indices. The last row's role is
    `answer` (it predicts the answer), rows in a span of role `question` are `question`."""
    if isinstance(probes, bool) or (isinstance(probes, int) and probes < 1):
        raise BadInput(f"probes={probes!r}: give a count of at least 1")
    if isinstance(probes, int):
        index = np.arange(max(0, n - probes), n)
    elif probes == "last":
        index = np.array([n - 1])
    elif probes == "all":
        index = np.arange(n)
    elif isinstance(probes, str):
        inside = [np.arange(s.start, s.stop) for s in spans if probes in (s.role, s.name)]
        if not inside:
            raise BadInput(f"sample {sample!r}: no span has role or name {probes!r}, so it has no probe")
        index = np.unique(np.concatenate([*inside, [n - 1]]))
    else:
        index = np.array([int(p) + n if int(p) < 0 else int(p) for p in probes], dtype=np.int64)
        if len(index) == 0 or index.min() < 0 or index.max() >= n:
            raise BadInput(f"sample {sample!r}: probes {list(probes)} are not all rows of {n} tokens")
        index = np.unique(index)
    question = np.zeros(n, bool)
    for s in spans:
        if s.role == "question":
            question[s.start : s.stop] = True
    plain = "question" if not question.any() and not isinstance(probes, Sequence) else "probe"
    roles = ["answer" if i == n - 1 else "question" if question[i] else plain for i in index]
    return index, roles
