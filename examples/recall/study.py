"""Does a route predict the answer? Statistics, tables and figure from the measured numbers alone.

usage: study.py [--page PAGE.md] [--figure FIGURE.svg]     without options: prints the tables

Reads study.csv and gemma.csv beside it (measure.py), needs numpy only. `--page` puts the tables between their
marks into the page.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESAMPLES, SEED = 2000, 20261130
LEAST_MASS = 0.1  # a head retrieves when it holds this much of the asked fact, on average over other documents
ROWS_PER_FACT = 4
Array = np.ndarray[Any, Any]


class Questions:
    """The rows of one table as columns of numbers; NaN where a cell is empty."""

    def __init__(self, rows: list[dict[str, str]]):
        self.rows = rows
        self.document = np.array([r["document"] for r in rows])
        self.heads = [m[1] for c in rows[0] if (m := re.fullmatch(r"mass_(\d+_\d+)", c))]
        self.inserted = sorted(int(c[6:]) for c in rows[0] if c.startswith("right_"))

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Array:
        return np.array([float(r[name]) if r.get(name) else np.nan for r in self.rows])

    def per_head(self, what: str) -> Array:
        """[questions, heads]"""
        return np.stack([self.column(f"{what}_{h}") for h in self.heads], 1)

    def where(self, keep: Callable[[dict[str, str]], bool]) -> Questions:
        return Questions([r for r in self.rows if keep(r)])


def read(path: Path) -> Questions:
    with open(path, newline="") as f:
        return Questions(list(csv.DictReader(f)))


def others(q: Questions) -> list[tuple[Array, Array]]:
    """Per document: its rows, and the rows of all other documents."""
    return [(q.document == d, q.document != d) for d in np.unique(q.document)]


def retrieving(q: Questions) -> Array:
    """[questions, heads]: which heads retrieve, told without the question's own document."""
    mass, chosen = q.per_head("mass"), np.zeros((len(q), len(q.heads)), bool)
    for own, rest in others(q):
        mean = mass[rest].mean(0)
        chosen[own] = mean >= LEAST_MASS if (mean >= LEAST_MASS).any() else mean == mean.max()
    return chosen


def best(q: Questions, what: str = "mass") -> Array:
    """The largest over the retrieving heads."""
    return np.where(retrieving(q), q.per_head(what), -np.inf).max(1)


def single(q: Questions, what: str = "mass") -> Array:
    """The value of the one head that holds most of the asked fact in the other documents."""
    mass, value, out = q.per_head("mass"), q.per_head(what), np.full(len(q), np.nan)
    for own, rest in others(q):
        out[own] = value[own][:, mass[rest].mean(0).argmax()]
    return out


def of_holder(q: Questions, what: str) -> Array:
    """The value of the retrieving head that holds most of the asked fact in this very question."""
    head = np.where(retrieving(q), q.per_head("mass"), -np.inf).argmax(1)
    return q.per_head(what)[np.arange(len(q)), head]


def auc(score: Array, right: Array) -> float:
    """Area under the curve of hits against false alarms, equal scores as one step."""
    if right.all() or not right.any():
        return float("nan")
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)
    hits = np.append(0, np.cumsum(right[order] == 1)[last]) / (right == 1).sum()
    alarms = np.append(0, np.cumsum(right[order] == 0)[last]) / (right == 0).sum()
    return float(np.sum(np.diff(alarms) * (hits[1:] + hits[:-1]) / 2))


def concordance(score: Array, flip: Array, seen: Array) -> float:
    """Harrell's C: of two questions of which the first is known to flip earlier, how often does the score say
    so? Equal scores count one half. seen: the flip was seen; else it lies above `flip`."""
    earlier = (flip[:, None] < flip[None]) & seen[:, None]
    if not earlier.any():
        return float("nan")
    agree = (score[:, None] < score[None]) + 0.5 * (score[:, None] == score[None])
    return float(agree[earlier].mean())


