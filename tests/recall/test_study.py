"""docs/route-and-answer.md against examples/recall/study.csv; shares no code with study.py.

AUC by counting pairs (Mann-Whitney), heads chosen by plain loops, flips and shares by hand; then study.py must
write the very page and figure that are committed. Usage: test_study.py SOURCE
"""
import csv
import json
import math
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

SOURCE = Path(sys.argv[1])
EXAMPLE, PAGE, FIGURE = SOURCE / "examples/recall", SOURCE / "docs/route-and-answer.md", SOURCE / "docs/route-and-answer.svg"
NUMBERS = (1, 2, 4, 8, 16, 32, 64)


def load(name):
    with open(EXAMPLE / name, newline="") as f:
        return list(csv.DictReader(f))


def value(row, column):
    return float(row[column]) if row.get(column) else math.nan


def mann_whitney(score, right):
    """U / (n m): pairs of a right and a wrong answer in which the right one scores higher, ties one half."""
    good = np.array([s for s, r in zip(score, right) if r])[:, None]
    bad = np.array([s for s, r in zip(score, right) if not r])[None]
    return float(((good > bad) + 0.5 * (good == bad)).mean())


def heads_without(rows, document, least=0.1):
    """Heads by their mean mass over the other documents: those that retrieve, the largest first."""
    columns = [c for c in rows[0] if re.fullmatch(r"mass_\d+_\d+", c)]
    rest = [r for r in rows if r["document"] != document]
    mean = {c[5:]: sum(float(r[c]) for r in rest) / len(rest) for c in columns}
    return sorted((h for h in mean if mean[h] >= least), key=mean.get, reverse=True)


def holder_of(row, heads):
    """The head with most mass in this question; of equals the first."""
    return max(sorted(heads), key=lambda h: value(row, f"mass_{h}"))


def cell(page, row, column):
    line = next(x for x in page.splitlines() if x.startswith("| " + row))
    return line.strip("| ").split(" | ")[column]


