"""fidelity on pairs made here, against attention in float64.

A pair is a sample of a bundled capture and the same with rows inserted in two places and one base
row removed; in layer 0 nothing else changes, in layers 1 and 2 every key, value and query is
disturbed, as a model's upstream would. Usage: test_fidelity.py PROGRAM CAPTURE
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

PROGRAM, CAPTURE = sys.argv[1:3]
INSERTED = {200: 7, 640: 12}  # rows put before this base row
REMOVED = 300
NOISE = {0: 0.0, 1: 0.05, 2: 0.4}


def to_words(x):
    """float32 -> bfloat16 words, to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widen(words):
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rotate(x, delta, inv_freq):
    """Rows moved by delta positions (pairs i, i + half)."""
    angle = np.asarray(delta, np.float64)[..., None] * inv_freq
    half = inv_freq.size
    a, b = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)


def base_index(n):
    rows = []
    for i in range(n):
        rows += [-1] * INSERTED.get(i, 0)
        if i != REMOVED:
            rows.append(i)
    return np.array(rows)


def add_pair(file, name, source, rng):
    """Writes samples/<name>: the perturbed twin of samples/<source>."""
    base = file[f"samples/{source}"]
    new = file.create_group(f"samples/{name}")
    for key, value in base.attrs.items():
        new.attrs[key] = value
    new.attrs["id"] = base.attrs["id"] + "+19"
    new.attrs["variant_of"] = base.attrs["id"]
    n = base["tokens"].shape[0]
    index = base_index(n)
    where = np.maximum(index, 0)
    new.attrs["n_keys"] = index.size
    new["base_index"] = index
    new["tokens"] = base["tokens"][:][where]
    new["position"] = np.arange(index.size, dtype=base["position"].dtype)
    if "token_text" in base:
        new.create_dataset("token_text", data=base["token_text"][:][where], dtype=h5py.string_dtype())
    place = {int(b): i for i, b in enumerate(index) if b >= 0}
    for group in ("spans", "probes"):
        copy = new.create_group(group)
        for key, data in base[group].items():
            values = data[:]
            if key in ("start", "index"):
                values = np.array([place[int(x)] for x in values], values.dtype)
            elif key == "stop":
                values = np.array([place[int(x) - 1] + 1 for x in values], values.dtype)
            elif key == "position":
                values = values + (index.size - n)
            copy.create_dataset(key, data=values, dtype=data.dtype)
    for layer in base["layers"]:
        moved = new.create_group(f"layers/{layer}")
        inv_freq = file[f"layers/{layer}/inv_freq"][:]
        k, v, q = (widen(base[f"layers/{layer}/{t}"][:]) for t in "kvq")
        shift = np.arange(index.size) - where
        k2 = np.where((index >= 0)[:, None], rotate(k[:, where], shift, inv_freq), rng.normal(size=k[:, where].shape) * k.std())
        v2 = np.where((index >= 0)[:, None], v[:, where], rng.normal(size=v[:, where].shape) * v.std())
        q2 = rotate(q, np.full(q.shape[1], index.size - n), inv_freq)
        noise = NOISE[int(layer)]
        for tensor, data in (("k", k2), ("v", v2), ("q", q2)):
            made = moved.create_dataset(tensor, data=to_words(data * (1 + noise * rng.normal(size=data.shape))))
            for key, value in base[f"layers/{layer}/{tensor}"].attrs.items():
                made.attrs[key] = value


