"""Spans of text: marks, regular expressions, character offsets; and the tokens they cover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from .errors import BadInput
from .writer import Span

MARK = re.compile(r"\[\[([A-Za-z][\w-]*)(?:/([\w-]+))?:\s?((?:(?!\[\[).)*?)\]\]", re.DOTALL)
OPEN = re.compile(r"\[\[[A-Za-z][\w-]*(?:/[\w-]+)?:")


@dataclass(frozen=True)
class TextSpan:
    """Characters [start, stop) of a text."""

    name: str
    role: str
    start: int
    stop: int


Pattern = Union[str, "re.Pattern[str]"]
SpanLike = Union[TextSpan, Mapping[str, Any], Sequence[Any]]
SpansLike = Union[None, Mapping[str, Union[Pattern, Sequence[Pattern]]], Sequence[SpanLike]]


def unmark(text: str) -> tuple[str, list[TextSpan]]:
    """`[[role: words]]` or `[[role/name: words]]` -> the text without marks, and the spans."""
    plain, spans, at, length = [], [], 0, 0
    for match in MARK.finditer(text):
        before = text[at : match.start()]
        plain.append(before)
        length += len(before)
        role, name, words = match.group(1), match.group(2), match.group(3)
        if not words:
            raise BadInput(f"the mark {match.group(0)!r} holds no text")
        plain.append(words)
        spans.append((name or role, role, length, length + len(words)))
        length += len(words)
        at = match.end()
    plain.append(text[at:])
    result = "".join(plain)
    rest = OPEN.search(result)
    if rest:
        raise BadInput(f"the mark {rest.group(0)!r} is not closed with ']]', or marks are nested")
    return result, numbered(spans)


def numbered(spans: Iterable[tuple[str, str, int, int]]) -> list[TextSpan]:
    """Names made unique: gold, gold.2, gold.3."""
    used: dict[str, int] = {}
    result = []
    for name, role, start, stop in spans:
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name}.{used[name]}"
        result.append(TextSpan(unique, role, start, stop))
    return result


def find(text: str, wanted: SpansLike, sample: str) -> list[TextSpan]:
    """Spans as the caller gave them: {role: regular expression(s)}, or a list of offsets."""
    if wanted is None:
        return []
    if isinstance(wanted, Mapping):
        found = []
        for role, patterns in wanted.items():
            for pattern in [patterns] if isinstance(patterns, (str, re.Pattern)) else patterns:
                matches = [m.span() for m in re.finditer(pattern, text) if m.end() > m.start()]
                if not matches:
                    raise BadInput(f"sample {sample!r}: nothing in the text matches {pattern!r}, "
                                   f"the pattern of role {role!r}")
                found += [(role, role, a, b) for a, b in matches]
        return numbered(found)
    spans = [_one(item) for item in wanted]
    for span in spans:
        if not 0 <= span.start < span.stop <= len(text):
            raise BadInput(f"sample {sample!r}: span {span.name!r} is characters [{span.start}, "
                           f"{span.stop}), but the text has {len(text)}")
    names = [s.name for s in spans]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadInput(f"sample {sample!r}: several spans are named {', '.join(twice)}")
    return spans


def _one(item: SpanLike) -> TextSpan:
    if isinstance(item, TextSpan):
        return item
    if isinstance(item, Mapping):
        role = item.get("role") or item.get("name")
        missing = [k for k in ("start", "stop") if k not in item]
        if missing or not role:
            raise BadInput(f"span {dict(item)!r} lacks {', '.join(missing) or 'role'}")
        return TextSpan(str(item.get("name") or role), str(role), int(item["start"]), int(item["stop"]))
    if isinstance(item, Sequence) and not isinstance(item, str) and len(item) in (3, 4):
        *names, start, stop = item
        return TextSpan(str(names[0]), str(names[-1]), int(start), int(stop))
    raise BadInput(f"span {item!r}: use (role, start, stop), (name, role, start, stop), a mapping or "
                   "attnstress.TextSpan")


@dataclass
class _Covered:
    """A span and the tokens [start, stop) that are its own."""

    span: TextSpan
    start: int
    stop: int


def to_tokens(spans: Sequence[TextSpan], offsets: Sequence[tuple[int, int]],
              sample: str) -> list[Span]:
    """Tokens that share a character with the span. A token that two neighbouring spans share goes
    to the one that has more of its characters."""
    covered = []
    for span in spans:
        hit = [i for i, (a, b) in enumerate(offsets) if a < span.stop and b > span.start and b > a]
        if not hit:
            raise BadInput(f"sample {sample!r}: no token covers span {span.name!r}, characters "
                           f"[{span.start}, {span.stop})")
        covered.append(_Covered(span, hit[0], hit[-1] + 1))
    ordered = sorted(covered, key=lambda c: (c.span.start, c.span.stop))
    for left, right in zip(ordered, ordered[1:]):
        if left.stop <= right.start or left.span.stop > right.span.start:
            continue
        a, b = offsets[right.start]
        if left.span.stop - a >= b - right.span.start:
            right.start = left.stop
        else:
            left.stop = right.start
    for c in covered:
        if c.start >= c.stop:
            raise BadInput(f"sample {sample!r}: span {c.span.name!r} has no token of its own; it shares "
                           "its only token with a neighbouring span")
    return [Span(c.span.name, c.span.role, c.start, c.stop) for c in covered]
