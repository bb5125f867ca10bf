"""Every number of the page's tables, computed again from the result files with numpy.

usage: check_numbers.py PAGE RESULT BASE
"""
import html
import math
import re
import sys

import h5py
import numpy as np

page = open(sys.argv[1], encoding="utf-8").read()
failures = []
LABELS = ["alignment", "norm", "scale", "temperature", "mask_or_sink", "mixed", "diffuse"]


def expect(what, found, right):
    same = (math.isnan(found) and math.isnan(right)) or abs(found - right) <= 6e-4 * abs(right) + 1e-12
    if not same:
        failures.append(f"{what}: the page says {found}, should be {right}")


def number(cell):
    text = html.unescape(re.sub("<[^>]*>", "", cell)).replace("\u2212", "-").replace("\u221e", "inf")
    return math.nan if text.strip() == "\u2013" else float(text)


def labels_after(start):
    """Head cells of the first table after position `start`, without the first."""
    head = re.search(r"<tr>(.*?)</tr>", page[start : page.index("</table>", start)], re.S)[1]
    return re.findall(r"<th[^>]*>(.*?)</th>", head)[1:]


def rows_after(start, n_rows):
    """Rows of the first table after position `start`, as (name, numbers)."""
    table = page[start : page.index("</table>", start)]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]
    assert len(rows) == n_rows, (len(rows), n_rows)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    return [(c[0], [number(x) for x in c[1:]]) for c in cells]


def mean(values):
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else math.nan


class Result:
    def __init__(self, path):
        file = h5py.File(path)
        text = lambda name: file[name].asstr()[:]
        self.arm, self.name = text("arm"), text("perturbation")
        self.ok = file["status"][:] == 0
        self.pair = file["pair_case"][:]
        self.dose, self.at = file["dose"][:], file["at"][:]
        target = list(text("span")).index(file.attrs["target"])
        shift = file["log_mass_shift"][..., target].astype(np.float64)
        with np.errstate(invalid="ignore"):
            finite = np.where(np.isfinite(shift), shift, np.nan)
        count = np.isfinite(finite).sum(-1)
        self.shift = np.where(count > 0, np.nansum(finite, -1) / np.maximum(count, 1), np.nan)
        norm = file["delta_norm"][:].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.share = norm / norm.sum(-1, keepdims=True)
        self.mass = file["base_mass"][..., target].astype(np.float64)
        self.tolerance = file["base_distractor_tolerance"][..., target].astype(np.float64)
        self.rows = file["rows"][:].astype(np.float64)
        self.row_tolerance = file["row_tolerance"][:].astype(np.float64)
        self.cause = np.stack([file[f"base_sharpness_{c}"][:] for c in LABELS[:5]], -1).astype(np.float64)
        self.label = file["base_sharpness_label"][:]
        self.curve_name = text("curve_perturbation")

    def select(self, name, arm):
        return self.ok & (self.name == name) & (self.arm == arm)


candidate, base = Result(sys.argv[2]), Result(sys.argv[3])


def loss_map(result):
    chosen = result.ok & (result.arm == "treatment") & (result.pair >= 0)
    cells = result.shift[chosen]
    return np.array([[mean(cells[:, l, h]) for h in range(cells.shape[2])] for l in range(cells.shape[1])])


def geometric_map(values):
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    return np.array([[math.exp(mean(logs[:, l, h])) for h in range(logs.shape[2])] for l in range(logs.shape[1])])


checked = 0
MAPS = {
    "mapshift": (loss_map, np.subtract),
    "mapmass": (lambda r: geometric_map(r.mass), np.subtract),
    "maptol": (lambda r: geometric_map(r.tolerance), lambda c, b: np.log2(c / b)),
}
for identity, (make, difference) in MAPS.items():
    maps = {"b": make(base), "c": make(candidate)}
    maps["d"] = difference(maps["c"], maps["b"])
    for suffix, right in maps.items():
        start = page.index(f'aria-labelledby="{identity}{suffix}-t')
        for l, (_, numbers) in enumerate(rows_after(start, right.shape[0])):
            for h, found in enumerate(numbers):
                slack = 1e-3 * np.abs(maps["c"]).max() if suffix == "d" else 0
                if not abs(found - right[l, h]) <= slack:
                    expect(f"{identity}{suffix} layer {l} head {h}", found, right[l, h])
                checked += 1

