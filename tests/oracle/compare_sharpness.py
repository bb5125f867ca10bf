"""Compares the sharpness shares and labels of a result with numpy versions of their own.

usage: compare_sharpness.py RESULT CAPTURE SUMMARY

Everything is computed from the capture's stored words by the table of docs/concepts.md; the Shapley
value is the mean over all 120 orders of the causes. Which keys stand out from chance hangs on the
program's own eight random rotations: here every number of outlying keys is tried, one of them must
give all five shares at once, and the cosine that it implies must be one that eight rotations drawn
here reach. Needs h5py and HDF5_PLUGIN_PATH.
"""
import collections
import itertools
import json
import pathlib
import sys

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from compare_result import Capture, text  # noqa: E402

CAUSES = ["alignment", "norm", "scale", "temperature", "mask_or_sink"]
LABELS = CAUSES + ["mixed", "diffuse"]


def entropy(z):
    w = np.exp(z - z.max())
    w /= w.sum()
    w = w[w > 0]
    return -(w * np.log(w)).sum()


class Row:
    """One probe and query head: keys it could see by causality, split into norm and cosine."""

    def __init__(self, c, kv, head, probe):
        contract, q = c.contract, c.q[head][probe]
        seen = c.pos <= c.qpos[probe]
        self.k = c.k[kv][seen]
        self.legal = np.ones(seen.sum(), bool)
        if contract.window:
            self.legal = c.qpos[probe] - c.pos[seen] < contract.window
        self.sink = np.arange(len(c.pos))[seen] < 4
        for _, role, start, stop in c.spans:
            if role == "sink":
                self.sink |= (np.arange(len(c.pos))[seen] >= start) & (np.arange(len(c.pos))[seen] < stop)
        self.q, self.d, self.scale = q, len(q), contract.scale
        assert not contract.softcap and c.sink is None and c.alibi is None and c.keep is None
        self.norm = np.linalg.norm(self.k, axis=1)
        self.q_norm = np.linalg.norm(q)
        self.cosine = self.k @ q / self.norm / self.q_norm
        self.rotary = contract.rope

    def chance(self, rng):
        """Largest cosine above the median over eight turns of the query."""
        r = len(self.rotary.inv_freq)
        best = 0
        for _ in range(8):
            turned = np.array(self.q)
            for pairs, start in ((r, 0), ((self.d - 2 * r) // 2, 2 * r)):
                a = np.arange(start, start + pairs)
                b = a + pairs
                if start == 0 and self.rotary.layout == "interleaved":
                    a, b = 2 * np.arange(pairs), 2 * np.arange(pairs) + 1
                z = (self.q[a] + 1j * self.q[b]) * np.exp(2j * np.pi * rng.random(pairs))
                turned[a], turned[b] = z.real, z.imag
            cosine = (self.k @ turned / self.norm / self.q_norm)[self.legal]
            best = max(best, cosine.max() - np.median(cosine))
        return best

    def shares(self, outlying):
        """Shapley values when the `outlying` largest cosines stand out."""
        centre = np.median(self.cosine[self.legal])
        middle = np.median(self.norm[self.legal])
        above = np.argsort(-self.cosine)[:outlying]
        spread = self.scale * self.q_norm * middle / np.sqrt(self.d)
        forgot = max(1, min(self.scale * np.sqrt(self.d), spread)) if abs(self.scale - 1) < 0.01 else 1
        gain = max(1, spread / forgot / 2)

        def left(off):
            cosine, norm = self.cosine.copy(), self.norm.copy()
            if "alignment" in off:
                cosine[above] = centre
            if "norm" in off:
                norm[:] = middle
            cosine[self.sink], norm[self.sink] = self.cosine[self.sink], self.norm[self.sink]
            divisor = (forgot if "scale" in off else 1) * (gain if "temperature" in off else 1)
            on = ~self.sink if "mask_or_sink" in off else self.legal
            return entropy((self.scale * self.q_norm * norm * cosine / divisor)[on])

        known = {frozenset(s): left(s) for n in range(6) for s in itertools.combinations(CAUSES, n)}
        sums = dict.fromkeys(CAUSES, 0.0)
        orders = list(itertools.permutations(CAUSES))
        for order in orders:
            for i, cause in enumerate(order):
                sums[cause] += known[frozenset(order[:i + 1])] - known[frozenset(order[:i])]
        return np.array([max(sums[c] / len(orders), 0) for c in CAUSES])

    def threshold(self, outlying):
        """Between which cosines above the median the limit lies."""
        order = np.sort(self.cosine)[::-1] - np.median(self.cosine[self.legal])
        return (order[outlying] if outlying < len(order) else -2, order[outlying - 1] if outlying else 2)


def label(share):
    if share.sum() < 1:
        return "diffuse"
    first, second = np.sort(share)[::-1][:2]
    return CAUSES[int(share.argmax())] if first >= 2.5 * second else "mixed"


def fit(row, got, most=100):
    """How far the shares are at best, and the numbers of outlying keys that give them."""
    found = []
    for n in range(most):
        gap = np.abs(row.shares(n) - got).max()
        if found and gap > found[0] + 1e-7:
            break
        if gap < 1e-5:
            equal = equal + [n] if found else [n]
            found.append(gap)
    return (min(found), equal) if found else (np.inf, [])


def heads_by_label(labels):
    """The label that more than half of a head's defined rows have, else mixed; heads by label."""
    votes = collections.Counter()
    for head in np.moveaxis(labels, 0, 2).reshape(labels.shape[1] * labels.shape[2], -1):
        counted = collections.Counter(LABELS[x] for x in head if x >= 0)
        most = [name for name, n in counted.items() if 2 * n > counted.total()]
        votes[most[0] if most else "mixed" if counted else "undefined"] += 1
    return dict(votes)


def main():
    result, capture, summary = sys.argv[1:]
    rng = np.random.default_rng(5)
    rows, worst, seen, below, above = 0, 0.0, set(), [], []
    with h5py.File(result) as f:
        assert text(f["base_sharpness_label"].attrs["flag_meanings"]).split() == LABELS
        layers, heads, ids = f["layer"][:], f["head"][:], [text(x) for x in f["sample_id"][:]]
        share = np.stack([f[f"base_sharpness_{c}"][:] for c in CAUSES], -1)
        labels = f["base_sharpness_label"][:]
    assert not np.isnan(share).all() and (labels.shape == share.shape[:-1])
    for s, sample in enumerate(ids):
        for i, layer in enumerate(layers):
            c = Capture(capture, sample, layer)
            for j, head in enumerate(heads):
                for p in range(len(c.qpos)):
                    row = Row(c, int(head) // c.group, int(head), p)
                    got = share[s, i, j, p]
                    where = f"sample {sample}, layer {layer}, head {head}, probe {p}"
                    gap, equal = fit(row, got)
                    assert gap < 1e-5, f"{where}: {got}, nearest {gap} away"
                    low, high = row.threshold(equal[-1])[0], row.threshold(equal[0])[1]
                    chance = [row.chance(rng) for _ in range(12)]
                    spread = f"{where}: {low:.4f} to {high:.4f}, chance {min(chance):.4f} to {max(chance):.4f}"
                    assert low <= max(chance) * 1.3 and high >= min(chance) * 0.7, spread
                    below.append(np.mean(np.array(chance) <= high))
                    above.append(np.mean(np.array(chance) >= low))
                    assert LABELS[labels[s, i, j, p]] == label(got), where
                    rows, worst = rows + 1, max(worst, gap)
                    seen.add(label(got))
    assert json.loads(pathlib.Path(summary).read_text())["sharpness"] == heads_by_label(labels)
    assert np.mean(below) > 0.4 and np.mean(above) > 0.4, (np.mean(below), np.mean(above))
    assert rows == np.isfinite(share[..., 0]).sum() and rows >= 40
    print(f"{rows} rows, worst difference {worst:.2g} nats, labels {sorted(seen)}")


if __name__ == "__main__":
    main()
