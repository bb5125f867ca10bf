"""Half doses and strengths that compare prints, computed again from the curve variables with numpy.

usage: check_curves.py PROGRAM BASE CANDIDATE
"""
import json
import math
import subprocess
import sys

import h5py
import numpy as np

program, paths = sys.argv[1], sys.argv[2:4]


class Side:
    def __init__(self, path):
        with h5py.File(path) as f:
            text = lambda name: f[name].asstr()[:]
            ids = text("sample_id")
            self.half = f["half_dose"][:].astype(np.float64)
            self.flag = f["half_dose_censored"][:]
            self.strength = f["competition_strength"][:].astype(np.float64)
            self.name = text("curve_perturbation")
            self.key = [(ids[s], c) for s, c in zip(f["curve_sample"][:], text("curve_id"))]
            self.cluster = dict(zip(ids, text("sample_cluster")))


def median(values, flags):
    """Kaplan-Meier by its product; left-censored ones are events at their number."""
    values, flags = values.ravel(), flags.ravel()
    known = ~np.isnan(values)
    values, flags = values[known], flags[known]
    alive = 1.0
    for x in np.unique(values):
        at_risk = (values >= x).sum()
        events = ((values == x) & (flags != 1)).sum()
        alive *= 1 - events / at_risk
        if alive <= 0.5 + 1e-12:
            left = (values == x) & (flags == -1)
            return x, (-1 if left.any() else 0)
    return (values.max(), 1) if len(values) else (math.nan, 0)


def bounds(x, flag):
    return {-1: (-math.inf, x), 0: (x, x), 1: (np.nextafter(x, math.inf), math.inf)}[int(flag)]


base, cand = (Side(p) for p in paths)
done = subprocess.run([program, "compare", *paths, "--format", "json"], capture_output=True, text=True)
assert done.returncode in (0, 1, 2), done.stderr
curves = {c["perturbation"]: c for c in json.loads(done.stdout)["dose_curves"]}
assert len(curves) >= 2 and list(base.key) == list(cand.key), (list(curves), base.key[:3], cand.key[:3])
moved = 0
for name, found in curves.items():
    rows = base.name == name
    for side, which in ((base, "base"), (cand, "candidate")):
        right, flag = median(side.half[rows], side.flag[rows])
        got = found[f"half_dose_{which}"]
        assert (got is None and math.isnan(right)) or abs(got - right) < 1e-6 * right, (name, which, got, right)
        assert found[f"half_dose_{which}_censored"] == flag, (name, which, found, flag)
    counts = dict.fromkeys(("lower", "equal", "higher", "hidden"), 0)
    for a, fa, b, fb in zip(base.half[rows].ravel(), base.flag[rows].ravel(), cand.half[rows].ravel(),
                            cand.flag[rows].ravel()):
        word = "hidden"
        if not (math.isnan(a) or math.isnan(b)):
            (low_a, high_a), (low_b, high_b) = bounds(a, fa), bounds(b, fb)
            word = ("lower" if high_b < low_a else "higher" if high_a < low_b else
                    "equal" if low_a == high_a == low_b == high_b else "hidden")
        counts[word] += 1
    assert all(found[f"half_dose_{k}"] == n for k, n in counts.items()), (name, counts, found)
    moved += counts["lower"] + counts["higher"]
    a, b = base.strength[rows], cand.strength[rows]
    both = np.isfinite(a) & np.isfinite(b)
    by_sample = {}
    for i, (sample, _) in enumerate(np.array(base.key)[rows]):
        by_sample.setdefault(sample, []).append((b[i] - a[i])[both[i]])
    by_cluster = {}
    for sample, parts in by_sample.items():
        parts = np.concatenate(parts)
        if parts.size:
            by_cluster.setdefault(base.cluster[sample], []).append(parts.mean())
    got = found["competition_strength"]["difference"]
    if by_cluster:
        right = np.mean([np.mean(x) for x in by_cluster.values()])
        assert abs(got - right) < 1e-5 * max(1, abs(right)), (name, got, right)
    else:
        assert got is None, (name, got)
assert moved > 10, moved
print(f"{len(curves)} perturbations, {moved} half doses moved")