class Study(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = PAGE.read_text()
        table = load("study.csv")
        cls.rows = {c: [r for r in table if r["checkpoint"] == c] for c in ("short", "long")}
        cls.heads = {c: {d: heads_without(rows, d) for d in {r["document"] for r in rows}} for c, rows in cls.rows.items()}

    def both(self, row, compute):
        """The first number of the row's cells is the computed one."""
        for column, (c, rows) in enumerate(self.rows.items(), 1):
            shown = float(cell(self.page, row, column).split()[0])
            self.assertAlmostEqual(shown, compute(rows, self.heads[c]), delta=0.005001, msg=f"{row}, {c}")

    def starts_right(self, checkpoint):
        return [r for r in self.rows[checkpoint] if r["question"] == "plain" and r["right"] == "1"]

    def test_the_table_is_what_the_page_says(self):
        for c, rows in self.rows.items():
            self.assertEqual(len(rows), 200)
            self.assertEqual(len({r["document"] for r in rows}), 100)
            self.assertTrue(all({h[0] for h in heads} == {"0"} and len(heads) == 4 for heads in self.heads[c].values()))
            for r in rows:  # near misses can only be seen in the plain question
                self.assertEqual(r["question"] == "plain", r["right_64"] != "")
        right = [sum(r["right"] == "1" for r in rows) for rows in self.rows.values()]
        self.assertEqual([cell(self.page, "right answers", i) for i in (1, 2)], [f"{n} of 200" for n in right])

    def test_auc_by_counting_pairs(self):
        def area(score):
            return lambda rows, heads: mann_whitney([score(r, heads[r["document"]]) for r in rows],
                                                    [r["right"] == "1" for r in rows])

        def holder(what):
            return area(lambda r, hs: value(r, f"{what}_{holder_of(r, hs)}"))

        for what in ("mass", "margin"):
            self.both(f"{what}, most", area(lambda r, hs, w=what: max(value(r, f"{w}_{h}") for h in hs)))
            self.both(f"{what}, the one", area(lambda r, hs, w=what: value(r, f"{w}_{hs[0]}")))
        most = area(lambda r, hs: max(value(r, f"mass_{h}") for h in hs))
        near, sure = area(lambda r, hs: -float(r["distance"])), area(lambda r, hs: float(r["p_top"]))
        for name, rival in (("nearness", near), ("largest probability", sure)):
            self.both(f"difference: mass, most of the retrieving heads, over {name}",
                      lambda rows, heads, other=rival: most(rows, heads) - other(rows, heads))
        self.both("not a route: nearness", near)
        self.both("not a route: the model's", sure)
        self.both("`distractor_tolerance`, head", holder("tolerance"))
        self.both("`half_dose` of made near copies, head", holder("half"))

    def test_answers_left(self):
        for c in self.rows:
            some = self.starts_right(c)
            for column, n in enumerate(NUMBERS, 1):
                share = 100 * sum(r[f"right_{n}"] == "1" for r in some) / len(some)
                self.assertAlmostEqual(float(cell(self.page, f"{c} |", column)[:-1]), share, delta=0.5001)

    def test_who_flips_first(self):
        """Harrell's C by a double loop."""
        score = {"`distractor_tolerance` alone": "tolerance", "`half_dose` of made near copies alone": "half",
                 "mass alone": "mass"}
        for column, c in enumerate(self.rows, 1):
            some = self.starts_right(c)
            flip = [next((n for n in NUMBERS if r[f"right_{n}"] == "0"), math.inf) for r in some]
            self.assertEqual(cell(self.page, "of these wrong", column), str(sum(f < math.inf for f in flip)))
            for name, what in score.items():
                x = []
                for r in some:
                    h = holder_of(r, self.heads[c][r["document"]])
                    x.append(value(r, f"{what}_{h}"))
                points, pairs = 0.0, 0
                for i in range(len(some)):
                    for j in range(len(some)):
                        # a flip at the last number and none at all cannot be told apart by the largest number tried
                        if flip[i] < min(flip[j], NUMBERS[-1]):
                            pairs += 1
                            points += (x[i] < x[j]) + 0.5 * (x[i] == x[j])
                self.assertAlmostEqual(float(cell(self.page, name, column).split()[0]), points / pairs, delta=0.005001)

    def test_the_law_and_the_loss(self):
        for column, c in enumerate(self.rows, 1):
            told, lost = [], []
            for r in self.starts_right(c):
                hs = self.heads[c][r["document"]]
                before = max(value(r, f"mass_{h}") for h in hs)
                told.append(math.log(max(value(r, f"mass_{h}") / (1 + 256 / value(r, f"tolerance_{h}")) for h in hs) / before))
                lost.append(math.log(max(value(r, f"mass_64_{h}") for h in hs) / before))
            shown = [float(x) for x in cell(self.page, "log mass lost with 64", column).split(", ")]
            for a, b in zip(shown, (np.median(told), np.median(lost))):
                self.assertAlmostEqual(a, b, delta=0.005001)

    def test_numbers_in_the_text_are_those_of_the_tables(self):
        def pair(row, part=0):
            return [re.split(r"[ ,]+", cell(self.page, row, i))[part].lstrip("-") for i in (1, 2)]

        text = " ".join(self.page.split())
        for words, row, part in (
                ("with an AUC of {} and {}", "mass, most", 0),
                ("parts them with {} and {}", "not a route: the model's own largest probability | 0", 0),
                ("a loss of {} and {} nats", "log mass lost with 64", 0),
                ("the model lost {} and {}", "log mass lost with 64", 1),
                ("which answer breaks first ({} and {})", "`distractor_tolerance` alone", 0),
                ("does so better ({} and {})", "mass alone", 0),
                ("about the answer now** (AUC {} and {})", "`half_dose` of made near copies, head", 0),
                ("does follow the answer** (AUC {} and {}", "mass really held with 64", 0),
                ("one row weighs {} and {} times", "weight of one inserted row, 4", 0),
                ("with 64 it is {} and {} times", "weight of one inserted row, 64", 0),
                ("they weigh {} and {} times", "mean weight of one near miss", 0),
                ("{} and {} questions at risk", "answered right with nothing", 0)):
            self.assertIn(words.format(*pair(row, part)), text)

    def test_fidelity_is_what_the_program_printed(self):
        reports = [json.loads((EXAMPLE / f"fidelity-{c}.json").read_text()) for c in self.rows]
        self.assertEqual([r["pairs"] for r in reports], [700, 700])
        for i, report in enumerate(reports):
            for layer in report["layers"]:
                for name, q in layer["quantities"].items():
                    shown = cell(self.page, f"{layer['layer']} | `{name}`", 2 + i).split(", ")
                    for a, key in zip(shown, ("rank_correlation", "slope", "mean_error")):
                        self.assertAlmostEqual(float(a), q[key], delta=0.005001)

    def test_page_and_figure_are_rebuilt_from_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            page, figure = Path(folder) / "page.md", Path(folder) / "figure.svg"
            blank = re.sub(r"(<!-- table \w+ -->\n).*?(\n<!-- end -->)", r"\1\2", self.page, flags=re.DOTALL)
            self.assertNotIn("| right answers", blank)
            page.write_text(blank)
            subprocess.run([sys.executable, "-B", EXAMPLE / "study.py", "--page", page, "--figure", figure], check=True)
            self.assertEqual(page.read_text(), self.page)
            self.assertEqual(figure.read_text(), FIGURE.read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
