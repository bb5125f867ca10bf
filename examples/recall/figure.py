"""The figure of docs/route-and-answer.md as SVG text, from the numbers of study.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import study

STYLE = ("text{fill:#1b2733}.mute{fill:#5b6b7a}.bg{fill:#fff}.axis{stroke:#5b6b7a;stroke-width:1;fill:none}"
         ".g{fill:#0b6e4f}.x{fill:#c2571a}.lg{stroke:#0b6e4f;stroke-width:2.5;fill:none}"
         ".lr{stroke:#1b2733;stroke-width:2.5;fill:none}.lt{stroke:#c2571a;stroke-width:2.5;stroke-dasharray:6 4;fill:none}"
         "@media (prefers-color-scheme: dark){text{fill:#e7edf3}.mute{fill:#9fb0bf}.bg{fill:#11181f}.g{fill:#3fbf92}"
         ".x{fill:#f08a4b}.lg{stroke:#3fbf92}.lr{stroke:#e7edf3}.lt{stroke:#f08a4b}.axis{stroke:#9fb0bf}}")
WIDTH, HEIGHT = 860, 400


class Drawing:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "", more: str = "") -> None:
        name = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{name}{" " + more if more else ""}>{words}</text>')

    def dot(self, x: float, y: float, kind: str) -> None:
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" class="{kind}" fill-opacity="0.65"/>')

    def line(self, points: list[tuple[float, float]], kind: str) -> None:
        self.parts.append(f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')


def strips(d: Drawing, q: study.Questions, left: float, top: float, name: str) -> None:
    """Mass on the asked fact, right answers above wrong ones; heights spread by order in the table."""
    score, right = study.best(q), q.column("right")
    d.text(left, top - 8, f"checkpoint {name}: AUC {study.auc(score, right):.2f}", "", 'font-weight="600"')
    for row, (value, kind, word) in enumerate(((1, "g", "right"), (0, "x", "wrong"))):
        y = top + 4 + row * 50
        d.text(left - 8, y + 24, word, kind, 'text-anchor="end"')
        some = score[right == value]
        for i, m in enumerate(some):
            d.dot(left + 250 * m, y + 6 + (i * 37 % 31), kind)
    d.line([(left, top + 104), (left + 250, top + 104)], "axis")
    for t in (0, 0.5, 1):
        d.text(left + 250 * t, top + 120, f"{t:g}", "mute", 'text-anchor="middle" font-size="11"')


def course(d: Drawing, q: study.Questions, left: float, top: float, name: str) -> None:
    """Share of answers still right, and still foretold right, over the number inserted."""
    share = study.still_right(q, name)
    numbers, w, h = study.starts_right(q, name)[1].inserted, 190, 230
    xs = np.linspace(0, w, len(numbers))
    d.text(left, top - 8, f"checkpoint {name}", "", 'font-weight="600"')
    d.line([(left, top), (left, top + h), (left + w, top + h)], "axis")
    for x, n in zip(xs, numbers):
        d.text(left + x, top + h + 15, str(n), "mute", 'text-anchor="middle" font-size="11"')
    for t in (0, 0.5, 1):
        d.text(left - 6, top + h * (1 - t) + 4, f"{t:.0%}", "mute", 'text-anchor="end" font-size="11"')
    for key, kind in (("law", "lt"), ("route", "lg"), ("real", "lr")):
        d.line([(left + x, top + h * (1 - y)) for x, y in zip(xs, share[key])], kind)


def draw(q: study.Questions) -> str:
    d = Drawing()
    d.text(24, 26, "Where the route holds, the answer is right", "", 'font-weight="600" font-size="14"')
    d.text(24, 44, "mass on the asked fact, nothing inserted", "mute", 'font-size="12"')
    for i, c in enumerate(("short", "long")):
        strips(d, q.where(lambda r, c=c: r["checkpoint"] == c), 64, 80 + 160 * i, c)
    d.text(384, 26, "The base's tolerance does not see the loss coming", "", 'font-weight="600" font-size="14"')
    d.text(384, 44, "answers still right, by number of near-miss facts really inserted", "mute", 'font-size="12"')
    for i, c in enumerate(("short", "long")):
        course(d, q, 412 + 232 * i, 80, c)
    for i, (kind, words) in enumerate((("lr", "the model's answer"), ("lg", "foretold from the mass held with them"),
                                       ("lt", "foretold from distractor_tolerance of the base"))):
        x, y = (412, 358 + 18 * i)
        d.line([(x, y - 4), (x + 30, y - 4)], kind)
        d.text(x + 38, y, words, "", 'font-size="12"')
    head: list[Any] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" '
        'font-size="13" role="img" aria-labelledby="t d">', '<title id="t">Route and answer</title>',
        '<desc id="d">Left: mass on the asked fact of right and wrong answers, two checkpoints. Right: share of '
        'answers still right as near-miss facts are inserted, beside what the mass really held and what the '
        'tolerance of the base foretell.</desc>', f"<style>{STYLE}</style>",
        f'<rect class="bg" width="{WIDTH}" height="{HEIGHT}"/>']
    return "\n".join([*head, *d.parts, "</svg>", ""])
