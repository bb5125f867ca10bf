#!/usr/bin/env python3
"""Writes tests/golden/fixtures/*.json: inputs of backend problems and every statistic, in float64.

usage: make_fixtures.py ORACLE.py OUTPUT_DIRECTORY

ORACLE.py is the numpy definition of the attention contract and the route metrics; it is not part of
this repository. What it does not return (top lists, sums of squares, logits of regions) is computed
here from its logits and weights. Non-finite numbers are written as strings.
"""
import dataclasses
import importlib.util
import json
import pathlib
import sys

import numpy as np

PARTS = ["removal", "intrusion", "dilution", "reroute", "payload"]
TOP = 4


def load_oracle(path):
    spec = importlib.util.spec_from_file_location("oracle", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = module
    spec.loader.exec_module(module)
    return module


def store(x, dtype):
    """Stored words and the float64 they stand for."""
    x = np.asarray(x, np.float32)
    if dtype == "float16":
        h = x.astype(np.float16)
        return h.view(np.uint16).ravel().tolist(), h.astype(np.float64)
    if dtype == "bfloat16":
        bits = x.view(np.uint32).astype(np.uint64)
        words = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32)
        wide = (words << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        return words.ravel().tolist(), wide
    return [float(v) for v in x.ravel()], x.astype(np.float64)


def single(x):
    """Rounded to float32, as float64."""
    return np.asarray(x, np.float32).astype(np.float64)


def number(v):
    v = float(v)
    if np.isnan(v):
        return "nan"
    if np.isinf(v):
        return "inf" if v > 0 else "-inf"
    return v


def flat(x):
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        return [int(v) for v in x.ravel()]
    return [number(v) for v in x.ravel()]


def logsumexp(z):
    z = z[np.isfinite(z)]
    return z.max() + np.log(np.exp(z - z.max()).sum()) if len(z) else -np.inf


def top_list(score, names):
    order = [i for i in np.lexsort((np.arange(len(score)), -score)) if score[i] > 0]
    for a, b in zip(order, order[1:]):  # the lists are compared key by key, also in single precision
        assert score[a] > score[b] * (1 + 1e-4), "a near tie: choose another seed"
    order = order[:TOP]
    pad = [-1] * (TOP - len(order))
    return order, [int(names[i]) for i in order] + pad, [score[i] for i in order] + [np.nan] * len(pad)


def route_stats(o, q, qpos, seg, names, c, mask, regions):
    """Statistics of one route: {field: [P, ...]}."""
    x = o.logits(q, qpos, seg, c, mask)
    w, null, lse = o.route(x, c)
    norm = np.linalg.norm(seg.v, axis=-1)
    out = {f: [] for f in ("lse lse_keys null_weight entropy sum_w2 max_weight legal_keys output top_index "
                           "top_weight topc_index topc_weight topc_norm region_lse region_max region_max_out "
                           "region_heavier region_output region_abs").split()}
    for p in range(len(q)):
        z, wp = x[p], w[p]
        _, index, weight = top_list(wp, names)
        order, cindex, cnorm = top_list(wp * norm, names)
        out["lse"].append(lse[p]); out["lse_keys"].append(logsumexp(z))
        out["null_weight"].append(null[p]); out["entropy"].append(o.entropy(w, null)[p])
        out["sum_w2"].append((wp ** 2).sum() + null[p] ** 2); out["max_weight"].append(wp.max())
        out["legal_keys"].append(int(np.isfinite(z).sum())); out["output"].append(wp @ seg.v)
        out["top_index"].append(index); out["top_weight"].append(weight)
        out["topc_index"].append(cindex); out["topc_norm"].append(cnorm)
        out["topc_weight"].append([wp[i] for i in order] + [np.nan] * (TOP - len(order)))
        per_region = {f: [] for f in out if f.startswith("region_")}
        for region in regions:
            inside = np.zeros(len(z), bool)
            for lo, hi in region:
                inside |= (seg.base >= lo) & (seg.base < hi)
            best = max(z[inside], default=-np.inf)
            per_region["region_lse"].append(logsumexp(z[inside]))
            per_region["region_max"].append(best)
            per_region["region_max_out"].append(max(z[~inside], default=-np.inf))
            per_region["region_heavier"].append(int((np.isfinite(z) & ~inside & (z > best)).sum()))
            per_region["region_output"].append((wp * inside) @ seg.v)
            per_region["region_abs"].append((wp * inside) @ norm)
        for f, values in per_region.items():
            out[f].append(values)
    return out, x, w


def pair_stats(o, result, xb, wb, nb, xv, wv, nv, seg, names):
    n = xb.shape[1]
    keys = {int(b): t for t, b in enumerate(seg.base) if b >= 0}
    out = {f: result[f] for f in "intrusion removal tv js hellinger reroute_tv reroute_js".split()}
    more = {f: [] for f in ("survivors_base survivors overlap_all overlap_survivors overlap_k_all "
                            "overlap_k_survivors inserted_lse inserted_abs inserted_output delta").split()}
    for p in range(len(xb)):
        s = [i for i in range(n) if np.isfinite(xb[p, i]) and np.isfinite(xv[p, keys[i]])]
        more["survivors_base"].append(wb[p, s].sum() + nb[p])
        more["survivors"].append(sum(wv[p, keys[i]] for i in s) + nv[p])
        heavy = lambda score: set(sorted((i for i in score if score[i] > 0), key=lambda i: -score[i])[:TOP])
        old = {i: wb[p, i] for i in range(n)}
        new = {int(names[t]): wv[p, t] for t in range(len(names))}
        for suffix, chosen in (("all", None), ("survivors", set(s))):
            keep = lambda d: {i: v for i, v in d.items() if chosen is None or i in chosen}
            a, b = heavy(keep(old)), heavy(keep(new))
            more["overlap_" + suffix].append(len(a & b))
            more["overlap_k_" + suffix].append(max(len(a), len(b)))
        ins = seg.base < 0
        more["inserted_lse"].append(logsumexp(xv[p][ins]))
        more["inserted_abs"].append(wv[p][ins] @ np.linalg.norm(seg.v[ins], axis=-1))
        more["inserted_output"].append(wv[p][ins] @ seg.v[ins])
        more["delta"].append([result["delta"][part][p] for part in PARTS])
    out.update(more)
    return out


class Case:
    """One problem: inputs as stored and as float64, contract per head, and its variants."""

    def __init__(self, oracle, rng, d=6, dv=3, n=18, heads=2, probes=2, dtype="float32", layout="half",
                 window=0, chunk=0, softcap=0.0, temperature=1.0, causal=True, sink=False, alibi=False,
                 keep=False, segments=False, gaps=False, scale=None):
        self.o, self.rng, self.d, self.dv, self.n = oracle, rng, d, dv, n
        self.heads, self.probes = heads, probes
        step = rng.integers(1, 4, n) if gaps else np.ones(n, int)
        self.kpos = np.cumsum(step) - step[0] + (3 if gaps else 0)
        self.qpos = self.kpos[np.linspace(n // 2, n - 1, probes).astype(int)]
        self.rope = None
        if layout != "none":
            pairs = d // 2 if layout == "half" else max(1, d // 4)
            self.rope = oracle.Rope(1.0 / 100.0 ** (np.arange(pairs) / pairs), layout)
        self.q = single(rng.normal(size=(heads, probes, d)) * 1.3)
        k_words, self.k = store(rng.normal(size=(n, d)), dtype)
        v_words, self.v = store(rng.normal(size=(n, dv)), dtype)
        scale = scale or 1.0 / np.sqrt(d)
        self.sinks = [float(np.float32(x)) for x in rng.normal(size=heads)] if sink else None
        self.slopes = [2.0 ** -(h + 2) for h in range(heads)] if alibi else None
        self.contracts = [oracle.Contract(scale, temperature, softcap, window, causal, chunk,
                                          self.sinks[h] if sink else None,
                                          self.slopes[h] if alibi else 0.0, self.rope)
                          for h in range(heads)]
        self.keep = None
        if keep:
            self.keep = rng.random((probes, n)) < 0.75
            self.keep[:, 1] = True
        kseg = np.arange(n) * 2 // n if segments else None
        qseg = np.array([kseg[np.searchsorted(self.kpos, p)] for p in self.qpos]) if segments else None
        self.legal = np.ones((probes, n), bool) if self.keep is None else self.keep.copy()
        if segments:
            self.legal &= kseg[None, :] == qseg[:, None]
        self.regions = [[[0, 2]], [[n // 3, n // 3 + 4]], [[1, 2], [n - 5, n - 2]]] if n > 8 else [[[0, n]]]
        self.doc = {"n_keys": n, "d_qk": d, "d_v": dv, "heads": heads, "probes": probes, "dtype": dtype,
                    "scale": scale, "softcap": softcap, "temperature": temperature, "window": window,
                    "chunk": chunk, "causal": causal, "rope": layout if self.rope else "none",
                    "inv_freq": flat(self.rope.inv_freq) if self.rope else [], "q": flat(self.q),
                    "k": k_words, "v": v_words, "key_pos": flat(self.kpos), "q_pos": flat(self.qpos),
                    "regions": self.regions, "top_k": TOP, "variants": []}
        if sink:
            self.doc["sink"] = self.sinks
        if alibi:
            self.doc["alibi"] = self.slopes
        if keep:
            self.doc["keep"] = flat(self.keep.astype(int))
        if segments:
            self.doc["key_segment"], self.doc["q_segment"] = flat(kseg), flat(qseg)
        self.doc["expected"] = self.stack([self.route(h, self.base_segment(), self.base_names(), self.q[h],
                                                      self.qpos, self.contracts[h], self.legal)[0]
                                           for h in range(heads)])

    def base_segment(self):
        return self.o.base_segment(self.k, self.v, self.kpos, 0, self.n, self.contracts[0])

    def base_names(self):
        return np.arange(self.n)

    def route(self, h, seg, names, q, qpos, c, mask):
        return route_stats(self.o, q, qpos, seg, names, c, mask, self.regions)

    def stack(self, per_head):
        return {f: flat(np.array([h[f] for h in per_head])) for f in per_head[0]}

    def side(self, count, positions):
        k = single(self.rng.normal(size=(count, self.d)))
        v = single(self.rng.normal(size=(count, self.dv)))
        return {"k": k, "v": v, "position": np.asarray(positions, int)}

    def variant(self, name, script, side=None, query_delta=0, temperature=1.0, scale=0.0, q=None):
        """script: ("keep", a, b, delta) | ("hide", a, b) | ("rows", i, j) | ("swap", a, b, i, what)."""
        o, c0 = self.o, self.contracts[0]
        side = side or {"k": np.zeros((0, self.d)), "v": np.zeros((0, self.dv)), "position": np.zeros(0, int)}
        pieces, names = [], []
        for kind, a, b, *rest in script:
            if kind == "rows":
                pieces.append(o.inserted_segment(side["k"][a:b], side["v"][a:b], side["position"][a:b]))
                names += [-2 - j for j in range(a, b)]
                continue
            piece = o.base_segment(self.k, self.v, self.kpos, a, b, c0, rest[0] if kind == "keep" else 0)
            if kind == "hide":
                piece.hidden[:] = True
            if kind == "swap":
                i, what = rest
                if what in ("key", "both"):
                    piece.k = side["k"][i:i + b - a].copy()
                if what in ("value", "both"):
                    piece.v = side["v"][i:i + b - a].copy()
            pieces.append(piece)
            names += list(range(a, b))
        seg, names = o.join(pieces), np.array(names)
        mask = np.where(seg.base[None, :] >= 0, self.legal[:, np.maximum(seg.base, 0)], True)
        routes, pairs = [], []
        new_q = self.q if q is None else q
        for h in range(self.heads):
            c = self.contracts[h]
            vc = dataclasses.replace(c, temperature=c.temperature * temperature, scale=scale or c.scale)
            vq = self.rope.rotate(new_q[h], query_delta) if query_delta else new_q[h]
            vpos = self.qpos + query_delta
            spans = {str(i): r for i, r in enumerate(self.regions)}
            result = o.evaluate(self.q[h], self.qpos, self.k, self.v, self.kpos, c, seg, vc, vq, vpos, spans,
                                TOP, self.legal, mask)
            _, xb, wb = self.route(h, self.base_segment(), self.base_names(), self.q[h], self.qpos, c, self.legal)
            stats, xv, wv = self.route(h, seg, names, vq, vpos, vc, mask)
            routes.append(stats)
            pairs.append(pair_stats(o, result, xb, wb, result["null_mass_base"], xv, wv, result["null_mass"],
                                    seg, names))
        expected = self.stack(routes)
        expected.update(self.stack(pairs))
        self.doc["variants"].append({
            "name": name, "script": [list(s) for s in script], "query_delta": query_delta,
            "temperature": temperature, "scale": scale, "q": [] if q is None else flat(q),
            "side": {"k": flat(side["k"]), "v": flat(side["v"]), "position": flat(side["position"])},
            "expected": expected})

    def overlay(self, at, count):
        self.variant("overlay", [("keep", 0, at, 0), ("rows", 0, count), ("keep", at, self.n, 0)],
                     self.side(count, [self.kpos[at - 1]] * count))

    def shift(self, at, count):
        self.variant("shift", [("keep", 0, at, 0), ("rows", 0, count), ("keep", at, self.n, count)],
                     self.side(count, self.kpos[at - 1] + 1 + np.arange(count)), query_delta=count)

    def move(self, at, delta):
        self.variant("move", [("keep", 0, at, 0), ("keep", at, self.n, delta)], query_delta=delta)

    def hide(self, a, b):
        self.variant("hide", [("keep", 0, a, 0), ("hide", a, b), ("keep", b, self.n, 0)])

    def swap(self, a, b, what):
        self.variant("swap " + what, [("keep", 0, a, 0), ("swap", a, b, 0, what), ("keep", b, self.n, 0)],
                     self.side(b - a, self.kpos[a:b]))


def make_cases(o):
    def case(seed, **options):
        return Case(o, np.random.default_rng(seed), **options)

    c = case(1); c.overlay(9, 3); c.shift(7, 4); c.move(7, 4); c.hide(5, 9)
    yield "plain", c
    c = case(2, d=5, dv=3, layout="none", n=13); c.overlay(6, 2); c.hide(0, 4); c.swap(4, 7, "key")
    c.swap(4, 7, "value"); c.swap(4, 7, "both")
    yield "swap_nope", c
    c = case(3, d=8, layout="interleaved", window=5, gaps=True); c.shift(8, 2); c.move(3, 3); c.overlay(12, 2)
    yield "window_gaps", c
    c = case(4, chunk=7, dtype="bfloat16"); c.shift(8, 3); c.overlay(9, 2); c.move(5, 2)
    yield "chunk_bf16", c
    c = case(5, softcap=2.0, dtype="float16"); c.overlay(9, 2); c.hide(2, 11)
    c.variant("scale", [("keep", 0, 18, 0)], scale=1.7)
    yield "softcap_f16", c
    c = case(6, sink=True, heads=3, probes=1); c.overlay(5, 3); c.hide(0, 12)
    c.variant("temperature", [("keep", 0, 18, 0)], temperature=2.5)
    yield "sink", c
    c = case(7, alibi=True, layout="none", heads=4, probes=1, n=15); c.overlay(5, 2); c.hide(9, 13)
    yield "alibi_heads", c
    c = case(8, temperature=0.5, causal=False, window=6, gaps=True); c.overlay(9, 3); c.hide(6, 8)
    c.move(6, 3)
    yield "bidirectional", c
    c = case(9, keep=True, segments=True, n=20); c.overlay(14, 2); c.hide(12, 15)
    yield "masks", c
    c = case(10, d=1, dv=1, layout="none", n=9, heads=1, scale=1.0); c.overlay(4, 1); c.swap(2, 4, "both")
    yield "width_1", c
    c = case(11, n=1, heads=1, probes=1); c.overlay(1, 2)
    yield "one_key", c
    c = case(12)
    c.variant("query rotation", [("keep", 0, 18, 0)],
              q=single(c.rope.rotate(c.q, np.float64(3))))
    c.variant("everything moves", [("keep", 0, 18, 40)], query_delta=40)
    c.variant("mixture", [("keep", 0, 3, 0), ("hide", 3, 5), ("rows", 0, 2), ("swap", 5, 7, 2, "both"),
                          ("keep", 7, 12, 3), ("rows", 4, 5), ("keep", 12, 18, -2)],
              c.side(5, [4, 4, 5, 6, 12]), query_delta=2, temperature=1.5, scale=0.9)
    yield "queries", c


def main():
    oracle, out = load_oracle(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name, case in make_cases(oracle):
        text = json.dumps(case.doc, separators=(",", ":"))
        (out / (name + ".json")).write_text(text.replace(',"', ',\n"') + "\n")


if __name__ == "__main__":
    main()
