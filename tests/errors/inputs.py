"""Small tensors with a header, as each import format; a pair of samples; a file of HDF5's old format."""
import json
import struct

import h5py
import numpy as np

HEADER = """version: 1
model_id: small
layout: [head, token, dim]
layers:
  - {layer: 0, scale: 0.5, causal: true, positions: absolute}
samples:
  - id: s0
    spans: [{name: gold, start: 2, stop: 4}]
    probes: [{index: 15, role: answer}]
"""


def safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            f.write(x.tobytes())


def rewrite(old, new):
    """By values: H5Ocopy of HDF5 1.10 dies of strings of variable length."""
    for key, value in old.attrs.items():
        new.attrs[key] = value
    for name, item in old.items():
        if isinstance(item, h5py.Group):
            rewrite(item, new.create_group(name))
        else:
            text = h5py.check_string_dtype(item.dtype)
            made = new.create_dataset(name, data=item[()], dtype=h5py.string_dtype() if text else item.dtype)
            for key, value in item.attrs.items():
                made.attrs[key] = value


def pairs(source, path):
    """A sample's copy claims to be that sample with one row in another's place."""
    with h5py.File(source) as old, h5py.File(path, "w", libver=("v108", "v108")) as new:
        rewrite(old, new)
        first = sorted(new["samples"])[0]
        copy = new.create_group(f"samples/{len(new['samples'])}")
        rewrite(old[f"samples/{first}"], copy)
        n = int(copy.attrs["n_keys"])
        copy.attrs["id"] = "copy"
        copy.attrs["variant_of"] = new[f"samples/{first}"].attrs["id"]
        copy["base_index"] = np.concatenate([[0, 1, -1], np.arange(3, n)])


def old_format(source, path):
    with h5py.File(source) as old, h5py.File(path, "w", libver=("earliest", "v108")) as new:
        rewrite(old, new)


def write(folder):
    rng = np.random.default_rng(1)
    tensors = {f"layers.0.{n}": rng.standard_normal((2, 1 if n == "q" else 16, 4)).astype(np.float32)
               for n in "qkv"}
    (folder / "header.yaml").write_text(HEADER)
    safetensors(folder / "tensors.safetensors", tensors)
    np.savez_compressed(folder / "tensors.npz", **tensors)
    (folder / "npy").mkdir()
    for name, x in tensors.items():
        np.save(folder / "npy" / f"{name}.npy", x)
    pairs(folder / "cap.h5", folder / "pairs.h5")
    old_format(folder / "cap.h5", folder / "old.h5")
