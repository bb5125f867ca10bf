"""Writes capture files (docs/capture-format.md) sample by sample, layer by layer.

Samples are parts of their own in `OUT.parts/` until the last one is there: each grows layer by
layer under a temporary name, is closed, synced and renamed. `finish` joins them without
inflating a chunk, sets `complete` last and renames. What was interrupted goes on at the first
missing sample. Knows numpy and h5py, no model.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .errors import BadInput
from .filters import zstd

FORMAT, FORMAT_VERSION = "attnstress-capture", 1
CHUNK_BYTES = 512 * 1024
TEXT = h5py.string_dtype()
STORAGE = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.float32}

Array = NDArray[Any]


@dataclass(frozen=True)
class Tensor:
    """Stored bits: 16-bit floats as uint16 words, float32 as it is."""

    data: Array
    storage: str

    def __post_init__(self) -> None:
        if self.storage not in STORAGE:
            raise BadInput(f"storage {self.storage!r}: use one of {', '.join(STORAGE)}")
        if self.data.dtype != STORAGE[self.storage]:
            raise BadInput(f"{self.storage} is stored as {STORAGE[self.storage].__name__}, "
                           f"but the array is {self.data.dtype}")


@dataclass(frozen=True)
class LayerInfo:
    """The attention contract of a layer, by the names of the capture format."""

    n_q_heads: int
    n_kv_heads: int
    d_qk: int
    d_v: int
    scale: float
    softcap: float = 0.0
    window: int = 0
    chunk: int = 0
    causal: bool = True
    rope_layout: str = "none"
    rope_dynamic: bool = False
    max_position: int = 1 << 20
    positions: str = "none"
    inv_freq: Array | None = None
    sink: Array | None = None
    w_o: Tensor | None = None

    def attributes(self) -> dict[str, Any]:
        return {"n_q_heads": self.n_q_heads, "n_kv_heads": self.n_kv_heads, "d_qk": self.d_qk,
                "d_v": self.d_v, "scale": self.scale, "softcap": self.softcap,
                "window": self.window, "chunk": self.chunk, "causal": int(self.causal),
                "rope_layout": self.rope_layout, "rope_dynamic": int(self.rope_dynamic),
                "max_position": self.max_position, "positions": self.positions}

    def same_as(self, other: LayerInfo) -> bool:
        pairs = ((self.inv_freq, other.inv_freq), (self.sink, other.sink))
        return self.attributes() == other.attributes() and all(
            (a is None) == (b is None) and (a is None or np.array_equal(a, b))  # type: ignore[arg-type]
            for a, b in pairs)


@dataclass(frozen=True)
class Span:
    """Half-open interval of key indices."""

    name: str
    role: str
    start: int
    stop: int


@dataclass
class SampleInfo:
    id: str
    tokens: Array
    position: Array
    probe_index: Array
    probe_role: Sequence[str]
    spans: Sequence[Span] = ()
    cluster: str | None = None
    token_text: Sequence[str] | None = None
    variant_of: str | None = None
    base_index: Array | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        n = len(self.tokens)
        names = [s.name for s in self.spans]
        for span in self.spans:
            if not 0 <= span.start < span.stop <= n:
                raise BadInput(f"sample {self.id!r}: span {span.name!r} is [{span.start}, "
                               f"{span.stop}), but the sample has {n} keys")
            if names.count(span.name) > 1:
                raise BadInput(f"sample {self.id!r}: two spans are named {span.name!r}")
        if len(self.probe_index) == 0:
            raise BadInput(f"sample {self.id!r}: no probe, so there is nothing to evaluate")
        if len(self.position) != n:
            raise BadInput(f"sample {self.id!r}: {len(self.position)} positions, {n} tokens")
        if self.base_index is not None and len(self.base_index) != n:
            raise BadInput(f"sample {self.id!r}: base_index has {len(self.base_index)} rows, not {n}")


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _replace(temporary: Path, final: Path) -> None:
    _sync(temporary)
    os.replace(temporary, final)
    _sync(final.parent)


def _create(path: Path) -> h5py.File:
    return h5py.File(path, "w", libver=("v108", "v108"), track_order=True)


def put_tensor(group: h5py.Group, name: str, tensor: Tensor) -> None:
    """[H, rows, d] in chunks [1, rows, d] of 256 KiB to 1 MiB, shuffled, zstd 3, and a checksum."""
    heads, rows, width = tensor.data.shape
    chunk = max(1, min(rows, CHUNK_BYTES // max(1, width * tensor.data.itemsize)))
    item = group.create_dataset(name, data=np.ascontiguousarray(tensor.data),
                                chunks=(1, chunk, width), shuffle=True, fletcher32=True,
                                **zstd())
    item.attrs["storage_dtype"] = tensor.storage


def _put_checked(group: h5py.Group, name: str, data: Array) -> h5py.Dataset:
    """Chunks with a checksum; without one a flipped byte of a number passes for another number."""
    return group.create_dataset(name, data=data, chunks=True, shuffle=True, fletcher32=True)


class SampleWriter:
    """One sample's part file; `layer` may be called in any order of layers."""

    def __init__(self, group: h5py.Group, info: SampleInfo):
        self.group, self.info = group, info
        self.layers: set[int] = set()

    def describe(self) -> None:
        info, group = self.info, self.group
        info.check()
        group.attrs.update(id=info.id, cluster=info.cluster or info.id, n_keys=len(info.tokens),
                           **dict(info.attributes))
        if info.variant_of is not None:
            group.attrs["variant_of"] = info.variant_of
        group["tokens"] = np.asarray(info.tokens, "i4")
        group["position"] = np.asarray(info.position, "i8")
        if info.base_index is not None:
            group["base_index"] = np.asarray(info.base_index, "i8")
        if info.token_text is not None:
            group.create_dataset("token_text", data=list(info.token_text), dtype=TEXT)
        spans = group.create_group("spans")
        spans.create_dataset("name", data=[s.name for s in info.spans], dtype=TEXT)
        spans.create_dataset("role", data=[s.role for s in info.spans], dtype=TEXT)
        spans["start"] = np.array([s.start for s in info.spans], "i8")
        spans["stop"] = np.array([s.stop for s in info.spans], "i8")
        probes = group.create_group("probes")
        index = np.asarray(info.probe_index, "i8")
        probes["index"] = index
        probes["position"] = np.asarray(info.position, "i8")[index]
        probes.create_dataset("role", data=list(info.probe_role), dtype=TEXT)

    def layer(self, index: int, q: Tensor, k: Tensor, v: Tensor, out: Array | None = None,
              lse: Array | None = None, keep: Array | None = None,
              bias: Array | None = None) -> None:
        """q [Hq, P, d_qk], k [Hkv, n, d_qk], v [Hkv, n, d_v]; out [Hq, P, d_v], lse [Hq, P]."""
        n, probes = len(self.info.tokens), len(self.info.probe_index)
        if k.data.shape[1] != n or v.data.shape[1] != n or q.data.shape[1] != probes:
            raise BadInput(f"sample {self.info.id!r}, layer {index}: q {q.data.shape}, k "
                           f"{k.data.shape}, v {v.data.shape} do not fit {probes} probes, {n} keys")
        group = self.group.create_group(f"layers/{index}")
        for name, tensor in (("q", q), ("k", k), ("v", v)):
            put_tensor(group, name, tensor)
        if out is not None and lse is not None:
            _put_checked(group, "out", np.asarray(out, "f4")).attrs["storage_dtype"] = "float32"
            _put_checked(group, "lse", np.asarray(lse, "f4"))
        if keep is not None:
            _put_checked(group, "keep", np.asarray(keep, "u1"))
        if bias is not None:
            _put_checked(group, "bias", np.asarray(bias, "f4"))
        self.layers.add(index)
        self.group.file.flush()


