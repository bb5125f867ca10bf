"""Prompts with planted facts, at a token length, for any tokenizer; seeded; text of our own.

    prompts.needle(tokenizer, length=2048, count=8, distractors=4)     one fact, near misses
    prompts.updated(tokenizer, length=2048, count=8, versions=2)       a fact that was replaced
    prompts.duplicated(tokenizer, length=2048, count=8, copies=3)      a fact that is repeated
    prompts.multi_hop(tokenizer, length=2048, count=8)                 two facts that make the answer
    prompts.with_insertions(tokenizer, base, counts=(1, 4))            the same text with near misses
                                                                       really inserted, for `fidelity`

Every prompt ends where the answer is the next word, and knows its spans (roles as in
docs/capture-format.md), its answer and a foil.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import BadInput
from .spans import TextSpan, unmark

OWNERS = ["Adler", "Brandt", "Castell", "Dorn", "Eckart", "Falk", "Gruber", "Hansen", "Ivers",
          "Jansen", "Keller", "Lindner", "Moser", "Nolte", "Ostrow", "Petersen", "Quade", "Ritter",
          "Sander", "Thiel", "Ulrich", "Voss", "Weber", "Zander"]
THINGS = ["cabin", "workshop", "garage", "library", "bakery", "orchard", "studio", "warehouse",
          "greenhouse", "boathouse", "archive", "kitchen", "stable", "chapel", "mill", "office"]
TOWNS = ["Norden", "Elmsford", "Harrow", "Linden", "Marsh", "Oakhurst", "Pinefield", "Ravenna",
         "Stonebridge", "Tilbury", "Westmere", "Ashby", "Calder", "Dunmore", "Fairview", "Glenn"]
WORDS = ["amber", "anchor", "apple", "autumn", "basket", "bridge", "butter", "candle", "carpet",
         "castle", "cherry", "cloud", "copper", "cotton", "desert", "dragon", "falcon", "feather",
         "flower", "forest", "garden", "ginger", "hammer", "harbor", "honey", "island", "jacket",
         "kettle", "ladder", "lemon", "lion", "marble", "meadow", "mirror", "mountain", "needle",
         "ocean", "orange", "paper", "pepper", "pencil", "pillow", "planet", "pocket", "rabbit",
         "ribbon", "river", "rocket", "saddle", "salmon", "shadow", "silver", "spider", "summer",
         "sunset", "temple", "thunder", "ticket", "tiger", "timber", "tunnel", "velvet", "violin",
         "winter"]
FILLER = [
    "The morning train was {a} minutes late and nobody complained.",
    "After lunch the {b} was moved to the other side of the hall.",
    "Somebody had left {a} umbrellas beside the door.",
    "The garden needs rain, but the forecast speaks of wind.",
    "A letter about the {b} came back unopened.",
    "They counted the chairs twice and found {a} of them.",
    "The radio played the same song before and after the news.",
    "On the stairs there was a smell of paint and coffee.",
    "The meeting about the {b} was put off until Thursday.",
    "Children drew {a} fish on the pavement with chalk.",
    "The baker closed early because the flour had run out.",
    "Nothing else happened that evening, as the log says.",
    "The old {b} in the corner was sold for {a} coins.",
    "It took {a} people to carry the table upstairs.",
]
OBJECTS = ["clock", "piano", "curtain", "ladder", "bookcase", "lamp", "notice board", "bicycle"]
SHORT = ["So it was.", "All was quiet.", "Well.", "Good."]

Counter = Callable[[str], int]


@dataclass(frozen=True)
class Prompt:
    """A text, the character spans in it, and what a right answer is. `inserted` are the characters
    [start, stop) that the text has and the prompt named by `variant_of` has not."""

    text: str
    spans: Sequence[TextSpan] = ()
    answer: str | None = None
    foil: str | None = None
    id: str | None = None
    cluster: str | None = None
    variant_of: str | None = None
    inserted: Sequence[tuple[int, int]] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def marked(cls, text: str, **rest: Any) -> Prompt:
        """From a text with marks: "The code of [[gold: room 7 is amber]]."."""
        plain, spans = unmark(text)
        return cls(plain, spans, **rest)


@dataclass
class _Piece:
    """A sentence of the body, with its mark if it is a fact."""

    text: str
    role: str | None = None
    name: str | None = None
    new: bool = False  # inserted into an existing text


def _counter(tokenizer: Any) -> Counter:
    if tokenizer is None:
        raise BadInput("prompts need a tokenizer, or a function that counts the tokens of a text")
    if not hasattr(tokenizer, "encode"):
        return tokenizer
    return lambda text: len(tokenizer.encode(text))


def _fact(owner: str, thing: str, town: str, word: str) -> str:
    return f"The password of {owner}'s {thing} in {town} is {word}."


class _Writer:
    """Random choices of one prompt; equal seeds give equal text."""

    def __init__(self, kind: str, seed: int, index: int):
        self.random = random.Random(f"{kind}/{seed}/{index}")
        self.words = self.random.sample(WORDS, len(WORDS))
        self.key = (self.random.choice(OWNERS), self.random.choice(THINGS), self.random.choice(TOWNS))
        self.used = {self.key}

    def word(self) -> str:
        if not self.words:
            raise BadInput(f"a prompt can hold {len(WORDS)} different passwords; ask for fewer facts")
        return self.words.pop()

    def near_key(self) -> tuple[str, str, str]:
        """A key that differs in one place from the one that is asked for."""
        for _ in range(1000):
            key = list(self.key)
            at = self.random.randrange(3)
            key[at] = self.random.choice((OWNERS, THINGS, TOWNS)[at])
            if tuple(key) not in self.used:
                self.used.add(tuple(key))  # type: ignore[arg-type]
                return tuple(key)  # type: ignore[return-value]
        raise BadInput("no further near miss exists for this fact; ask for fewer distractors")

    def filler(self) -> str:
        r = self.random
        return r.choice(FILLER).format(a=r.randint(3, 60), b=r.choice(OBJECTS))

    def near_miss(self, number: int, new: bool = False) -> _Piece:
        name = f"{'new' if new else 'near'}{number}"
        return _Piece(_fact(*self.near_key(), self.word()), "distractor", name, new)


def _question(key: tuple[str, str, str]) -> _Piece:
    owner, thing, town = key
    return _Piece(f"The password of {owner}'s {thing} in {town} is", "question", "question")


HEAD = "These are notes of several people. A question follows at the end."


def _render(pieces: Sequence[_Piece]) -> tuple[str, list[TextSpan], list[tuple[int, int]]]:
    text, spans, inserted = "", [], []
    for piece in pieces:
        start = len(text) + (1 if text else 0)
        text += (" " if text else "") + piece.text
        if piece.role:
            # the last full stop is no part of a fact
            stop = len(text) - 1 if text.endswith(".") else len(text)
            spans.append(TextSpan(piece.name or piece.role, piece.role, start, stop))
        if piece.new:
            inserted.append((start - 1, len(text)))
    return text, spans, inserted


def _place(writer: _Writer, facts: Sequence[_Piece], fillers: Sequence[str], question: _Piece,
           depth: tuple[float, float], ordered: bool) -> list[_Piece]:
    """Facts among fillers, at random places between two depths; kept in order if asked."""
    low, high = (int(round(d * len(fillers))) for d in depth)
    places = [writer.random.randint(low, max(low, high)) for _ in facts]
    if ordered:
        places.sort()
    body: list[_Piece] = []
    for i in range(len(fillers) + 1):
        body += [f for f, p in zip(facts, places) if p == i]
        if i < len(fillers):
            body.append(_Piece(fillers[i]))
    return [_Piece(HEAD), *body, question]


def _fit(writer: _Writer, facts: Sequence[_Piece], question: _Piece, length: int, count: Counter,
         depth: tuple[float, float], ordered: bool = False) -> list[_Piece]:
    """As many fillers as `length` tokens hold, then short ones; never more than `length`."""
    bare = count(_render([_Piece(HEAD), *facts, question])[0])
    if bare > length:
        raise BadInput(f"the facts and the question alone are {bare} tokens; length={length} is too "
                       "short for them")
    fillers: list[str] = []
    room = length - bare
    while room > 0:
        fillers.append(writer.filler())
        room -= max(1, count(" " + fillers[-1]) - 1)
    state = writer.random.getstate()

    def attempt(sentences: Sequence[str]) -> list[_Piece]:
        writer.random.setstate(state)
        return _place(writer, facts, sentences, question, depth, ordered)

    def size(some: Sequence[_Piece]) -> int:
        return count(_render(some)[0])

    pieces = attempt(fillers)
    while fillers and (over := size(pieces) - length) > 0:
        del fillers[-max(1, over // 16) :]
        pieces = attempt(fillers)
    for extra in (*SHORT[:2], *SHORT[2:] * 4):
        longer = [*pieces[:-1], _Piece(extra), pieces[-1]]
        if size(longer) <= length:
            pieces = longer
    return pieces


def _prompt(pieces: Sequence[_Piece], name: str, answer: str, foil: str, kind: str,
            cluster: str | None = None, variant_of: str | None = None) -> Prompt:
    text, spans, inserted = _render(pieces)
    return Prompt(text, spans, answer, foil, name, cluster or name, variant_of, inserted,
                  {"prompt_kind": kind})


def _check(count: int, length: int, depth: tuple[float, float]) -> None:
    if count < 1 or length < 1:
        raise BadInput(f"count={count}, length={length}: both must be at least 1")
    if not 0 <= depth[0] <= depth[1] <= 1:
        raise BadInput(f"depth={depth}: two shares of the text, 0 <= low <= high <= 1")


def _series(kind: str, tokenizer: Any, length: int, count: int, seed: int,
            depth: tuple[float, float], ordered: bool,
            plant: Callable[[_Writer], tuple[list[_Piece], _Piece, str, str]]) -> list[Prompt]:
    _check(count, length, depth)
    counter, result = _counter(tokenizer), []
    for i in range(count):
        writer = _Writer(kind, seed, i)
        facts, question, answer, foil = plant(writer)
        pieces = _fit(writer, facts, question, length, counter, depth, ordered)
        result.append(_prompt(pieces, f"{kind}{i:02d}", answer, foil, kind))
    return result


def needle(tokenizer: Any, length: int = 1024, count: int = 8, distractors: int = 4, seed: int = 0,
           depth: tuple[float, float] = (0.05, 0.95)) -> list[Prompt]:
    """One fact (role gold) and near misses that differ in one word of the key (role distractor)."""

    def plant(w: _Writer) -> tuple[list[_Piece], _Piece, str, str]:
        answer = w.word()
        near = [w.near_miss(i) for i in range(distractors)]
        foil = near[0].text.rsplit(" ", 1)[1][:-1] if near else w.word()
        facts = [_Piece(_fact(*w.key, answer), "gold", "gold"), *near]
        return facts, _question(w.key), answer, foil

    return _series("needle", tokenizer, length, count, seed, depth, False, plant)


def updated(tokenizer: Any, length: int = 1024, count: int = 8, versions: int = 1, seed: int = 0,
            depth: tuple[float, float] = (0.05, 0.95)) -> list[Prompt]:
    """A fact with `versions` older versions (role stale) before the one that counts (role current)."""
    if versions < 1:
        raise BadInput(f"versions={versions}: at least one stale version")

    def plant(w: _Writer) -> tuple[list[_Piece], _Piece, str, str]:
        old = [w.word() for _ in range(versions)]
        answer = w.word()
        owner, thing, town = w.key
        stale = [_Piece(_fact(*w.key, o), "stale", "stale" if i == 0 else f"stale{i}")
                 for i, o in enumerate(old)]
        now = _Piece(f"From today on, the password of {owner}'s {thing} in {town} is {answer}.",
                     "current", "current")
        return [*stale, now], _question(w.key), answer, old[-1]

    return _series("updated", tokenizer, length, count, seed, depth, True, plant)


def duplicated(tokenizer: Any, length: int = 1024, count: int = 8, copies: int = 2, seed: int = 0,
               depth: tuple[float, float] = (0.05, 0.95)) -> list[Prompt]:
    """A fact (role gold, its first statement) and further statements of it (role duplicate)."""
    if copies < 1:
        raise BadInput(f"copies={copies}: at least one copy")

    def plant(w: _Writer) -> tuple[list[_Piece], _Piece, str, str]:
        answer, foil = w.word(), w.word()
        same = _fact(*w.key, answer)
        rest = [_Piece(same, "duplicate", f"copy{i}") for i in range(copies)]
        return [_Piece(same, "gold", "gold"), *rest], _question(w.key), answer, foil

    return _series("duplicated", tokenizer, length, count, seed, depth, True, plant)


def multi_hop(tokenizer: Any, length: int = 1024, count: int = 8, distractors: int = 2, seed: int = 0,
              depth: tuple[float, float] = (0.05, 0.95)) -> list[Prompt]:
    """Whose place it is stands in one fact (role bridge), the password in another (role gold)."""

    def plant(w: _Writer) -> tuple[list[_Piece], _Piece, str, str]:
        owner, thing, town = w.key
        guest = w.random.choice([o for o in OWNERS if o != owner])
        answer = w.word()
        bridge = _Piece(f"This year {guest} rents the {thing} of {owner} in {town}.", "bridge", "bridge")
        near = [w.near_miss(i) for i in range(distractors)]
        foil = near[0].text.rsplit(" ", 1)[1][:-1] if near else w.word()
        question = _Piece(f"The password of the place that {guest} rents is", "question", "question")
        facts = [bridge, _Piece(_fact(*w.key, answer), "gold", "gold"), *near]
        return facts, question, answer, foil

    return _series("multihop", tokenizer, length, count, seed, depth, False, plant)


def with_insertions(tokenizer: Any, length: int = 1024, count: int = 8,
                    counts: Sequence[int] = (1, 4), distractors: int = 4, seed: int = 0,
                    depth: tuple[float, float] = (0.05, 0.95)) -> list[Prompt]:
    """`needle` prompts (the base), each followed by itself with 1, 4, ... further near misses put
    into the text right after the gold fact: `needle00`, `needle00+1`, `needle00+4`."""
    if not counts or min(counts) < 1:
        raise BadInput(f"counts={tuple(counts)}: numbers of inserted facts, at least 1 each")
    result = []
    for i, base in enumerate(needle(tokenizer, length, count, distractors, seed, depth)):
        result.append(base)
        gold = next(s for s in base.spans if s.role == "gold")
        for number in counts:
            result.append(_inserted(base, gold.stop + 1, number, seed, i))
    return result


def _inserted(base: Prompt, at: int, number: int, seed: int, index: int) -> Prompt:
    """More near misses at character `at`, the same ones whatever the number."""
    writer = _Writer("needle", seed, index)
    taken = {w for w in WORDS if f" is {w}." in base.text}
    writer.words = [w for w in writer.words if w not in taken]
    new: list[_Piece] = []
    while len(new) < number:
        piece = writer.near_miss(len(new), new=True)
        if piece.text.split(" is ")[0] not in base.text:
            new.append(piece)
    block = "".join(" " + p.text for p in new)
    spans = [s if s.start < at else TextSpan(s.name, s.role, s.start + len(block), s.stop + len(block))
             for s in base.spans]
    start = at
    for piece in new:
        spans.append(TextSpan(piece.name or "new", "distractor", start + 1, start + len(piece.text)))
        start += len(piece.text) + 1
    return Prompt(base.text[:at] + block + base.text[at:], spans, base.answer, base.foil,
                  f"{base.id}+{number}", base.cluster, base.id, [(at, at + len(block))],
                  dict(base.attributes))
