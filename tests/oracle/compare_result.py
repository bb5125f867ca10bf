"""Compares cells of a result file with an independent float64 computation.

usage: compare_result.py PROGRAM RESULT CAPTURE CELLS [SEED]

For CELLS random cells the edit (segments, inserted rows, replaced queries) is taken from
`PROGRAM explain --json --rows`; everything else is computed here by oracle.py from the capture's
stored words and compared with the float32 numbers in the file. Prints the worst difference of every
variable over its bar (docs/attention.md) and fails when one is passed. Needs h5py and
HDF5_PLUGIN_PATH.
"""
import json
import pathlib
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import oracle as o  # noqa: E402

PARTS = ["removal", "intrusion", "dilution", "reroute", "payload"]


def widen(dataset):
    raw = dataset[:]
    kind = dataset.attrs.get("storage_dtype", "float32")
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return (raw.view(np.float16) if kind == "float16" else raw).astype(np.float64)


def text(x):
    return x.decode() if isinstance(x, bytes) else x


class Capture:
    """One sample and layer of a capture as float64 arrays."""

    def __init__(self, path, sample_id, layer):
        with h5py.File(path) as f:
            a = f[f"layers/{layer}"].attrs
            group = f["layers"][str(layer)]
            for s in f["samples"].values():
                if text(s.attrs["id"]) == sample_id:
                    break
            t = s[f"layers/{layer}"]
            self.q, self.k, self.v = (widen(t[x]) for x in "qkv")
            self.keep = t["keep"][:].astype(bool) if "keep" in t else None
            self.pos, self.qpos = s["position"][:], s["probes/position"][:]
            sp = s["spans"]
            self.spans = [(text(n), text(r), int(b), int(e)) for n, r, b, e in
                          zip(sp["name"][:], sp["role"][:], sp["start"][:], sp["stop"][:])]
            self.w_o = group["w_o"][:].astype(np.float64) if "w_o" in group else None
            self.readouts = f["readouts/direction"][:].astype(np.float64) if "readouts" in f else None
            self.sink = group["sink"][:] if "sink" in group else None
            self.alibi = group["alibi_slope"][:] if "alibi_slope" in group else None
            layout = text(a["rope_layout"])
            rope = o.Rope(group["inv_freq"][:], layout) if layout != "none" else None
            self.contract = o.Contract(scale=float(a["scale"]), softcap=float(a["softcap"]),
                                       window=int(a["window"]), chunk=int(a["chunk"]),
                                       causal=bool(a["causal"]), rope=rope)
            self.group = int(a["n_q_heads"]) // int(a["n_kv_heads"])


def build(edit, k, v, pos, c):
    """The perturbed sequence as an oracle segment."""
    side_k = np.array(edit["k"] or np.zeros((0, k.shape[1])), np.float64)
    side_v = np.array(edit["v"] or np.zeros((0, v.shape[1])), np.float64)
    side_pos = np.array(edit["position"], np.int64)
    out = []
    for s in edit["segments"]:
        a, b, row = s["start"], s["stop"], s["row"]
        if s["kind"] == "rows":
            r = slice(row, row + b - a)
            out.append(o.inserted_segment(side_k[r], side_v[r], side_pos[r]))
            continue
        seg = o.base_segment(k, v, pos, a, b, c, s["delta"])
        if s["kind"] == "hide":
            seg.hidden[:] = True
        if s["kind"] == "swap":
            r = slice(row, row + b - a)
            if s["swap_key"]:
                seg.k = side_k[r]
            if s["swap_value"]:
                seg.v = side_v[r]
        out.append(seg)
    return o.join(out)


def regions(cap, names, by_role):
    n = len(cap.pos)
    covered = np.zeros(n, bool)
    out = {}
    for name, role, a, b in cap.spans:
        covered[a:b] = True
        if (role if by_role else name) in names:
            out.setdefault(role if by_role else name, []).append((a, b))
    sink = sorted({i for i in range(min(4, n))} | {i for _, r, a, b in cap.spans if r == "sink" for i in range(a, b)})
    out["sink"] = [(i, i + 1) for i in sink]
    out["recent"] = [(max(0, n - 64), n)]
    covered[sink] = True
    covered[max(0, n - 64):] = True
    out["rest"] = [(i, i + 1) for i in np.flatnonzero(~covered)]
    return out