def interval(document: Array, statistic: Callable[[Array], float]) -> tuple[float, float]:
    """95 % percentile bootstrap over documents; statistic takes row numbers."""
    rng, names = np.random.default_rng(SEED), np.unique(document)
    rows = [np.flatnonzero(document == d) for d in names]
    values = [statistic(np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))]))
              for _ in range(RESAMPLES)]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def with_interval(q: Questions, statistic: Callable[[Array], float]) -> str:
    low, high = interval(q.document, statistic)
    return f"{statistic(np.arange(len(q))):.2f} [{low:.2f}, {high:.2f}]"


def auc_cell(q: Questions, score: Array, right: Array) -> str:
    return with_interval(q, lambda i: auc(score[i], right[i]))


def difference_cell(q: Questions, score: Array, rival: Array, right: Array) -> str:
    return with_interval(q, lambda i: auc(score[i], right[i]) - auc(rival[i], right[i]))


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(x) + " |" for x in lines)


# 1. The route of a question against its own answer

SCORES: dict[str, Callable[[Questions], Array]] = {
    "mass, most of the retrieving heads": best,
    "mass, the one head chosen": single,
    "margin, most of the retrieving heads": lambda q: best(q, "margin"),
    "margin, the one head chosen": lambda q: single(q, "margin"),
    "`distractor_tolerance`, head that holds most": lambda q: of_holder(q, "tolerance"),
    "`half_dose` of made near copies, head that holds most": lambda q: of_holder(q, "half"),
    "not a route: nearness of the fact": lambda q: -q.column("distance"),
    "not a route: the model's own largest probability": lambda q: q.column("p_top"),
}


def answers_table(q: Questions) -> str:
    parts = [q.where(lambda r, c=c: r["checkpoint"] == c) for c in ("short", "long")]
    rows = [["right answers", *(f"{int(p.column('right').sum())} of {len(p)}" for p in parts)]]
    for name, score in SCORES.items():
        rows.append([name, *(auc_cell(p, score(p), p.column("right")) for p in parts)])
    for name, rival in (("nearness", lambda p: -p.column("distance")), ("largest probability", lambda p: p.column("p_top"))):
        rows.append([f"difference: mass, most of the retrieving heads, over {name}",
                     *(difference_cell(p, best(p), rival(p), p.column("right")) for p in parts)])
    return markdown(["AUC of right against wrong", "short", "long"], rows)


# 2. Does the base foresee the flip?


def flips(q: Questions) -> tuple[Array, Array]:
    """First number inserted at which the answer is wrong, or the largest number tried; and whether seen."""
    wrong = np.stack([q.column(f"right_{n}") == 0 for n in q.inserted], 1)
    seen = wrong.any(1)
    return np.where(seen, np.array(q.inserted)[wrong.argmax(1)], q.inserted[-1]), seen


def law(q: Questions, n: int) -> Array:
    """Mass foretold with n near misses more: m / (1 + n / tolerance), most over the retrieving heads."""
    mass = q.per_head("mass") / (1 + n * ROWS_PER_FACT / q.per_head("tolerance"))
    return np.where(retrieving(q) & np.isfinite(mass), mass, -np.inf).max(1)


def mass_at(q: Questions, n: int) -> Array:
    """Mass really held with n inserted, most over the retrieving heads."""
    mass = q.per_head(f"mass_{n}")
    return np.where(retrieving(q) & np.isfinite(mass), mass, -np.inf).max(1)


def threshold(score: Array, right: Array) -> float:
    """The cut that is right most often; the middle of the gap, the lowest of equals."""
    s = np.unique(score)
    cuts = (s[1:] + s[:-1]) / 2
    return float(cuts[np.argmax([((score >= c) == (right == 1)).mean() for c in cuts])])


def threshold_of_others(q: Questions) -> dict[str, float]:
    """Per document, the mass that best parts right from wrong in the base questions of all others."""
    score, right = best(q), q.column("right")
    return {q.document[own][0]: threshold(score[rest], right[rest]) for own, rest in others(q)}


