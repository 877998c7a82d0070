"""Prompts are Markdown files beside this one; code never holds prompt text.

A file starts with its inputs, so that a missing or a spare value is an error and not a gap:

    ---
    inputs: catalog, goal
    untrusted: goal
    ---
    What never changes, first: providers cache a common beginning.
    {{catalog}}
    === user ===
    {{goal}}

What stands before the mark is the system message, the rest the user message. An untrusted input
(text of people, tools, models) is legal only in the user message and arrives inside a marked block,
whose mark is a hash of the text, so that the text cannot hold the end of its own block.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE = re.compile(
    r"---\ninputs:(?P<inputs>[^\n]*)\n(?:untrusted:(?P<untrusted>[^\n]*)\n)?---\n"
    r"(?P<system>.*?)\n=== user ===\n(?P<user>.*)",
    re.DOTALL,
)
_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt with its slots filled."""

    system: str
    user: str

    @property
    def messages(self) -> list[dict[str, str]]:
        """The two messages, as chat models take them and `count_messages` counts them."""
        return [
            {"role": "system", "content": self.system},
            {"role": "user", "content": self.user},
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt file."""

    name: str
    sha256: str
    """Of the whole file; stands in the log with each call, so that a run is tied to its wording."""

    inputs: frozenset[str]
    untrusted: frozenset[str]
    system: str
    user: str

    def render(self, **values: str) -> Rendered:
        """Fill the slots; a value is never itself searched for slots.

        Raises:
            ConfigError: The values given are not exactly the declared inputs.
        """
        if values.keys() != self.inputs:
            odd = ", ".join(sorted(values.keys() ^ self.inputs))
            raise ConfigError(
                f"prompt {self.name!r}: missing or spare inputs: {odd}",
                hint=f"Give exactly: {', '.join(sorted(self.inputs))}.",
            )
        fill = self._filler(values)
        return Rendered(system=_SLOT.sub(fill, self.system), user=_SLOT.sub(fill, self.user))

    def _filler(self, values: dict[str, str]) -> Callable[[re.Match[str]], str]:
        def fill(match: re.Match[str]) -> str:
            name = match[1]
            return marked(name, values[name]) if name in self.untrusted else values[name]

        return fill


def marked(name: str, text: str) -> str:
    """Return `text` inside a block that it cannot end.

    Example:
        >>> print(marked("feedback", "cheaper, please"))
        <data name="feedback" mark="f56c9473a06b">
        cheaper, please
        </data mark="f56c9473a06b">
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return f'<data name="{name}" mark="{mark}">\n{text}\n</data mark="{mark}">'


def load(name: str) -> Prompt:
    """Read `prompts/<name>.md`.

    Raises:
        ConfigError: No such prompt, or its header and its slots do not fit.
    """
    try:
        raw = resources.files("plangate.prompts").joinpath(f"{name}.md").read_text("utf-8")
    except OSError as exc:
        raise ConfigError(f"no prompt named {name!r}", hint="See plangate/prompts.") from exc
    return read(name, raw)


def read(name: str, raw: str) -> Prompt:
    """Read the text of a prompt file.

    Raises:
        ConfigError: The header is missing, or declared inputs and slots differ, or an untrusted
            input is not an input, or is used in the system message.
    """
    match = _FILE.fullmatch(raw)
    if match is None:
        raise ConfigError(
            f"prompt {name!r} lacks its header or its user mark",
            hint="Start with `---`, `inputs:`, `---` and divide it with `=== user ===`.",
        )
    inputs, untrusted = _names(match["inputs"]), _names(match["untrusted"] or "")
    above, below = set(_SLOT.findall(match["system"])), set(_SLOT.findall(match["user"]))
    if inputs != above | below:
        odd = ", ".join(sorted(inputs ^ (above | below)))
        raise ConfigError(f"prompt {name!r}: declared inputs and slots differ: {odd}")
    if wrong := (untrusted - inputs) | (untrusted & above):
        raise ConfigError(
            f"prompt {name!r}: untrusted {', '.join(sorted(wrong))} must stand in the user message"
        )
    return Prompt(
        name=name,
        sha256=hashlib.sha256(raw.encode()).hexdigest(),
        inputs=inputs,
        untrusted=untrusted,
        system=match["system"],
        user=match["user"],
    )


def _names(line: str) -> frozenset[str]:
    return frozenset(part.strip() for part in line.split(",") if part.strip())
