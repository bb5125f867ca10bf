"""float64 oracle of the attention contract, the edit script and every route metric.

Brute force on purpose: it materialises the perturbed keys, the logits and the weights of one
query head, and computes each metric from its definition in docs/metrics.md.  The product
never links or calls it; fixtures for the product's tests are generated from it.

Shapes: q [P, d], k [n, d], v [n, dv]; positions are integers; logits are in nats.
"""
from dataclasses import dataclass, field, replace
import numpy as np

NEG = -np.inf


@dataclass
class Rope:
    inv_freq: np.ndarray          # [rotary_dim / 2], radians per position
    layout: str = "half"          # "half": pairs (i, i + r/2); "interleaved": pairs (2i, 2i + 1)

    def rotate(self, x, delta):
        """x [..., d] rotated by delta positions; delta is a scalar or broadcasts to x[..., 0]."""
        x = np.array(x, dtype=np.float64)
        r = 2 * len(self.inv_freq)
        ang = np.asarray(delta, np.float64)[..., None] * self.inv_freq
        c, s = np.cos(ang), np.sin(ang)
        if self.layout == "half":
            a, b = x[..., : r // 2].copy(), x[..., r // 2: r].copy()
            x[..., : r // 2], x[..., r // 2: r] = a * c - b * s, b * c + a * s
        else:
            a, b = x[..., 0:r:2].copy(), x[..., 1:r:2].copy()
            x[..., 0:r:2], x[..., 1:r:2] = a * c - b * s, b * c + a * s
        return x


@dataclass
class Contract:
    scale: float                  # multiplies q.k before anything else
    temperature: float = 1.0      # divides the (soft-capped) logit
    softcap: float = 0.0          # 0: none; else cap * tanh(x / cap), after scale, before temperature
    window: int = 0               # 0: none; else a key is legal only where qpos - kpos < window
    causal: bool = True           # a key is legal only where kpos <= qpos
    chunk: int = 0                # 0: none; else a key is legal only where floor(kpos/C) == floor(qpos/C)
    sink: float | None = None     # extra logit in the denominator, without a value (null route); not scaled, not capped
    alibi: float = 0.0            # slope: adds -slope * (qpos - kpos) after the soft cap
    rope: Rope | None = None


@dataclass
class Segment:
    """A run of keys of the perturbed sequence, in order."""
    k: np.ndarray                 # [m, d] rows as they act on the query (already at position pos)
    v: np.ndarray                 # [m, dv]
    pos: np.ndarray               # [m] positions after the perturbation
    base: np.ndarray              # [m] base key index, -1 where inserted
    hidden: np.ndarray            # [m] True where the perturbation masks the key


def base_segment(k, v, pos, start, stop, contract, delta=0):
    kk = k[start:stop]
    if delta:
        kk = contract.rope.rotate(kk, delta)
    m = stop - start
    return Segment(np.asarray(kk, np.float64), np.asarray(v[start:stop], np.float64),
                   pos[start:stop] + delta, np.arange(start, stop), np.zeros(m, bool))


def inserted_segment(k, v, pos):
    m = len(k)
    return Segment(np.asarray(k, np.float64), np.asarray(v, np.float64), np.asarray(pos),
                   np.full(m, -1), np.zeros(m, bool))


def join(segments):
    cat = lambda name: np.concatenate([getattr(s, name) for s in segments])
    return Segment(cat("k"), cat("v"), cat("pos"), cat("base"), cat("hidden"))


def logits(q, qpos, seg, c, mask=None):
    """[P, m] logits in nats; -inf where illegal. mask: extra legality [P, m], True = legal."""
    x = (q @ seg.k.T) * c.scale
    dist = qpos[:, None] - seg.pos[None, :]
    if c.softcap:
        x = c.softcap * np.tanh(x / c.softcap)
    if c.alibi:
        x = x - c.alibi * dist
    x = x / c.temperature
    legal = ~seg.hidden[None, :]
    if c.causal:
        legal = legal & (dist >= 0)
    if c.window:
        legal = legal & (dist < c.window)
        if not c.causal:
            legal = legal & (-dist < c.window)
    if c.chunk:
        legal = legal & (seg.pos[None, :] // c.chunk == qpos[:, None] // c.chunk)
    if mask is not None:
        legal = legal & mask
    return np.where(legal, x, NEG)


def route(x, c):
    """weights [P, m], null weight [P], lse [P]. A query without a legal key and without a sink is an error."""
    sink = NEG if c.sink is None else c.sink / c.temperature
    peak = np.maximum(x.max(axis=-1), sink)
    if not np.all(np.isfinite(peak)):
        raise ValueError("a query has no legal key")
    e = np.exp(x - peak[:, None])
    null = np.exp(sink - peak)
    z = e.sum(-1) + null
    return e / z[:, None], null / z, peak + np.log(z)


def xlogx(p):
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


def entropy(w, null):
    return -(xlogx(w).sum(-1) + xlogx(null))


def rank_of_span(w, inside):
    """1 + number of keys outside the span heavier than the span's heaviest key."""
    best = np.where(inside, w, -1.0).max(-1)
    return 1 + (np.where(inside, -1.0, w) > best[:, None]).sum(-1)


def top_k(w, k):
    """indices of the k heaviest keys, ties to the lower index; legal keys only."""
    out = []
    for row in w:
        order = np.lexsort((np.arange(len(row)), -row))[:k]
        out.append([int(i) for i in order if row[i] > 0])
    return out


def evaluate(q, qpos, k, v, kpos, contract, variant, variant_contract=None, variant_q=None,
             variant_qpos=None, spans=None, top=8, mask=None, variant_mask=None):
    """All route metrics of one variant against its base, per query. spans: {name: [(start, stop), ...]} of base keys."""
    q = np.asarray(q, np.float64)
    base = base_segment(k, v, kpos, 0, len(k), contract)
    vc = variant_contract or contract
    vq = q if variant_q is None else np.asarray(variant_q, np.float64)
    vpos = qpos if variant_qpos is None else variant_qpos
    xb, xv = logits(q, qpos, base, contract, mask), logits(vq, vpos, variant, vc, variant_mask)
    wb, nb, lb = route(xb, contract)
    wv, nv, lv = route(xv, vc)
    ob, ov = wb @ base.v, wv @ variant.v
    P, n = wb.shape

    # align: survivors S (in both, the null route among them), removed R, inserted I.
    # A key the perturbation hides is removed; a key the window or causality drops is removed too.
    surv = variant.base >= 0
    a = np.zeros((P, n)); present = np.zeros((P, n), bool); vv = np.array(base.v)
    idx = variant.base[surv]
    a[:, idx] = wv[:, surv]
    present[:, idx] = np.isfinite(xv[:, surv])
    vv[idx] = variant.v[surv]
    inb = np.isfinite(xb)
    S = present & inb
    R = inb & ~present
    E = present & ~inb                      # legal in the variant only: counts as inserted
    ins = wv[:, ~surv]
    A = (wb * S).sum(-1) + nb
    B = (a * S).sum(-1) + nv
    intrusion = ins.sum(-1) + (a * E).sum(-1)
    removal = (wb * R).sum(-1)
    out = {}
    out["lse_base"], out["lse"] = lb, lv
    out["lse_shift"], out["competition_shift"] = lv - lb, lb - lv
    out["entropy_base"], out["entropy"] = entropy(wb, nb), entropy(wv, nv)
    out["effective_keys_base"], out["effective_keys"] = np.exp(out["entropy_base"]), np.exp(out["entropy"])
    out["max_weight_base"], out["max_weight"] = wb.max(-1), wv.max(-1)
    out["null_mass_base"], out["null_mass"] = nb, nv
    out["intrusion"], out["removal"] = intrusion, removal
    out["tv"] = 0.5 * ((np.abs(wb - a) * S).sum(-1) + np.abs(nb - nv) + removal + intrusion)
    out["hellinger"] = np.sqrt(np.maximum(0.0, 1.0 - ((np.sqrt(wb * a) * S).sum(-1) + np.sqrt(nb * nv))))

    def js(p_s, q_s, p_n, q_n, p_only, q_only):
        m, mn = 0.5 * (p_s + q_s), 0.5 * (p_n + q_n)
        h = -(xlogx(m).sum(-1) + xlogx(mn) + xlogx(0.5 * p_only).sum(-1) + xlogx(0.5 * q_only).sum(-1))
        hp = -(xlogx(p_s).sum(-1) + xlogx(p_n) + xlogx(p_only).sum(-1))
        hq = -(xlogx(q_s).sum(-1) + xlogx(q_n) + xlogx(q_only).sum(-1))
        return np.maximum(0.0, (h - 0.5 * hp - 0.5 * hq) / np.log(2.0))   # bits, in [0, 1]

    out["js"] = js(wb * S, a * S, nb, nv, wb * R, np.concatenate([a * E, ins], axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        pc, qc = wb * S / A[:, None], a * S / B[:, None]
        out["reroute_tv"] = 0.5 * (np.abs(pc - qc).sum(-1) + np.abs(nb / A - nv / B))
        out["reroute_js"] = js(pc, qc, nb / A, nv / B, np.zeros((P, 1)), np.zeros((P, 1)))
    tb, tv_ = top_k(wb, top), top_k(wv, top)
    name = lambda j: int(variant.base[j]) if variant.base[j] >= 0 else -2 - int(j)
    jac = []
    for x_, y_ in zip(tb, tv_):
        s1, s2 = set(x_), {name(j) for j in y_}
        jac.append(len(s1 & s2) / len(s1 | s2))
    out["topk_jaccard"] = np.array(jac)
    out["top_key_base"] = np.array([t[0] if t else -1 for t in tb])
    out["top_key"] = np.array([max(name(t[0]), -1) if t else -1 for t in tv_])
    nob, nov = np.linalg.norm(ob, axis=-1), np.linalg.norm(ov, axis=-1)
    out["output_base"], out["output"] = ob, ov
    out["output_cosine"] = (ob * ov).sum(-1) / (nob * nov)
    out["output_change"] = np.linalg.norm(ov - ob, axis=-1) / nob

    # exact additive decomposition of the output change
    ratio = (B / A)[:, None]
    vbar = 0.5 * (base.v + vv)
    so = (wb * S) @ vbar
    d = {
        "removal": -((wb * R) @ base.v),
        "intrusion": ins @ variant.v[~surv] + (a * E) @ vv,
        "dilution": (ratio - 1.0) * so,
        "reroute": (a * S) @ vbar - ratio * so,
        "payload": 0.5 * ((a + wb) * S) @ (vv - base.v),
    }
    out["delta"] = d
    assert np.allclose(sum(d.values()), ov - ob, atol=1e-10)

    out["spans"] = {}
    for s, pieces in (spans or {}).items():
        inside = np.zeros(n, bool)
        for lo, hi in pieces:
            inside[lo:hi] = True
        cb, cv = (wb * inside) @ base.v, (a * inside) @ vv
        g, g2 = (wb * inside).sum(-1), (a * inside).sum(-1)
        in_v = np.zeros(len(variant.base), bool)
        in_v[surv] = inside[idx]
        with np.errstate(invalid="ignore", divide="ignore"):
            out["spans"][s] = {
                "mass_base": g, "mass": g2, "retention": g2 / g,
                "log_mass_shift": np.log(g2) - np.log(g),
                "own_logit_shift": (np.log(g2) + lv) - (np.log(g) + lb),
                "rank_base": rank_of_span(wb, inside[None, :]), "rank": rank_of_span(wv, in_v[None, :]),
                "margin_base": np.where(inside, xb, NEG).max(-1) - np.where(inside, NEG, xb).max(-1),
                "margin": np.where(in_v, xv, NEG).max(-1) - np.where(in_v, NEG, xv).max(-1),
                "contribution_base": cb, "contribution": cv,
                "contribution_norm_base": np.linalg.norm(cb, axis=-1), "contribution_norm": np.linalg.norm(cv, axis=-1),
                "contribution_delta": np.linalg.norm(cv - cb, axis=-1),
                "share_base": (cb * ob).sum(-1) / nob ** 2, "share": (cv * ov).sum(-1) / nov ** 2,
                "cancellation_base": np.linalg.norm(cb, axis=-1) / ((wb * inside) @ np.linalg.norm(base.v, axis=-1)),
            }
    if not surv.all():
        iv = wv * ~surv
        out["spans"]["inserted"] = {"mass": iv.sum(-1), "contribution": iv @ variant.v,
                                    "contribution_norm": np.linalg.norm(iv @ variant.v, axis=-1),
                                    "share": ((iv @ variant.v) * ov).sum(-1) / nov ** 2}
    out["weights_base"], out["weights"] = wb, wv
    return out


# ---- thresholds in closed form (in-place insertion leaves the old logits alone) ----

def distractor_tolerance(lse, distractor_logits, keep=0.5):
    """Distractors like the given ones after which every old weight has fallen to `keep` of itself."""
    s = np.asarray(distractor_logits, np.float64)
    peak = s.max(-1)
    one = peak + np.log(np.exp(s - peak[..., None]).mean(-1))
    return (1.0 / keep - 1.0) * np.exp(lse - one)


def norm_capture_threshold(lse, logit_at_one, capture=0.5, softcap=0.0, temperature=1.0):
    """Smallest multiplier of a key's norm at which that key takes `capture` of the route; inf if none does."""
    target = lse + np.log(capture / (1.0 - capture))
    raw = logit_at_one * temperature
    if softcap:
        t = target * temperature / softcap
        target_raw = np.where(np.abs(t) < 1, softcap * np.arctanh(np.clip(t, -1 + 1e-16, 1 - 1e-16)), np.inf)
        raw = softcap * np.arctanh(raw / softcap)
    else:
        target_raw = target * temperature
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(raw > 0, np.maximum(target_raw / raw, 0.0), np.inf)
