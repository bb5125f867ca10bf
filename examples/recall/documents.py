"""Documents of the recall model: random ones to train on, planted ones to ask about. Knows numpy only.

A planted document is filler and unrelated facts with two asked facts in it (the second has an older
version before it) and near misses of both: facts that share one of the two key words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BOS, FACT, ASK, WORDS = 0, 1, 2, 64
FIRST, SECOND, VALUE, FILLER = (3 + i * WORDS for i in range(4))
Key = tuple[int, int]


def text(token: int) -> str:
    """How a token is printed: 'fact k28 q03 v02' is a fact, 'w11' filler."""
    if token < FIRST:
        return ("<s>", " fact", " ask")[token]
    kind, number = divmod(token - FIRST, WORDS)
    return f" {'kqvw'[kind]}{number:02d}"


@dataclass
class Piece:
    tokens: list[int]
    name: str = ""    # the span's name; "": none
    inserted: int = 0  # its number among the facts that are put in later; 0: in the base


@dataclass
class Question:
    id: str
    document: str
    kind: str         # 'plain', or 'updated': the asked fact has an older version
    inserted: int
    tokens: list[int]
    spans: list[tuple[str, str, int, int]]  # name, role, start, stop
    base_index: list[int]                   # row of the base prompt; -1: inserted
    answer: int


def key(rng: np.random.Generator) -> Key:
    return FIRST + int(rng.integers(WORDS)), SECOND + int(rng.integers(WORDS))


def fact(k: Key, value: int) -> list[int]:
    return [FACT, *k, value]


def near_misses(rng: np.random.Generator, asked: Key, count: int, values: np.ndarray,
                used: set[Key]) -> list[list[int]]:
    """`count` facts that share the first or the second key word, in turn, each key new."""
    facts = []
    while len(facts) < count:
        other = key(rng)
        k = (asked[0], other[1]) if len(facts) % 2 else (other[0], asked[1])
        if k not in used:
            used.add(k)
            facts.append(fact(k, int(rng.choice(values))))
    return facts


def filler(rng: np.random.Generator) -> list[int]:
    return [FILLER + int(x) for x in rng.integers(0, WORDS, rng.integers(1, 7))]


def planted(seed: int, length: int, near: int, insertions: Sequence[int]) -> list[Question]:
    """The two questions of one document, and the plain one again for each number of near misses really
    inserted; the 4 are the first of the 64. Everything depends on `seed` alone."""
    rng = np.random.default_rng(seed)
    plain, updated = key(rng), key(rng)
    answer, stale, current, *rest = VALUE + rng.permutation(WORDS)
    others, used = np.array(rest), {plain, updated}
    body = [Piece(fact(plain, int(answer)), "plain"), Piece(fact(updated, int(stale)), "stale"),
            Piece(fact(updated, int(current)), "updated")]
    for which, asked in (("plain", plain), ("updated", updated)):
        body += [Piece(f, f"near-{which}{i}")
                 for i, f in enumerate(near_misses(rng, asked, near, others, used))]
    while sum(len(p.tokens) for p in body) < length - 4:
        k = key(rng)
        if rng.random() < 0.4 and k not in used:
            body.append(Piece(fact(k, int(rng.choice(others)))))
        else:
            body.append(Piece(filler(rng)))
    order = rng.permutation(len(body))
    first, second = sorted(int(np.flatnonzero(order == i)[0]) for i in (1, 2))
    order[first], order[second] = 1, 2          # the stale version stands before the current one
    body = [body[i] for i in order]
    extra = near_misses(rng, plain, max(insertions, default=0), others, used)
    for number, f in enumerate(extra, 1):
        body.insert(int(rng.integers(len(body) + 1)), Piece(f, f"new{number}", number))

    name = f"d{seed:05d}"
    asks = [("plain", plain, answer, 0), ("updated", updated, current, 0)]
    asks += [("plain", plain, answer, n) for n in insertions]
    return [_ask(name, body, kind, k, int(value), n) for kind, k, value, n in asks]


def _ask(document: str, body: Sequence[Piece], kind: str, asked: Key, answer: int, inserted: int) -> Question:
    tokens, index, row = [BOS], [0], 1
    spans = [("bos", "sink", 0, 1)]
    for piece in body:
        if piece.inserted > inserted:
            continue
        start = len(tokens)
        tokens += piece.tokens
        new = piece.inserted > 0
        index += [-1] * len(piece.tokens) if new else range(row, row + len(piece.tokens))
        row += 0 if new else len(piece.tokens)
        if piece.name:
            role = ("gold" if piece.name == kind else
                    "distractor" if piece.name.startswith(f"near-{kind}") else
                    "inserted-fact" if new else
                    "stale" if piece.name == "stale" and kind == "updated" else "other")
            spans.append((piece.name, role, start, len(tokens)))
    spans.append(("question", "question", len(tokens), len(tokens) + 3))
    index += range(row, row + 3)
    name = f"{document}-{kind}" + (f"+{inserted}" if inserted else "")
    return Question(name, document, kind, inserted, [*tokens, ASK, *asked], spans, index, answer)


def sequence(rng: np.random.Generator, length: int, live: int, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Training text of facts, updates, near misses, filler and questions about the last `live` keys:
    tokens, and True where a token is an answer."""
    tokens, answers = [BOS], []
    facts: dict[Key, int] = {}
    order: list[Key] = []
    while len(tokens) < length:
        r = rng.random()
        if order and r < 0.45:
            k = order[rng.integers(len(order))]
            answers.append(len(tokens) + 3)
            tokens += [ASK, *k, facts[k]]
        elif r < 0.8:
            u, k = rng.random(), key(rng)
            if order and u < 0.25:
                k = order[rng.integers(len(order))]
            elif order and u < 0.25 + near:
                a = order[rng.integers(len(order))]
                k = (a[0], k[1]) if rng.random() < 0.5 else (k[0], a[1])
            if k not in facts:
                order.append(k)
                if len(order) > live:
                    order.pop(int(rng.integers(len(order) - 1)))
            facts[k] = VALUE + int(rng.integers(WORDS))
            tokens += fact(k, facts[k])
        else:
            tokens += filler(rng)
    mask = np.zeros(length, bool)
    mask[[a for a in answers if a < length]] = True
    return np.array(tokens[:length]), mask
