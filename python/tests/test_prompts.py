from __future__ import annotations

from typing import Any, Callable

import pytest

from attnstress import prompts
from attnstress.errors import BadInput


class Words:
    """A tokenizer as far as the builders know one: a token per word."""

    def encode(self, text: str) -> list[str]:
        return text.split()


BUILDERS: list[Callable[..., Any]] = [prompts.needle, prompts.updated, prompts.duplicated, prompts.multi_hop]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("length", [150, 1000])
def test_length_spans_and_answer(builder: Callable[..., Any], length: int) -> None:
    made = builder(Words(), length=length, count=3, seed=5)
    assert len({p.text for p in made}) == 3 and len({p.id for p in made}) == 3
    for p in made:
        assert length - 4 <= len(p.text.split()) <= length
        roles = {s.role: p.text[s.start : s.stop] for s in p.spans}
        holds = roles["current"] if builder is prompts.updated else roles["gold"]
        assert holds.endswith(f" is {p.answer}")
        assert p.text.endswith(roles["question"]) and p.text.endswith(" is")
        assert p.foil != p.answer and f" is {p.foil}" in p.text or builder is prompts.duplicated
        names = [s.name for s in p.spans]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("builder", BUILDERS)
def test_seeds(builder: Callable[..., Any]) -> None:
    make = lambda seed: [p.text for p in builder(Words(), length=200, count=2, seed=seed)]
    assert make(1) == make(1) and make(1) != make(2)


def test_near_misses_are_near() -> None:
    for p in prompts.needle(Words(), length=400, count=5, distractors=6):
        key = lambda text: text.split(" is ")[0].split()[3:]
        gold = next(key(p.text[s.start : s.stop]) for s in p.spans if s.role == "gold")
        for s in p.spans:
            if s.role == "distractor":
                other = key(p.text[s.start : s.stop])
                assert sum(a != b for a, b in zip(gold, other)) == 1


def test_stale_versions_come_first() -> None:
    for p in prompts.updated(Words(), length=400, count=5, versions=3):
        current = next(s for s in p.spans if s.role == "current")
        stale = [s for s in p.spans if s.role == "stale"]
        assert len(stale) == 3 and all(s.stop < current.start for s in stale)


def test_insertions() -> None:
    made = prompts.with_insertions(Words(), length=300, count=2, counts=(1, 4))
    assert [p.id for p in made] == ["needle00", "needle00+1", "needle00+4", "needle01", "needle01+1",
                                    "needle01+4"]
    base, one, four = made[:3]
    for variant, number in ((one, 1), (four, 4)):
        ((a, b),) = variant.inserted
        assert variant.text[:a] + variant.text[b:] == base.text
        assert variant.variant_of == base.id and variant.cluster == base.cluster
        assert variant.answer == base.answer
        for s in variant.spans:
            assert not variant.text[s.start : s.stop].startswith(" ")
        words = lambda p: {s.name: p.text[s.start : s.stop] for s in p.spans}
        assert {k: v for k, v in words(variant).items() if not k.startswith("new")} == words(base)
        assert sum(k.startswith("new") for k in words(variant)) == number
    assert one.text[one.inserted[0][0] : one.inserted[0][1]] in four.text


def test_refusals() -> None:
    with pytest.raises(BadInput, match="too short"):
        prompts.needle(Words(), length=20)
    with pytest.raises(BadInput, match="64 different"):
        prompts.updated(Words(), length=5000, versions=70)
    with pytest.raises(BadInput, match="depth"):
        prompts.needle(Words(), depth=(0.9, 0.1))
    with pytest.raises(BadInput, match="tokenizer"):
        prompts.needle(None)
    with pytest.raises(BadInput, match="at least 1"):
        prompts.with_insertions(Words(), counts=(0,))