class Worst:
    def __init__(self):
        self.rows = {}

    def add(self, name, got, want, bar, where):
        got, want = np.atleast_1d(np.float64(got)), np.atleast_1d(np.float64(want))
        bar = np.broadcast_to(np.asarray(bar, np.float64), got.shape)
        with np.errstate(invalid="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            ratio = np.where(same, 0.0, np.abs(got - want) / bar)
            plain = np.where(same, 0.0, np.abs(got - want))
        ratio[np.isnan(ratio)] = np.inf
        j = int(np.argmax(ratio))
        n, r, d, w = self.rows.get(name, (0, -1.0, 0.0, ""))
        if ratio[j] > r:
            r, d, w = float(ratio[j]), float(plain[j]), f"{where} [{j}] got {got[j]:.9g} want {want[j]:.9g}"
        self.rows[name] = (n + got.size, r, d, w)


def compare(worst, f, at, names, res, base, c, head, d_norm, where):
    """at: (case, layer, head, probe) into f; base: (sample, layer, head, probe)."""
    A, sd, rel = d_norm
    r = lambda key: res[key][0]
    f32 = 2 ** -23
    lse_bar = 2e-6 * (1 + A)
    mass_bar = 4e-6 * (1 + A)
    one = mass_bar + f32
    get = lambda name: f[name][at] if name in f else None

    def add(name, want, bar):
        if name in f:
            worst.add(name, f[name][at], want, bar, where)

    def add_base(name, want, bar):
        if "base_" + name in f:
            worst.add("base_" + name, f["base_" + name][base], want, bar, where)

    L, Lb = r("lse"), r("lse_base")
    add("lse", L, lse_bar + f32 * abs(L))
    add_base("lse", Lb, lse_bar + f32 * abs(Lb))
    add("lse_shift", L - Lb, 2 * lse_bar)
    add("competition_shift", Lb - L, 2 * lse_bar)
    for name in ("tv", "js", "intrusion", "removal", "reroute_tv", "reroute_js"):
        add(name, r(name), one)
    h = r("hellinger")
    add("hellinger", h, min(np.sqrt(2 * one), one / max(h, 1e-300)) + f32)
    ent_bar = mass_bar * (1 + sd)
    for name, key in (("entropy", "entropy"), ("null_mass", "null_mass"), ("max_weight", "max_weight")):
        add(name, r(key), ent_bar if name == "entropy" else one)
        add_base(name, r(key + "_base"), ent_bar if name == "entropy" else one)
    add("effective_keys", r("effective_keys"), ent_bar * r("effective_keys") * 2)
    w, wb = res["weights"][0], res["weights_base"][0]
    nv, nb = r("null_mass"), r("null_mass_base")
    n2 = 1 / ((w ** 2).sum() + nv ** 2)
    add("effective_keys_n2", n2, 4 * one * n2)
    out_bar = mass_bar * 2
    ob, ov = res["output_base"][0], res["output"][0]
    nob, nov = np.linalg.norm(ob), np.linalg.norm(ov)
    noise = out_bar * max(rel, 1)      # rounding relative to sum w |v|, not to |o|
    add("output_cosine", r("output_cosine"), 2 * noise)
    add("output_change", r("output_change"), 2 * noise)
    add("output_norm_ratio", nov / nob, 2 * noise * max(1, nov / nob))
    d = np.stack([res["delta"][p][0] for p in PARTS])
    norms = np.linalg.norm(d, axis=1)
    scale = max(nob, nov) * max(rel, 1)
    grow = max(1.0, 1 / max(1 - r("removal"), 1e-30), 1 / max(1 - r("intrusion"), 1e-30))
    add("delta_norm", norms, 3 * out_bar * scale * grow)
    add("delta_share", d @ ob / nob ** 2, 3 * out_bar * scale * grow / nob)
    for i, name in enumerate(names[:-1]):
        if name not in res["spans"]:
            continue
        s = {k: v[0] for k, v in res["spans"][name].items()}
        cell, bcell = at + (i,), base + (i,)

        def span(metric, want, bar, is_base=False):
            var = ("base_" if is_base else "") + metric
            if var in f:
                worst.add(var, f[var][bcell if is_base else cell], want, bar, where + " " + name)

        span("mass", s["mass"], mass_bar * s["mass"] + 1e-30)
        span("mass", s["mass_base"], mass_bar * s["mass_base"] + 1e-30, True)
        if s["mass"] > 0 and s["mass_base"] > 0:
            span("retention", s["retention"], 3 * mass_bar * s["retention"] + 1e-37)
            span("log_mass_shift", s["log_mass_shift"], 3 * mass_bar + f32 * abs(s["log_mass_shift"]))
            span("own_logit_shift", s["own_logit_shift"], 3 * mass_bar + f32 * abs(s["own_logit_shift"]))
            span("margin", s["margin"], 2 * lse_bar + f32 * abs(s["margin"]))
            span("margin", s["margin_base"], 2 * lse_bar + f32 * abs(s["margin_base"]), True)
            # a rank may differ only where logits tie within the bar
            x = np.log(np.maximum(w, 1e-300))
            inside = np.array([any(a <= b < e for a, e in res["regions"][name]) for b in res["variant"].base])
            best = x[inside].max()
            low = 1 + (x[~inside] > best + 2 * lse_bar).sum()
            high = 1 + (x[~inside] > best - 2 * lse_bar).sum()
            got = float(f["rank"][cell])
            worst.add("rank", got, min(max(got, low), high), 0.5, where + " " + name)
        c_base, c_new = s["contribution_base"], s["contribution"]
        span("contribution_norm", s["contribution_norm"], noise * max(nov, nob))
        span("contribution_norm", s["contribution_norm_base"], noise * nob, True)
        span("contribution_change", s["contribution_delta"], 2 * noise * max(nov, nob))
        span("contribution_share", s["share"], 2 * noise * max(1, abs(s["share"])))
        if s["mass_base"] > 0:
            span("cancellation", s["cancellation_base"], 3 * noise, True)
        if c.w_o is not None:
            wo = c.w_o[head]
            big = noise * np.linalg.norm(wo, 2) * max(nov, nob)
            span("contribution_norm_resid", np.linalg.norm(c_new @ wo), big)
            span("contribution_change_resid", np.linalg.norm((c_new - c_base) @ wo), 2 * big)
            if c.readouts is not None and "readout" in f:
                want = c.readouts @ (c_new @ wo)
                worst.add("readout", f["readout"][at][:, i], want, big * np.linalg.norm(c.readouts, axis=1), where)
    i = len(names) - 1
    if "inserted" in res["spans"]:
        s = res["spans"]["inserted"]
        worst.add("mass[inserted]", f["mass"][at + (i,)], s["mass"][0], mass_bar * s["mass"][0] + 1e-30, where)
        worst.add("contribution_norm[inserted]", f["contribution_norm"][at + (i,)], s["contribution_norm"][0],
                  noise * max(nov, nob), where)
    top = f["topk_index"][at]
    tw = np.sort(w)[::-1][: len(top)]
    got = f["topk_weight"][at][: len(tw)]
    worst.add("topk_weight", np.where(np.isnan(got), 0, got), tw, one, where)
    if c.w_o is not None and "output_change_resid" in f:
        wo = c.w_o[head]
        worst.add("output_change_resid", f["output_change_resid"][at],
                  np.linalg.norm((ov - ob) @ wo) / np.linalg.norm(ob @ wo),
                  4 * noise * np.linalg.norm(wo, 2) * max(nov, nob) / np.linalg.norm(ob @ wo), where)


def main():
    program, result, path, cells = sys.argv[1:4] + [int(sys.argv[4])]
    rng = np.random.default_rng(int(sys.argv[5]) if len(sys.argv) > 5 else 0)
    worst = Worst()
    caches = {}
    with h5py.File(result) as f:
        names = [text(x) for x in f["span"][:]]
        by_role = "axis: role" in text(f["suite"][()])
        layers, heads = f["layer"][:], f["head"][:]
        status = f["status"][:]
        probes_of = [[int(i) for i in text(x).split(",")] for x in f["sample_probes"][:]]
        per_kind = {}
        kinds = [text(x) for x in f["kind"][:]]
        for case in np.flatnonzero(status == 0):
            per_kind.setdefault((kinds[case], text(f["positions"][case]), text(f["arm"][case])), []).append(int(case))
        keys = sorted(per_kind)
        for n in range(cells):
            key = keys[n % len(keys)]
            case = int(rng.choice(per_kind[key]))
            l, h = int(rng.integers(len(layers))), int(rng.integers(len(heads)))
            sample = int(f["sample_index"][case])
            count = len(probes_of[sample])
            p = int(rng.integers(count))
            run = subprocess.run([program, "explain", result, "--case", str(case), "--layer", str(layers[l]), "--head",
                                  str(heads[h]), "--probe", str(p), "--capture", path, "--json", "--rows"],
                                 capture_output=True, text=True)
            where = f"case {case} {'/'.join(key)} layer {layers[l]} head {heads[h]} probe {p}"
            if run.returncode:
                if "skipped in layer" in run.stderr:
                    continue
                sys.exit(f"{where}: {run.stderr}")
            e = json.loads(run.stdout)
            sid = text(f["sample_id"][sample])
            cache = (sid, int(layers[l]))
            if cache not in caches:
                caches[cache] = Capture(path, sid, layers[l])
            cap = caches[cache]
            row = probes_of[sample][p]
            head = int(heads[h])
            k, v = cap.k[head // cap.group], cap.v[head // cap.group]
            c = cap.contract
            if cap.sink is not None:
                c = o.replace(c, sink=float(cap.sink[head]))
            if cap.alibi is not None:
                c = o.replace(c, alibi=float(cap.alibi[head]))
            edit = e["edit"]
            q, qpos = cap.q[head][row][None], cap.qpos[row:row + 1]
            vq = np.array(edit["q"], np.float64) if edit["q"] else q
            vc = o.replace(c, temperature=c.temperature * (edit["temperature"] or 1), scale=edit["scale"] or c.scale)
            variant = build(edit, k, v, cap.pos, c)
            turned = c.rope.rotate(vq, edit["query_delta"]) if edit["query_delta"] and c.rope else vq
            spans = regions(cap, names, by_role)
            mask = cap.keep[row:row + 1] if cap.keep is not None else None
            vmask = None
            if mask is not None:
                vmask = np.where(variant.base[None] >= 0, mask[:, np.maximum(variant.base, 0)], True)
            res = o.evaluate(q, qpos, k, v, cap.pos, c, variant, vc, turned, qpos + edit["query_delta"], spans,
                             top=f["k"].shape[0], mask=mask, variant_mask=vmask)
            res["regions"], res["variant"] = spans, variant
            kk = np.concatenate([k, variant.k])
            A = max(np.linalg.norm(q), np.linalg.norm(vq)) * np.linalg.norm(kk, axis=1).max() * max(abs(c.scale), abs(vc.scale))
            A /= min(1.0, vc.temperature)
            x = np.log(np.maximum(res["weights"][0], 1e-300))
            mean = (res["weights"][0] * x).sum()
            sd = np.sqrt(max(0.0, (res["weights"][0] * (x - mean) ** 2).sum()))
            rel = max((res["weights_base"][0] @ np.linalg.norm(v, axis=1)) / np.linalg.norm(res["output_base"][0]),
                      (res["weights"][0] @ np.linalg.norm(variant.v, axis=1)) / np.linalg.norm(res["output"][0]))
            compare(worst, f, (case, l, h, p), names, res, (sample, l, h, p), cap, head, (A, sd, rel), where)
    bad = 0
    print(f"{'variable':32} {'numbers':>8} {'worst diff':>11} {'of its bar':>10}")
    for name in sorted(worst.rows):
        n, ratio, diff, where = worst.rows[name]
        bad += ratio > 1
        print(f"{name:32} {n:8d} {diff:11.2e} {ratio:10.2e}{'  FAIL ' + where if ratio > 1 else ''}")
    print(f"{cells} cells of {len(keys)} kinds of case, {bad} variables outside their bar")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