def starts_right(q: Questions, checkpoint: str) -> tuple[Questions, Questions]:
    """All questions of a checkpoint, and the plain ones that are answered right before anything is inserted."""
    mine = q.where(lambda r: r["checkpoint"] == checkpoint)
    return mine, mine.where(lambda r: r["question"] == "plain" and r["right"] == "1")


def foretold(q: Questions, cut: Array, mass: Callable[[Questions, int], Array]) -> tuple[Array, Array]:
    """First number at which the mass falls below the cut, or the largest tried; and whether it does."""
    below = np.stack([mass(q, n) < cut for n in q.inserted], 1)
    seen = below.any(1)
    return np.where(seen, np.array(q.inserted)[below.argmax(1)], q.inserted[-1]), seen


def still_right(q: Questions, checkpoint: str) -> dict[str, Array]:
    """Per number inserted, the share of answers right at 0 that are right (real), that are foretold right from
    the mass really held (route), and from the base's tolerance (law)."""
    mine, some = starts_right(q, checkpoint)
    cuts = threshold_of_others(mine)
    cut = np.array([cuts[d] for d in some.document])
    return {"real": np.array([some.column(f"right_{n}").mean() for n in q.inserted]),
            "route": np.array([(mass_at(some, n) >= cut).mean() for n in q.inserted]),
            "law": np.array([(law(some, n) >= cut).mean() for n in q.inserted])}


def flip_scores(q: Questions, cut: Array) -> dict[str, Array]:
    ratio = np.maximum(best(q) / cut - 1, 0)
    return {
        "`distractor_tolerance` alone": of_holder(q, "tolerance"),
        "`half_dose` of made near copies alone": of_holder(q, "half"),
        "mass alone": best(q),
        "margin alone": best(q, "margin"),
        "mass and tolerance: where m / (1 + n r) crosses the cut": ratio * of_holder(q, "tolerance"),
        "not a route: the model's own largest probability": q.column("p_top"),
    }


def flip_table(q: Questions) -> str:
    cells: dict[str, list[str]] = {}
    for c in ("short", "long"):
        mine, some = starts_right(q, c)
        cuts = threshold_of_others(mine)
        flip, seen = flips(some)
        for name, score in flip_scores(some, np.array([cuts[d] for d in some.document])).items():
            cells.setdefault(name, []).append(
                with_interval(some, lambda i, s=score, f=flip, e=seen: concordance(s[i], f[i], e[i])))
    return markdown(["which of two answers flips first", "short", "long"], [[k, *v] for k, v in cells.items()])


def outcome(q: Questions, flip: Array, seen: Array) -> Array:
    """Steps of the grid; one more than the last when no flip was seen."""
    return np.searchsorted(q.inserted, flip) + ~seen


