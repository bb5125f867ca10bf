#!/usr/bin/env python3
"""Writes tests/capture/fixtures/h5py.h5: a small capture as h5py's defaults make it.

usage: make_h5py.py OUTPUT.h5        (HDF5_PLUGIN_PATH: the folder of libh5zstd.so)

Old object headers and groups (no checksum), variable-length text attributes, and every storage
with a checksum that h5py users have: zstd of this project's filter, gzip and plain chunks with
fletcher32. position, tokens and spans are contiguous, as h5py stores them by default.
"""
import sys

import h5py
import numpy as np

ZSTD = dict(compression=32015, compression_opts=(3,), shuffle=True)
GZIP = dict(compression="gzip", shuffle=True, fletcher32=True)
PLAIN = dict(fletcher32=True)
N, P, HQ, HKV, D = 24, 2, 4, 2, 8


def main(path):
    rng = np.random.default_rng(7)
    text = h5py.string_dtype()
    with h5py.File(path, "w") as f:
        f.attrs.update(format="attnstress-capture", format_version=1, model_id="h5py",
                       checkpoint="defaults", weights_hash="w", tokenizer_hash="t",
                       created="2026-01-01", producer="make_h5py.py")
        layer = f.create_group("layers/0")
        layer.attrs.update(n_q_heads=HQ, n_kv_heads=HKV, d_qk=D, d_v=D, scale=0.25, softcap=0.0,
                           window=0, chunk=0, causal=1, rope_layout="none", rope_dynamic=0,
                           max_position=0, positions="none")
        sample = f.create_group("samples/0")
        sample.attrs.update(id="doc/1 é", cluster="doc", n_keys=N)
        sample["tokens"] = np.arange(N, dtype="i4")
        sample["position"] = np.arange(N, dtype="i8")
        sample.create_dataset("token_text", data=[f"word{i} " for i in range(N)], dtype=text)
        spans = sample.create_group("spans")
        spans.create_dataset("name", data=["gold", "other"], dtype=text)
        spans.create_dataset("role", data=["gold", "filler"], dtype=text)
        spans["start"], spans["stop"] = np.array([2, 9]), np.array([5, 12])
        probes = sample.create_group("probes")
        probes["index"], probes["position"] = np.array([N - 2, N - 1]), np.array([N - 2, N - 1])
        probes.create_dataset("role", data=["question", "question"], dtype=text)
        group = sample.create_group("layers/0")
        for name, shape, how in (("q", (HQ, P, D), GZIP), ("k", (HKV, N, D), ZSTD),
                                 ("v", (HKV, N, D), PLAIN)):
            words = rng.standard_normal(shape).astype(np.float16).view(np.uint16)
            item = group.create_dataset(name, data=words, chunks=(1, *shape[1:]), **how)
            item.attrs["storage_dtype"] = "float16"
        group.create_dataset("keep", data=np.ones((P, N), "u1"), chunks=(1, N), **GZIP)
        f.attrs["complete"] = 1


if __name__ == "__main__":
    main(sys.argv[1])
