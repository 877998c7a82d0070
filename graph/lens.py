"""How text from models, tools and users is shown to a person who decides: exact, nothing hidden.

What cannot be seen (control characters, right-to-left marks, blank letters) is written as an
escape, and a backslash as two, as in a JSON string: so each shown text stands for exactly one. What
is cut says so and by how much.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

T = TypeVar("T")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_BLANKS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters that count as letters, marks or symbols and show nothing."""

_SPACES: Final = " \u3000"
_PLAIN: Final = re.compile(r"[ -\[\]-~]*")
"""Printable ASCII without the backslash."""

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$^=-])")


class Lens:
    """Shows values, and counts what it did not show as it was.

    Args:
        text: Characters of one text that are shown; None: all.
        most: Elements of one list or object that are shown; None: all.
    """

    def __init__(self, text: int | None = None, most: int | None = None) -> None:
        self._text = text
        self._most = most
        self.cut = 0
        """Texts, lists and objects shown in part."""

        self.escaped = 0
        """Texts with characters that cannot be seen."""

    def text(self, given: str) -> str:
        """Return one text on one line."""
        shown = given[: self._text]
        if _PLAIN.fullmatch(shown) is None:
            self.escaped += any(map(_is_unseen, shown))
            shown = "".join(map(_escaped, shown))
        if self._text is None or len(given) <= self._text:
            return shown
        self.cut += 1
        return f"{shown}… [cut: {self._text} of {len(given)} characters]"

    def value(self, given: Json) -> Json:
        """Return JSON data with each text in it, and each key, as `text` shows it."""
        if isinstance(given, str):
            return self.text(given)
        if isinstance(given, Mapping):
            shown = {self.text(key): self.value(given[key]) for key in self.first(given)}
            gap = _gap(len(shown), len(given))
            return shown if len(shown) == len(given) else {**shown, "…": gap}
        if isinstance(given, Sequence):
            items = [self.value(item) for item in self.first(given)]
            gap = _gap(len(items), len(given))
            return items if len(items) == len(given) else [*items, gap]
        return given

    def first(self, given: Iterable[T]) -> list[T]:
        """Return the elements that are shown."""
        items = list(given)
        if self._most is None or len(items) <= self._most:
            return items
        self.cut += 1
        return items[: self._most]


def in_markdown(shown: str) -> str:
    """Return a shown text so that Markdown leaves it as it is: no links, images, headings."""
    return _MARKDOWN.sub(r"\\\1", shown)


def block(shown: Json) -> str:
    """Return shown JSON data as a Markdown code block that nothing inside can end.

    Where nothing was cut, the text in it is JSON for exactly the value that was shown.
    """
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    text = text.replace("\\\\", "\\")  # what was shown is escaped already
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}json\n{text}\n{fence}"


def is_blank(char: str) -> bool:
    """True for what counts as a letter, mark or symbol and shows nothing."""
    return _BLANKS.match(char) is not None


def _gap(shown: int, given: int) -> str:
    return f"[cut: {shown} of {given} elements]"


def _is_unseen(char: str) -> bool:
    if char in _SPACES or " " < char < "\x7f":
        return False
    return unicodedata.category(char) in _UNSEEN or is_blank(char)


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if char == "\\" or _is_unseen(char) else char