def counts(q: Questions, checkpoint: str) -> dict[str, str]:
    mine, some = starts_right(q, checkpoint)
    cuts = threshold_of_others(mine)
    cut = np.array([cuts[d] for d in some.document])
    at = outcome(q, *flips(some))
    usual = np.full(len(some), np.bincount(at).argmax())
    wrong = np.stack([some.column(f"right_{n}") == 0 for n in q.inserted], 1)
    back = (np.diff(wrong.astype(int), axis=1) < 0).any(1)
    last = q.inserted[-1]
    shift = {name: np.stack([np.log(mass(some, n) / best(some)) for n in q.inserted], 1)
             for name, mass in (("law", law), ("real", mass_at))}
    taken = np.stack([of_holder(some, f"taken_{n}") for n in q.inserted], 1)
    r_real = taken / (1 - taken) / np.array(q.inserted) / ROWS_PER_FACT
    r_law = 1 / of_holder(some, "tolerance")
    lost = np.log(of_holder(some, f"mass_{last}") / best(some))
    result = {
        "answered right with nothing inserted": str(len(some)),
        f"of these wrong at some number up to {last}": str(int(wrong.any(1).sum())),
        "wrong at some number and right again at a larger one": str(int(back.sum())),
        "median cut: mass below which an answer counts as lost": f"{np.median(cut):.2f}"}
    for name, mass in (("tolerance of the base", law), ("mass really held", mass_at)):
        guess = outcome(q, *foretold(some, cut, mass))
        result[f"{name}: flip foretold exactly, within a factor of two"] = hits(at, guess)
        result[f"{name}: foretold later, earlier than real"] = f"{(guess > at).sum()}, {(guess < at).sum()}"
    result["always the most frequent outcome: exactly, within a factor of two"] = hits(at, usual)
    result[f"log mass lost with {last}, foretold and real (median, nats)"] = (
        f"{np.median(shift['law'][:, -1]):.2f}, {np.median(shift['real'][:, -1]):.2f}")
    result["log mass lost, foretold against real, Spearman over all numbers"] = (
        f"{spearman(shift['law'].ravel(), shift['real'].ravel()):.2f}")
    for i, n in ((q.inserted.index(4), 4), (-1, last)):
        result[f"weight of one inserted row, {n} inserted, over that of one near miss of the base (median)"] = (
            f"{np.median(r_real[:, i] / r_law):.1f}")
    every = 1 / of_holder(mine.where(lambda r: r["question"] == "plain"), "tolerance")
    result["mean weight of one near miss of the base: all plain questions over those answered right"] = (
        f"{every.mean() / r_law.mean():.1f}")
    result[f"loss of the base's holder with {last}: all, and by weight of inserted rows alone (mean, nats)"] = (
        f"{lost.mean():.2f}, {np.log1p(-taken[:, -1]).mean():.2f}")
    result[f"mass really held with {last} against the answer then given, AUC"] = (
        auc_cell(some, mass_at(some, last), some.column(f"right_{last}")))
    return result


def hits(at: Array, guess: Array) -> str:
    return f"{(at == guess).sum()}, {(abs(at - guess) <= 1).sum()} of {len(at)}"


def spearman(x: Array, y: Array) -> float:
    def ranks(v: Array) -> Array:
        _, inverse, count = np.unique(v, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[inverse]

    return float(np.corrcoef(ranks(x), ranks(y))[0, 1])


def counts_table(q: Questions) -> str:
    short, long = counts(q, "short"), counts(q, "long")
    return markdown(["", "short", "long"], [[k, v, long[k]] for k, v in short.items()])


def survival_table(q: Questions) -> str:
    rows = []
    for c in ("short", "long"):
        _, some = starts_right(q, c)
        rows.append([c, *(f"{some.column(f'right_{n}').mean():.0%}" for n in q.inserted)])
    return markdown(["still right with so many inserted", *map(str, q.inserted)], rows)


# 3. Frozen upstream against the model really run, as `attnstress fidelity --json` printed it


def fidelity_table(_: Questions) -> str:
    reports = [json.loads((HERE / f"fidelity-{c}.json").read_text()) for c in ("short", "long")]
    rows = []
    for layers in zip(*(r["layers"] for r in reports)):
        for name in layers[0]["quantities"]:
            cells = [x["quantities"][name] for x in layers]
            rows.append([str(layers[0]["layer"]), f"`{name}`",
                         *(f"{c['rank_correlation']:.2f}, {c['slope']:.2f}, {c['mean_error']:.3f}" for c in cells)])
    return markdown(["layer", "quantity", "short: rho, slope, mean error", "long: rho, slope, mean error"], rows)


TABLES = {"answers": answers_table, "survival": survival_table, "flips": flip_table, "counts": counts_table,
          "fidelity": fidelity_table}


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--csv", type=Path, default=HERE / "study.csv")
    p.add_argument("--page", type=Path)
    p.add_argument("--figure", type=Path)
    a = p.parse_args()
    q = read(a.csv)
    tables = {name: make(q) for name, make in TABLES.items()}
    if a.page:
        text = a.page.read_text()
        for name, table in tables.items():
            mark, end = f"<!-- table {name} -->\n", "\n<!-- end -->"
            start = text.index(mark) + len(mark)
            text = text[:start] + table + text[text.index(end, start):]
        a.page.write_text(text)
    if a.figure:
        import figure

        a.figure.write_text(figure.draw(q))
    if not (a.page or a.figure):
        print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
