"""One layer of a bundled capture as safetensors, npy and npz, written by hand; each is imported,
and tensors and results must be those of the capture, bit for bit.

usage: import_capture.py ATTNSTRESS PLUGIN_FOLDER CAPTURE SUITE
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

program, plugin, source, suite = map(os.path.abspath, sys.argv[1:5])
os.environ["HDF5_PLUGIN_PATH"] = plugin
import h5py
import numpy as np

TYPES = {"uint16": "BF16", "float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64"}
SMALL = ("tokens", "position")


def texts(dataset):
    return [x.decode() if isinstance(x, bytes) else x for x in dataset[...]]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "np"}}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": TYPES[x.dtype.name], "shape": list(x.shape),
                        "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (1 - len(text) % 8)  # data at an odd address on purpose
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            f.write(np.ascontiguousarray(x).tobytes())


def header(g, layers, layout, extra):
    """The YAML document that says what the tensors cannot."""
    a = g[f"layers/{layers[0]}"].attrs
    freq = g[f"layers/{layers[0]}/inv_freq"][...]
    theta = (1 / freq[1]) ** (len(freq))
    assert np.allclose(freq, theta ** (-np.arange(len(freq)) / len(freq)), rtol=1e-12)
    out = [f"version: 1\nmodel_id: {quoted(g.attrs['model_id'])}",
           f"checkpoint: {quoted(g.attrs['checkpoint'])}",
           f"weights_hash: {g.attrs['weights_hash']}\ntokenizer_hash: {g.attrs['tokenizer_hash']}",
           f"layout: {layout}", extra, "layers:",
           f"  - layer: {list(layers)}", f"    scale: {float(a['scale'])!r}", "    causal: true",
           f"    max_position: {a['max_position']}",
           "    rope: {layout: half, rotated: true, type: stored}",
           "readouts: [" + ", ".join(map(quoted, texts(g["readouts/names"]))) + "]", "samples:"]
    for s in g["samples"].values():
        out.append(f"  - id: {quoted(s.attrs['id'])}\n    cluster: {quoted(s.attrs['cluster'])}")
        out.append("    token_text: [" + ", ".join(map(quoted, texts(s["token_text"]))) + "]")
        for group, keys in (("spans", ("start", "stop")), ("probes", ("index", "position"))):
            out.append(f"    {group}:")
            p = s[group]
            names = [quoted(n) for n in texts(p["name"])] if group == "spans" else None
            for i, role in enumerate(texts(p["role"])):
                entry = [f"{k}: {p[k][i]}" for k in keys] + [f"role: {quoted(role)}"]
                if names:
                    entry.append(f"name: {names[i]}")
                out.append("      - {" + ", ".join(entry) + "}")
    out.append('names: {q: "{sample}.{layer}.q", k: "{sample}.{layer}.k", v: "{sample}.{layer}.v",'
               ' out: "{sample}.{layer}.out", lse: "{sample}.{layer}.lse",'
               ' w_o: "{layer}.w_o", inv_freq: "{layer}.inv_freq",'
               ' tokens: "{sample}.tokens", position: "{sample}.position"}')
    return "\n".join(out) + "\n"


def collect(g, layers, axes):
    tensors = {}
    for s in g["samples"].values():
        sid = s.attrs["id"]
        for name in SMALL:
            tensors[f"{sid}.{name}"] = s[name][...]
        for l in layers:
            for name in ("q", "k", "v", "out", "lse"):
                x = s[f"layers/{l}/{name}"][...]
                tensors[f"{sid}.{l}.{name}"] = axes(x)
    for l in layers:
        tensors[f"{l}.w_o"] = g[f"layers/{l}/w_o"][...]
        tensors[f"{l}.inv_freq"] = g[f"layers/{l}/inv_freq"][...]
    tensors["readouts"] = g["readouts/direction"][...]
    return tensors


def call(*words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def same(a, b, where, layers):
    """Every tensor, number and text of the layers is equal, bits included."""
    for s in a["samples"]:
        x, y = a["samples"][s], b["samples"][s]
        assert {k: x.attrs[k] for k in ("id", "cluster", "n_keys")} == \
            {k: y.attrs[k] for k in ("id", "cluster", "n_keys")}, where
        names = []
        x.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
        for n in names:
            if n.startswith("layers/") and int(n.split("/")[1]) not in layers:
                continue
            p, q = x[n], y[n]
            if p.dtype.kind == "O":
                assert texts(p) == texts(q), (where, n)
            else:
                assert p.dtype == q.dtype and p.shape == q.shape, (where, n)
                assert p[...].tobytes() == q[...].tobytes(), (where, n)
                assert p.attrs.get("storage_dtype") in (None, q.attrs.get("storage_dtype")), n
    for n in ("names", "direction"):
        x, y = a[f"readouts/{n}"], b[f"readouts/{n}"]
        assert texts(x) == texts(y) if n == "names" else x[...].tobytes() == y[...].tobytes(), where
    for l in layers:
        p, q = a[f"layers/{l}"], b[f"layers/{l}"]
        assert dict(p.attrs) == dict(q.attrs), (where, dict(p.attrs), dict(q.attrs))
        for n in p:
            assert p[n][...].tobytes() == q[n][...].tobytes(), (where, n)


def result_bytes(path):
    with h5py.File(path) as f:
        found = {}
        f.visititems(lambda n, o: found.__setitem__(n, o[...]) if isinstance(o, h5py.Dataset)
                     and o.dtype.kind in "fiu" else None)
    return {n: (x.shape, x.tobytes()) for n, x in found.items()}


def main():
    layers = (0,)
    with tempfile.TemporaryDirectory() as folder, h5py.File(source) as g:
        os.chdir(folder)
        heads_first = "[head, token, dim]"
        tokens_first = "[batch, token, head, dim]"
        plain = collect(g, layers, lambda x: x)
        turned = collect(g, layers, lambda x: np.swapaxes(x, 0, 1)[None])
        safetensors("a.safetensors", plain)
        open("a.yaml", "w").write(header(g, layers, heads_first, ""))
        call("import", "a.yaml", "a.safetensors", "-o", "a.h5")

        os.mkdir("npy")
        for i, (name, x) in enumerate(turned.items()):
            x = np.asfortranarray(x) if i % 2 else np.ascontiguousarray(x)
            if i % 3 == 0:
                x = x.astype(x.dtype.newbyteorder(">"))
            np.save(f"npy/{name}.npy", x)
        open("b.yaml", "w").write(header(g, layers, tokens_first, "words: bfloat16"))
        call("import", "b.yaml", *sorted(f"npy/{n}" for n in os.listdir("npy")), "-o", "b.h5")

        bf16 = {n: x.view("V2") if x.dtype == np.uint16 else x for n, x in plain.items()}
        np.savez_compressed("c.npz", **bf16)
        np.savez("d.npz", **{n: np.asfortranarray(x) for n, x in bf16.items()},
                 meta=np.array([{"a": 1}], dtype=object))
        open("c.yaml", "w").write(header(g, layers, heads_first, "words: bfloat16"))
        call("import", "c.yaml", "c.npz", "-o", "c.h5")
        call("import", "c.yaml", "d.npz", "-o", "d.h5")

        call("run", suite, "--capture", source, "-o", "want.h5")
        want = result_bytes("want.h5")
        assert any(x[0] for x in want.values()) and "log_mass_shift" in want
        scale = g[f"layers/{layers[0]}"].attrs["scale"]
        assert want["softmax_scale"] == ((1,), np.float64(scale).tobytes())
        for name in "abcd":
            with h5py.File(f"{name}.h5") as f:
                same(g, f, name, layers)
            call("verify", f"{name}.h5")
            call("run", suite, "--capture", f"{name}.h5", "-o", f"run-{name}.h5")
            got = result_bytes(f"run-{name}.h5")
            other = [n for n in want.keys() | got.keys() if want.get(n) != got.get(n)]
            assert not other, (name, other)
    print(f"four imports: tensors and {len(want)} result variables bit for bit")


main()
