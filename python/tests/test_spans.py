from __future__ import annotations

import re

import pytest

from attnstress.errors import BadInput
from attnstress.spans import TextSpan, find, to_tokens, unmark
from attnstress.writer import Span


def test_marks() -> None:
    text, spans = unmark("A [[gold: red fox]] and a [[distractor/near: blue fox]], [[gold: twice]].")
    assert text == "A red fox and a blue fox, twice."
    assert [(s.name, s.role, text[s.start : s.stop]) for s in spans] == [
        ("gold", "gold", "red fox"), ("near", "distractor", "blue fox"), ("gold.2", "gold", "twice")]


def test_text_without_marks_stays() -> None:
    text = "x = a[[0]] and [[wiki]] and [[1: 2]]"
    assert unmark(text) == (text, [])


@pytest.mark.parametrize("text", ["[[gold: open", "a [[gold: b [[stale: c]] d]]", "[[gold: ]]"])
def test_bad_marks(text: str) -> None:
    with pytest.raises(BadInput):
        unmark(text)


def test_regular_expressions() -> None:
    spans = find("code 12, code 34", {"gold": r"code \d+", "question": re.compile("34$")}, "s")
    assert [(s.name, s.start, s.stop) for s in spans] == [
        ("gold", 0, 7), ("gold.2", 9, 16), ("question", 14, 16)]
    with pytest.raises(BadInput, match="nothing in the text matches 'nine'"):
        find("code 12", {"gold": "nine"}, "s")


@pytest.mark.parametrize("item", [("gold", 2, 5), ("g", "gold", 2, 5), {"role": "gold", "start": 2, "stop": 5},
                                  TextSpan("gold", "gold", 2, 5)])
def test_offsets(item: object) -> None:
    (span,) = find("0123456", [item], "s")  # type: ignore[list-item]
    assert (span.role, span.start, span.stop) == ("gold", 2, 5)


@pytest.mark.parametrize("item", [("gold", 5, 2), ("gold", -1, 2), ("gold", 0, 99), ("gold", 3), "gold",
                                  {"role": "gold", "start": 1}, {"start": 1, "stop": 2}])
def test_wrong_offsets(item: object) -> None:
    with pytest.raises(BadInput):
        find("0123456", [item], "s")  # type: ignore[list-item]


def test_tokens_of_spans() -> None:
    # "The red fox": tokens The, _red, _fox; an empty token first
    offsets = [(0, 0), (0, 3), (3, 7), (7, 11)]
    assert to_tokens([TextSpan("g", "gold", 4, 11)], offsets, "s") == [Span("g", "gold", 2, 4)]
    with pytest.raises(BadInput, match="no token covers"):
        to_tokens([TextSpan("g", "gold", 11, 12)], offsets, "s")


def test_shared_tokens_go_to_the_larger_part() -> None:
    offsets = [(0, 2), (2, 6), (6, 8)]
    spans = [TextSpan("a", "gold", 0, 3), TextSpan("b", "stale", 3, 8)]
    assert to_tokens(spans, offsets, "s") == [Span("a", "gold", 0, 1), Span("b", "stale", 1, 3)]
    spans = [TextSpan("a", "gold", 2, 5), TextSpan("b", "stale", 5, 6)]
    with pytest.raises(BadInput, match="no token of its own"):
        to_tokens(spans, offsets, "s")
