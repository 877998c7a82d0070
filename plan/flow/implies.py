"""Whether one condition is at least as strict as another, where that can be read off their text.

Only comparisons with a literal are understood, joined by `&&` and `||`. Everything else is compared
word by word, so the answer is "no" more often than it need be and never a wrong "yes".
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from plangate.plan.shape.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.plan.shape.tokens import Token

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NOT_SPLIT = frozenset({"?", ":"})

Words: TypeAlias = tuple["Token", ...]
Literal: TypeAlias = Fraction | str
"""A number, or the text of another literal."""


class _Atom(NamedTuple):
    """`name op literal`; op is empty where it is anything else, and the name all of its text."""

    name: str
    op: str = ""
    literal: Literal = ""


def implies(strict: str, loose: str) -> bool:
    """True if `loose` is surely true whenever `strict` is.

    Args:
        strict: A CEL rule.
        loose: Another one.
    """
    either = [_atoms(part) for part in _split(_words(loose), "||")]
    return all(
        any(_all_follow(_atoms(part), atoms) for atoms in either)
        for part in _split(_words(strict), "||")
    )


def _words(rule: str) -> Words:
    tokens = tokens_of(rule)
    return tuple(tokens.all[: tokens.size])


def _split(words: Words, at: str) -> list[Words]:
    """Split at an operator outside of all brackets; a choice `a ? b : c` is left whole."""
    if any(word.text in _NOT_SPLIT for word in words):
        return [words]
    parts: list[list[Token]] = [[]]
    depth = 0
    for word in words:
        if word.kind == "op":
            depth += (word.text in "([{") - (word.text in ")]}")
        if depth == 0 and word.kind == "op" and word.text == at:
            parts.append([])
        else:
            parts[-1].append(word)
    return [tuple(part) for part in parts]


def _atoms(words: Words) -> list[_Atom]:
    return [_atom(part) for part in _split(words, "&&")]


def _atom(words: Words) -> _Atom:
    text = " ".join(word.text for word in words)
    ops = [at for at, word in enumerate(words) if word.kind == "op" and word.text in _MIRRORED]
    if len(ops) != 1 or any(word.text in _NOT_SPLIT or word.text == "||" for word in words):
        return _Atom(text)
    left, op, right = words[: ops[0]], words[ops[0]].text, words[ops[0] + 1 :]
    if (literal := _literal(right)) is not None and _is_value(left):
        return _Atom(_text(left), op, literal)
    if (literal := _literal(left)) is not None and _is_value(right):
        return _Atom(_text(right), _MIRRORED[op], literal)
    return _Atom(text)


def _is_value(words: Words) -> bool:
    """True for a dotted name, with positions, and nothing that could turn its order around."""
    return bool(words) and all(
        word.kind in ("name", "number", "string") or word.text in ".[]" for word in words
    )


def _text(words: Words) -> str:
    return " ".join(word.text for word in words)


def _literal(words: Sequence[Token]) -> Literal | None:
    texts = [word.text for word in words]
    if len(words) == 2 and texts[0] == "-" and words[1].kind == "number":  # noqa: PLR2004
        number = _number(texts[1])
        return None if number is None else -number
    if len(words) != 1:
        return None
    if words[0].kind == "number":
        return _number(texts[0])
    is_plain = words[0].kind == "string" or texts[0] in ("true", "false", "null")
    return texts[0] if is_plain else None


def _number(text: str) -> Fraction | None:
    """Read a number as CEL does: what has a point or an exponent is a double."""
    try:
        whole = text.rstrip("uU").isdecimal()
        return Fraction(int(text.rstrip("uU"))) if whole else Fraction(float(text))
    except (ValueError, OverflowError):
        return None  # hexadecimal, or beyond what a double holds


def _all_follow(given: Sequence[_Atom], wanted: Sequence[_Atom]) -> bool:
    return all(any(_follows(each, atom) for each in given) for atom in wanted)


def _follows(given: _Atom, wanted: _Atom) -> bool:
    """True if `wanted` is true whenever `given` is."""
    if given == wanted:
        return True
    if not given.op or not wanted.op or given.name != wanted.name:
        return False
    if not isinstance(given.literal, Fraction) or not isinstance(wanted.literal, Fraction):
        # Of texts only equality is read; two spellings of one text are never told apart as two.
        return False
    return _bounds(given.op, given.literal, wanted.op, wanted.literal)


def _bounds(op: str, at: Fraction, wanted: str, limit: Fraction) -> bool:
    if op in (">", ">="):
        return wanted in (">", ">=", "!=") and _bounds(
            _MIRRORED[op], -at, _MIRRORED[wanted], -limit
        )
    below = at < limit or (op == "<" and at == limit)
    if op in ("<", "<="):
        return (wanted == "<=" and at <= limit) or (wanted in ("<", "!=") and below)
    if op == "==":
        return {
            "<": at < limit, "<=": at <= limit, ">": at > limit, ">=": at >= limit,
            "!=": at != limit,
        }.get(wanted, False)  # fmt: skip
    return False
