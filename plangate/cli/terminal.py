"""How anything reaches a terminal: data on stdout, talk on stderr, no control character unescaped.

Text of plans, tools, models and people can hold escape sequences that rewrite what a person sees
before they approve it. So every such text goes through `visible` or `text`, and none is ever read
as markup.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from plangate.graph.lens import is_blank
from plangate.plan.errors import Denied, WaitingForPerson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, RenderableType
    from rich.text import Text


def visible(said: object) -> str:
    r"""Return text for one line, with everything that does not print written as its escape.

    That is control characters, line breaks, invisible and direction-changing format characters,
    letters that show nothing and halves of surrogate pairs.

    Example:
        >>> visible("paid\x1b[2K")
        'paid\\x1b[2K'
    """
    return "".join(
        char
        if char.isprintable() and not is_blank(char)
        else char.encode("unicode_escape").decode()
        for char in str(said)
    )


def text(said: object, style: str = "") -> Text:
    """Return visible text for rich, never read as markup."""
    from rich.text import Text

    return Text(visible(said), style=style)


def line(*parts: object) -> Text:
    """Join parts with spaces; a tuple is (text, style), empty parts are left out."""
    from rich.text import Text

    made = [text(*part) if isinstance(part, tuple) else text(part) for part in parts]
    return Text(" ").join(part for part in made if part.plain)


def count(number: int, thing: str) -> str:
    """Return a number of things in words.

    Example:
        >>> count(1, "error"), count(0, "error")
        ('1 error', '0 errors')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def data_console() -> Console:
    """Return the console for data."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, emoji=False, markup=False)


def talk_console() -> Console:
    """Return the console for everything that is said about the data."""
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, emoji=False, markup=False)


def put(console: Console, rows: Iterable[RenderableType]) -> None:
    """Print rows; lines of text are wrapped for a person, and left whole for a program."""
    from rich.text import Text

    for row in rows:
        console.print(row, soft_wrap=isinstance(row, Text) and not console.is_terminal)


def echo_json(value: object) -> None:
    """Print one JSON value; ASCII only, so that no text in it can act on a terminal."""
    click.echo(json.dumps(value, indent=2, default=str))


def echo_json_line(value: object) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, separators=(",", ":"), default=str))


def say(said: str) -> None:
    """Say one line on stderr."""
    click.echo(visible(said), err=True)


def need_yes(question: str, *, yes: bool) -> None:
    """Go on only if a person says yes, beforehand with `--yes` or now.

    Raises:
        WaitingForPerson: Nobody is there to be asked.
        Denied: They say no.
    """
    if yes:
        return
    if not is_person_there():
        hint = "Nothing was changed; say --yes."
        raise WaitingForPerson("this is confirmed by a person", hint=hint)
    if not click.confirm(visible(question), default=False, err=True):
        raise Denied("nothing was changed", hint="You said no.")


def is_person_there() -> bool:
    """True if somebody sits at stdin who could answer."""
    return sys.stdin is not None and sys.stdin.isatty()
