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


def expect(what, found, right):
    same = (math.isnan(found) and math.isnan(right)) or abs(found - right) <= 6e-4 * abs(right) + 1e-12
    if not same:
        failures.append(f"{what}: the page says {found}, should be {right}")


def number(cell):
    text = html.unescape(re.sub("<[^>]*>", "", cell)).replace("\u2212", "-").replace("\u221e", "inf")
    return math.nan if text.strip() == "\u2013" else float(text)


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
        self.share = file["delta_share"][:].astype(np.float64)
        self.mass = file["base_mass"][..., target].astype(np.float64)

    def select(self, name, arm):
        return self.ok & (self.name == name) & (self.arm == arm)


candidate, base = Result(sys.argv[2]), Result(sys.argv[3])


def loss_map(result):
    chosen = result.ok & (result.arm == "treatment") & (result.pair >= 0)
    cells = result.shift[chosen]
    return np.array([[mean(cells[:, l, h]) for h in range(cells.shape[2])] for l in range(cells.shape[1])])


def mass_map(result):
    with np.errstate(divide="ignore"):
        logs = np.log(result.mass)
    return np.array([[math.exp(mean(logs[:, l, h])) for h in range(logs.shape[2])] for l in range(logs.shape[1])])


checked = 0
for identity, make in (("mapshift", loss_map), ("mapmass", mass_map)):
    maps = {"b": make(base), "c": make(candidate)}
    maps["d"] = maps["c"] - maps["b"]
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
        assert len(numbers) == 4, (name, numbers)
        for label, x, y in zip(("treatment", "control", "worst", "baseline"), numbers, right):
            expect(f"{name} at {dose}, {label}", x, math.exp(y))
            checked += 1

start = page.index('aria-labelledby="parts-t')
for name, (found_name, numbers) in zip(names, rows_after(start, len(names))):
    assert html.unescape(found_name) == name
    share = candidate.share[candidate.select(name, "treatment")]
    for part, x in enumerate(numbers):
        expect(f"{name} part {part}", x, mean(share[..., part]))
        checked += 1

if "<script" in page:
    failures.append("the page holds a script element")
for address in re.findall(r'(?:src|href)="([^"]*)"', page):
    if not address.startswith(("#", "data:")):
        failures.append(f"the page asks for {address}")
print("\n".join(failures) or f"{checked} numbers of the page agree with the results")
sys.exit(1 if failures or checked < 60 else 0)
