"""Reading a CEL rule just far enough to know which of our names it uses, and where.

A dotted name becomes one variable, padded to its length so that columns in messages stay true.
What is not understood here is left to CEL, which refuses what it does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
    |(?P<string>
        (?:[bB]?[rR]|[rR][bB])(?:"{3}.*?"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
        |[bB]?(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}
            |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>==|!=|<=|>=|&&|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"""(["'])([^"'\\]*)\1""")

MACROS = frozenset({"all", "exists", "exists_one", "filter"})
BANNED = frozenset({"map"})
_NOT_NAMES = frozenset(
    {"true", "false", "null", "in", "bool", "bytes", "double", "duration", "dyn", "int", "list"}
    | {"null_type", "string", "timestamp", "type", "uint"}
)

Use: TypeAlias = Literal["value", "present", "null", "not_null"]
"""What a rule asks of a name: its value, `has(name)`, `name == null`, `name != null`."""


class Token(NamedTuple):
    """One word of a rule."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Position after it."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Chain:
    """A dotted name in a rule: `result.items[0].id`."""

    parts: tuple[str, ...]
    first: int
    """Index of its first token."""

    last: int
    """Index of the token after it."""

    @property
    def dotted(self) -> str:
        """As a person writes it."""
        return ".".join(self.parts)


class Tokens:
    """A rule, word by word; positions just outside it hold an empty word."""

    def __init__(self, rule: str) -> None:
        found = [
            Token(each.lastgroup or "", each[0], each.start())
            for each in _TOKEN.finditer(rule)
            if each.lastgroup != "space"
        ]
        self.size = len(found)
        self.all = found + [Token("end", "", len(rule))] * 4
        self.words = [token.text for token in self.all]

    def macro_at(self, at: int) -> str | None:
        """Return the variable that a comprehension `.all(x, ...)` at this position binds."""
        is_call = self.words[at - 1] == "." and self.words[at + 1] == "("
        if self.words[at] in MACROS and is_call and self.words[at + 3] == ",":
            return self.words[at + 2]
        return None

    def chain_at(self, at: int) -> Chain | None:
        """Return the dotted name that begins here, without the method called on it."""
        token = self.all[at]
        if token.kind != "name" or token.text in _NOT_NAMES or self.words[at - 1] == ".":
            return None
        if self.words[at + 1] == "(":
            return None
        parts, end = [token.text], at + 1
        while (step := self._link(end)) is not None:
            parts.append(step[0])
            end = step[1]
        return Chain(tuple(parts), at, end)

    def _link(self, at: int) -> tuple[str, int] | None:
        after = self.all[at + 1]
        if self.words[at] == "." and after.kind == "name" and self.words[at + 2] != "(":
            return after.text, at + 2
        if self.words[at] == "[" and self.words[at + 2] == "]":
            if after.kind == "number" and after.text.isdecimal():
                return after.text, at + 3
            plain = plain_string(after)
            return None if plain is None else (plain, at + 3)
        return None


@lru_cache(maxsize=4096)
def tokens_of(rule: str) -> Tokens:
    """Return the words of a rule; many steps carry the same one."""
    return Tokens(rule)


def steps_in(rule: str) -> frozenset[str]:
    """Return the ids of the steps that a rule reads, as `steps.S1` or `steps["S1"]`.

    The rule need not be right; what stands in quotes or in a comment is not read.
    """
    words = tokens_of(rule)
    chains = (words.chain_at(at) for at in range(words.size))
    named = (each.parts for each in chains if each is not None)
    return frozenset(parts[1] for parts in named if parts[0] == "steps" and len(parts) > 1)


def plain_string(token: Token) -> str | None:
    """Return the text of a simple string literal; None for others and for other words."""
    match = _PLAIN.fullmatch(token.text) if token.kind == "string" else None
    return match[2] if match else None


def rewrite(rule: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """Return the rule with each span replaced by a short name, padded with spaces."""
    out, here = [], 0
    for start, end, name in spans:
        out += [rule[here:start], name.ljust(end - start)]
        here = end
    return "".join([*out, rule[here:]])