class CaptureWriter:
    """`with CaptureWriter(...) as w: with w.sample(0, info) as s: s.layer(...)`; then `finish`."""

    def __init__(self, out: str | os.PathLike[str], header: Mapping[str, Any],
                 fingerprint: Mapping[str, Any], overwrite: bool = False):
        self.out = Path(out)
        self.parts = self.out.with_name(self.out.name + ".parts")
        self.header = {"created": datetime.now(timezone.utc).date().isoformat(), **header}
        if not self.out.parent.is_dir():
            raise BadInput(f"{self.out}: the folder {self.out.parent} does not exist")
        if self.out.exists() and not overwrite:
            raise BadInput(f"{self.out} exists; give another name or overwrite=True")
        self._open_parts(json.loads(json.dumps(dict(fingerprint))))

    def _open_parts(self, fingerprint: dict[str, Any]) -> None:
        stamp = self.parts / "job.json"
        if stamp.exists() and any(self.parts.glob("*.h5")):
            found = json.loads(stamp.read_text())
            differs = sorted(k for k in {*found, *fingerprint} if found.get(k) != fingerprint.get(k))
            if differs:
                raise BadInput(f"{self.parts} holds the parts of another capture (different: "
                               f"{', '.join(differs)}); delete the folder or choose another name")
            for rest in self.parts.glob("*.tmp"):
                rest.unlink()
            return
        if self.parts.exists() and not stamp.exists() and any(self.parts.iterdir()):
            raise BadInput(f"{self.parts} exists and is no folder of parts; choose another name")
        self.parts.mkdir(exist_ok=True)
        temporary = stamp.with_suffix(".tmp")
        temporary.write_text(json.dumps(fingerprint, indent=1))
        _replace(temporary, stamp)

    def _part(self, index: int) -> Path:
        return self.parts / f"{index:06d}.h5"

    def has(self, index: int) -> bool:
        return self._part(index).exists()

    @contextmanager
    def sample(self, index: int, info: SampleInfo,
               layers: Mapping[int, LayerInfo]) -> Iterator[SampleWriter]:
        """`layers` is read when the sample ends: it may be filled meanwhile."""
        temporary = self._part(index).with_suffix(".tmp")
        try:
            with _create(temporary) as f:
                writer = SampleWriter(f.create_group("sample", track_order=True), info)
                writer.describe()
                yield writer
                for number in sorted(writer.layers):
                    _put_layer(f, number, layers[number], with_w_o=index == 0)
            _replace(temporary, self._part(index))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def discard(self) -> None:
        """Removes the parts; nothing of this capture is left."""
        shutil.rmtree(self.parts, ignore_errors=True)

    def finish(self, count: int, readouts: Mapping[str, Array] | None = None) -> Path:
        """Joins `count` parts; every part must be there and agree on every layer."""
        temporary = self.out.with_name(self.out.name + ".tmp")
        try:
            with _create(temporary) as f:
                f.attrs.update(format=FORMAT, format_version=FORMAT_VERSION, **self.header)
                samples = f.create_group("samples", track_order=True)
                known: dict[str, bytes] = {}
                for index in range(count):
                    with h5py.File(self._part(index)) as part:
                        _join_layers(f, part, known)
                        _copy(part["sample"], samples, str(index))
                if readouts:
                    group = f.create_group("readouts")
                    group.create_dataset("names", data=list(readouts), dtype=TEXT)
                    group["direction"] = np.stack([np.asarray(x, "f4") for x in readouts.values()])
                f.attrs["complete"] = 1
            _replace(temporary, self.out)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        shutil.rmtree(self.parts)
        return self.out