names = list(dict.fromkeys(candidate.name))
for f, name in enumerate(names):
    doses = np.unique(candidate.dose[np.isfinite(candidate.dose) & (candidate.name == name)])
    marker = f'aria-labelledby="f{f}dose-t'
    if len(doses) < 2:
        assert marker not in page, name
        continue
    start = page.index(marker)
    for dose, (found_dose, numbers) in zip(doses, rows_after(start, len(doses))):
        expect(f"{name} dose", float(found_dose), dose)
        of = lambda r, arm: r.shift[r.select(name, arm) & (r.dose == dose)]
        treated = of(candidate, "treatment")
        heads = [mean(treated[:, l, h]) for l in range(treated.shape[1]) for h in range(treated.shape[2])]
        right = [mean(treated), mean(of(candidate, "control")), np.nanmin(heads), mean(of(base, "treatment"))]
        rows = candidate.rows[candidate.select(name, "treatment") & (candidate.dose == dose)].mean()
        right.append(mean(-np.log1p(rows / candidate.row_tolerance[candidate.curve_name == name])))
        wanted = dict(zip(("treatment", "control twin", "weakest head", "baseline treatment", "law 1/(1+nr)"), right))
        labels = labels_after(start)
        assert set(labels) >= {"treatment", "baseline treatment"} and set(labels) <= set(wanted), labels
        assert ("law 1/(1+nr)" in labels) == (name in ("near", "copies")), (name, labels)
        for label, x, y in zip(labels, numbers, (wanted[label] for label in labels)):
            expect(f"{name} at {dose}, {label}", x, math.exp(y))
            checked += 1

start = page.index('aria-labelledby="parts-t')
for name, (found_name, numbers) in zip(names, rows_after(start, len(names))):
    assert html.unescape(found_name) == name
    share = candidate.share[candidate.select(name, "treatment")]
    assert abs(sum(numbers) - 1) < 2e-3, (name, numbers)
    for part, x in enumerate(numbers):
        expect(f"{name} part {part}", x, mean(share[..., part]))
        checked += 1

for result, suffix in ((base, "b"), (candidate, "c")):
    start = page.index(f'aria-labelledby="causes{suffix}-t')
    n_layers = result.cause.shape[1]
    for l, (_, numbers) in enumerate(rows_after(start, n_layers)):
        per_head = [[mean(result.cause[:, l, h, :, k]) for k in range(5)] for h in range(result.cause.shape[2])]
        for k, found in enumerate(numbers):
            expect(f"causes{suffix} layer {l} {LABELS[k]}", found, mean([x[k] for x in per_head]))
            checked += 1
    start = page.index(f'aria-labelledby="mapcause{suffix}-t')
    table = page[start : page.index("</table>", start)]
    for l, row in enumerate(re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]):
        for h, found in enumerate(re.findall(r"<td>(.*?)</td>", row)):
            codes = result.label[:, l, h][result.label[:, l, h] >= 0]
            most = np.bincount(codes, minlength=7)
            right = LABELS[int(most.argmax())] if 2 * most.max() > len(codes) else "mixed"
            if found != right:
                failures.append(f"label {suffix}, layer {l}, head {h}: {found}, should be {right}")
            checked += 1

ids = set(re.findall(r'<section id="([a-z]+)"', page))
links = set(re.findall(r'href="#([a-z]+)"', page))
if ids != links or not {"gates", "maps", "sharpness", "dose", "position", "parts", "profile", "worst"} <= ids:
    failures.append(f"sections {ids}, links to {links}")
if "<script" in page:
    failures.append("the page holds a script element")
for address in re.findall(r'(?:src|href)="([^"]*)"', page):
    if not address.startswith(("#", "data:")):
        failures.append(f"the page asks for {address}")
print("\n".join(failures) or f"{checked} numbers of the page agree with the results")
sys.exit(1 if failures or checked < 60 else 0)
