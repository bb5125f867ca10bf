"""Puts captures of answered questions and their results side by side in one small table.

usage: measure.py OUT.csv CAPTURE.h5 RESULT.h5 [CAPTURE.h5 RESULT.h5 ...] [--detail 0]

A row is a question about the base text; what happened to it with near misses really inserted stands in the
columns right_N, p_N, mass_N_LAYER_HEAD, and taken_N_LAYER_HEAD for the mass on the inserted facts. Masses are of the asked fact, at the token that says the answer;
tolerance is `distractor_tolerance` of the near misses of that fact, in rows. Empty: undefined.
"""

from __future__ import annotations

import argparse
import csv
from typing import Any

import attnstress
import h5py
import numpy as np


def right(attrs: Any) -> int:
    if "answered_right" in attrs:
        return int(attrs["answered_right"])
    return int(attrs["answer"] == attrs["model_top_token"])


def questions(path: str) -> dict[str, dict[str, Any]]:
    """What the capture says of every sample."""
    found = {}
    with h5py.File(path) as f:
        for sample in f["samples"].values():
            a, roles = dict(sample.attrs), [r.decode() for r in sample["spans/role"]]
            stop = int(sample["spans/stop"][roles.index("gold")])
            base = a.get("variant_of", a["id"])
            number = int(a["id"].rpartition("+")[2]) if "variant_of" in a else 0
            found[a["id"]] = {"checkpoint": str(f.attrs["checkpoint"]), "document": a["cluster"], "base": base,
                              "inserted": number, "question": a.get("question_kind", "needle"),
                              "n_keys": int(a["n_keys"]), "distance": int(a["n_keys"]) - stop,
                              "right": right(a), "p_answer": a["p_answer"], "p_top": a.get("p_top", np.nan)}
    return found


def number(x: float, digits: int = 3) -> str:
    return "" if not np.isfinite(x) else f"{x:.{digits}g}"


def rows(capture: str, result: str, detail: set[int]) -> list[dict[str, Any]]:
    asked, ds = questions(capture), attnstress.open(result)
    ids, spans = [str(s) for s in ds.sample_id.values], [str(s) for s in ds.span.values]
    gold, near = spans.index("gold"), spans.index("distractor")
    heads = [(i, int(layer), h) for i, layer in enumerate(ds.layer_index.values) for h in range(ds.sizes["head"])]
    mass = ds.base_mass.values[:, :, :, 0, gold]
    taken = ds.base_mass.values[:, :, :, 0, spans.index("inserted-fact")] if "inserted-fact" in spans else None
    more = {"margin": ds.base_margin.values[:, :, :, 0, gold],
            "tolerance": ds.base_distractor_tolerance.values[:, :, :, 0, near]}
    half, of_curve = np.full(mass.shape, np.nan), ds.curve_sample.values
    half[of_curve] = np.where(ds.half_dose_censored.values == 0, ds.half_dose.values,
                              np.where(ds.half_dose_censored.values > 0, ds.curve_dose_max.values[:, None, None],
                                       ds.curve_dose_min.values[:, None, None]))
    more["half"] = half
    table: dict[str, dict[str, Any]] = {}
    for s, name in enumerate(ids):
        q = asked[name]
        row, n = table.setdefault(q["base"], {}), q["inserted"]
        if n == 0:
            row.update({k: v for k, v in q.items() if k not in ("base", "inserted", "p_answer", "p_top")})
            row.update(p_answer=number(q["p_answer"]), p_top=number(q["p_top"]))
        else:
            row.update({f"right_{n}": q["right"], f"p_{n}": number(q["p_answer"])})
        for i, layer, h in heads:
            if n == 0 or layer in detail:
                row[f"mass_{layer}_{h}" if n == 0 else f"mass_{n}_{layer}_{h}"] = number(
                    mass[s, i, h], 6 if n == 0 and layer in detail else 3)
            if n == 0 and layer in detail:
                row.update({f"{k}_{layer}_{h}": number(v[s, i, h]) for k, v in more.items()})
            if n > 0 and layer in detail and taken is not None:
                row[f"taken_{n}_{layer}_{h}"] = number(taken[s, i, h])
    return list(table.values())


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("files", nargs="+", help="capture and result, in turn")
    p.add_argument("--detail", default="0", help="layers whose margins, tolerances and half doses are kept")
    a = p.parse_args()
    detail, table = {int(x) for x in a.detail.split(",") if x}, []
    for capture, result in zip(a.files[::2], a.files[1::2], strict=True):
        table += rows(capture, result, detail)
    columns = list(dict.fromkeys(k for row in table for k in row))
    with open(a.out, "w", newline="") as f:
        writer = csv.DictWriter(f, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print(f"{a.out}: {len(table)} questions, {len(columns)} columns")


if __name__ == "__main__":
    main()