def _put_layer(f: h5py.File, index: int, info: LayerInfo, with_w_o: bool) -> None:
    """The projections are in the first part alone; joining takes every layer from there."""
    group = f.create_group(f"layers/{index}")
    group.attrs.update(info.attributes())
    if info.inv_freq is not None:
        group["inv_freq"] = np.asarray(info.inv_freq, "f8")
    if info.sink is not None:
        group["sink"] = np.asarray(info.sink, "f4")
    if info.w_o is not None and with_w_o:
        item = group.create_dataset("w_o", data=info.w_o.data)
        item.attrs["storage_dtype"] = info.w_o.storage


def _contract_bytes(group: h5py.Group) -> bytes:
    attributes = sorted((k, str(v)) for k, v in group.attrs.items())
    arrays = [group[k][()].tobytes() for k in ("inv_freq", "sink") if k in group]
    return repr(attributes).encode() + b"".join(arrays)


def _copy(source: h5py.Group, into: h5py.Group, name: str) -> None:
    """Group by group, dataset by dataset without inflating chunks: HDF5 1.10 crashes when it copies a
    group that tracks its order."""
    group = into.create_group(name, track_order=True)
    for key, value in source.attrs.items():
        group.attrs[key] = value
    for key, item in source.items():
        if isinstance(item, h5py.Group):
            _copy(item, group, key)
        else:
            source.copy(item, group, name=key)


def _join_layers(f: h5py.File, part: h5py.File, known: dict[str, bytes]) -> None:
    layers = f.require_group("layers")
    for name, group in part["layers"].items():
        contract = _contract_bytes(group)
        if name not in known:
            _copy(group, layers, name)
            known[name] = contract
        elif known[name] != contract:
            raise BadInput(f"layer {name}: sample {part['sample'].attrs['id']!r} has another attention "
                           "contract than earlier samples (frequencies that depend on the length?); "
                           "capture samples of like length together")