def attention(q, k, v, q_pos, k_pos, scale, group):
    """Weights [heads, probes, keys] and outputs, causal."""
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    logits = scale * np.einsum("hpd,hkd->hpk", q, k)
    logits = np.where(k_pos[None, None, :] <= q_pos[None, :, None], logits, -np.inf)
    w = np.exp(logits - logits.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return w, np.einsum("hpk,hkd->hpd", w, v)


def expected(file, layer, pairs):
    """[quantity][cells] predicted and real, in the program's order of cells per head."""
    inv_freq = file[f"layers/{layer}/inv_freq"][:]
    attrs = file[f"layers/{layer}"].attrs
    predicted, real = [], []
    for base_name, new_name in pairs:
        base, new = file[f"samples/{base_name}"], file[f"samples/{new_name}"]
        index = new["base_index"][:]
        b = {t: widen(base[f"layers/{layer}/{t}"][:]) for t in "kvq"}
        p = {t: widen(new[f"layers/{layer}/{t}"][:]) for t in "kvq"}
        roles = [r.decode() for r in base["spans/role"][:]]
        target = np.zeros(base["tokens"].shape[0], bool)
        for role, start, stop in zip(roles, base["spans/start"][:], base["spans/stop"][:]):
            if role == "gold":
                target[start:stop] = True
        inserted = index < 0
        hit = ~inserted & target[np.maximum(index, 0)]
        where, shift = np.maximum(index, 0), np.arange(index.size) - np.maximum(index, 0)
        k = np.where(inserted[:, None], p["k"], rotate(b["k"][:, where], shift, inv_freq))
        v = np.where(inserted[:, None], p["v"], b["v"][:, where])
        old, new_pos = base["probes/position"][:], new["probes/position"][:]
        q = rotate(b["q"], np.full(b["q"].shape[1], new_pos[0] - old[0]), inv_freq)
        group = attrs["n_q_heads"] // attrs["n_kv_heads"]
        run = lambda q, k, v, qp, kp: attention(q, k, v, qp, kp, attrs["scale"], group)
        w0, o0 = run(b["q"], b["k"], b["v"], old, base["position"][:])
        routes = [run(q, k, v, new_pos, new["position"][:]), run(p["q"], p["k"], p["v"], new_pos, new["position"][:])]
        for out, (w, o) in zip((predicted, real), routes):
            shift_nats = np.log(w[..., hit].sum(-1)) - np.log(w0[..., target].sum(-1))
            change = np.linalg.norm(o - o0, axis=-1) / np.linalg.norm(o0, axis=-1)
            out.append(np.stack([shift_nats, w[..., inserted].sum(-1), change]))
    stack = lambda parts: np.concatenate([x.reshape(3, x.shape[1], -1) for x in parts], -1)
    return stack(predicted), stack(real)  # [3, heads, cells of a head]


def ranks(x):
    order = np.argsort(x, kind="stable")
    out = np.empty(x.size)
    out[order] = np.arange(x.size)
    for value in np.unique(x):
        out[x == value] = out[x == value].mean()
    return out


class Fidelity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "pairs.h5")
        shutil.copy(CAPTURE, cls.path)
        rng = np.random.default_rng(5)
        cls.pairs = [("0", "4"), ("1", "5"), ("2", "6")]
        with h5py.File(cls.path, "r+") as file:
            for source, name in cls.pairs:
                add_pair(file, name, source, rng)
        done = cls.run_program(cls.path, "--json")
        assert done.returncode == 0, done.stderr
        cls.found = json.loads(done.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def run_program(*arguments):
        return subprocess.run([PROGRAM, "fidelity", *arguments], capture_output=True, text=True)

    def test_every_number_of_every_layer(self):
        names = ("log_mass_shift", "inserted_mass", "output_change")
        with h5py.File(self.path) as file:
            for row in self.found["layers"]:
                predicted, real = expected(file, row["layer"], self.pairs)
                for q, name in enumerate(names):
                    got, x, y = row["quantities"][name], predicted[q].ravel(), real[q].ravel()
                    self.assertEqual(got["cells"], x.size)
                    self.assertAlmostEqual(got["mean_predicted"], x.mean(), delta=2e-5 * max(1, abs(x.mean())))
                    self.assertAlmostEqual(got["mean_real"], y.mean(), delta=2e-5 * max(1, abs(y.mean())))
                    self.assertAlmostEqual(got["mean_error"], np.abs(y - x).mean(), delta=3e-5)
                    if row["layer"] > 0:
                        self.assertAlmostEqual(got["slope"], np.polyfit(x, y, 1)[0], delta=1e-3)
                        rho = np.corrcoef(ranks(x), ranks(y))[0, 1]
                        self.assertAlmostEqual(got["rank_correlation"], rho, delta=1e-6)
                error = np.abs(real[0] - predicted[0]).mean(-1)
                worst = [h["head"] for h in row["worst_heads"]]
                if row["layer"] > 0:
                    self.assertEqual(worst, list(np.argsort(-error)[:3]))

    def test_the_first_layer_is_foretold_exactly(self):
        """Up to the rounding of the moved keys to bfloat16."""
        quantities = self.found["layers"][0]["quantities"]
        self.assertLess(quantities["log_mass_shift"]["mean_error"], 0.02)
        self.assertGreater(quantities["inserted_mass"]["rank_correlation"], 0.999)
        self.assertIn("quantity", quantities["log_mass_shift"]["reading"])
        deep = self.found["layers"][2]["quantities"]["log_mass_shift"]
        self.assertGreater(deep["mean_error"], 10 * quantities["log_mass_shift"]["mean_error"])

    def test_text_names_every_layer(self):
        text = self.run_program(self.path).stdout
        for layer in range(3):
            self.assertIn(f"layer {layer}\n", text)

    def test_undefined_numbers_are_dashes(self):
        """A window that no longer reaches the target leaves no log mass to compare."""
        path = os.path.join(self.folder.name, "window.h5")
        shutil.copy(self.path, path)
        with h5py.File(path, "r+") as file:
            for layer in file["layers"].values():
                layer.attrs["window"] = 4
        done = self.run_program(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("nan", done.stdout)
        self.assertRegex(done.stdout, r"log_mass_shift +0 +- +- +- +- +-\n")
        self.assertIn("nothing can be said", done.stdout)

    def refused(self, change, *words):
        path = os.path.join(self.folder.name, "bad.h5")
        shutil.copy(self.path, path)
        with h5py.File(path, "r+") as file:
            change(file)
        done = self.run_program(path)
        self.assertEqual(done.returncode, 3, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_refusals(self):
        done = self.run_program(CAPTURE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("has no pair", done.stderr)
        done = self.run_program(self.path, "--target", "nothing")
        self.assertEqual(done.returncode, 3)
        self.assertIn('"nothing"', done.stderr)

        def swap(file):
            index = file["samples/5/base_index"]
            index[10], index[11] = 11, 10

        self.refused(swap, "reordered")

        def probe(file):
            probes = file["samples/5/probes"]
            probes["index"][0] = -1
            probes["position"][0] = probes["position"][0] + 1

        self.refused(probe, "probe", "moved by")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
