"""Options that several commands share, each spelt once."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from plangate.budget.prices import PriceBook

F = TypeVar("F", bound="Callable[..., Any]")

DEFAULT_JOURNAL = "sqlite:///.plangate/journal.db"
_JOURNAL_HELP = (
    "Database of what happened, SQLite or Postgres."
    f" [env PLANGATE_JOURNAL; default {DEFAULT_JOURNAL}]"
)


def root_journal_option(command: F) -> F:
    """`--journal` before the command's name; the only one that reads the environment."""
    return click.option(
        "--journal", metavar="URL", envvar="PLANGATE_JOURNAL", expose_value=False,
        help=_JOURNAL_HELP, callback=_remember,
    )(command)  # fmt: skip


def _remember(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    ctx.meta["plangate.journal"] = given


def journal_option(command: F) -> F:
    """`--journal` behind the command's name, which wins over the one before it."""
    return click.option("--journal", metavar="URL", help=_JOURNAL_HELP, callback=_journal)(command)


def _journal(ctx: click.Context, _: click.Parameter, given: str | None) -> str:
    return given or ctx.meta.get("plangate.journal") or DEFAULT_JOURNAL


def agent_option(*, required: bool) -> Callable[[F], F]:
    """`--agent`: an example's name or `module:attribute`."""
    return click.option(
        "--agent", "agent_name", metavar="NAME", envvar="PLANGATE_AGENT", required=required,
        callback=_findable,
        help="An example (refund, aml) or module:attribute. [env PLANGATE_AGENT]",
    )  # fmt: skip


def _findable(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    """Let a module of the current directory be named; last, so that it shadows no other."""
    here = str(Path.cwd())
    if given and ":" in given and here not in sys.path:
        sys.path.append(here)
    return given


def world_option(command: F) -> F:
    """`--world`: the URL that the agent's `connect` gets."""
    return click.option(
        "--world", "world_url", metavar="URL", envvar="PLANGATE_WORLD",
        help="What the agent's tools act on, instead of its own choice. [env PLANGATE_WORLD]",
    )(command)  # fmt: skip


def prices_option(command: F) -> F:
    """`--prices`: a price file, over the packaged table; read when it is given."""
    return click.option(
        "--prices", metavar="FILE", expose_value=False, callback=_prices,
        help="What models cost, a TOML file. [env PLANGATE_PRICES]",
    )(command)  # fmt: skip


def _prices(ctx: click.Context, _: click.Parameter, given: str | None) -> None:
    if given:
        ctx.meta["plangate.prices"] = _price_book(given)
        ctx.meta["plangate.prices_file"] = given


def chosen_prices() -> PriceBook | None:
    """Return the prices of `--prices`, or of PLANGATE_PRICES, also where no option takes them.

    Raises:
        ConfigError: No such file, or it is not one of prices.
    """
    ctx = click.get_current_context(silent=True)
    if ctx is not None and "plangate.prices" in ctx.meta:
        book: PriceBook = ctx.meta["plangate.prices"]
        return book
    named = os.environ.get("PLANGATE_PRICES")
    return _price_book(named) if named else None


def _price_book(file: str) -> PriceBook:
    from plangate.budget.prices import PriceBook
    from plangate.cli.textfile import read_text

    hint = "Check --prices and PLANGATE_PRICES."
    return PriceBook.from_toml(read_text(file, "price file", hint=hint))


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Data as JSON on stdout.")(command)


def yes_option(command: F) -> F:
    """`--yes`: consent given in advance, recorded as such."""
    return click.option(
        "--yes", is_flag=True, help="Approve and confirm without asking; recorded as by --yes."
    )(command)


def model_option(says: str) -> Callable[[F], F]:
    """`--model` and `--base-url`, with what the model is for."""

    def options(command: F) -> F:
        url = click.option("--base-url", metavar="URL", help="Server of the model.")
        return click.option("--model", metavar="openai:NAME", help=says)(url(command))

    return options


PLANS_AND_WORKS = (
    "Let this model plan, not a template, and carry model steps out; with --task only the latter."
)
WORKS = "The model that carries model steps out, and plans where the run has no template."


def chat_of(how: Mapping[str, Any]) -> Any:
    """Open the model that `model_option` named; None: none was.

    Raises:
        ConfigError: It cannot be opened.
    """
    if not how["model"]:
        return None
    from plangate.models.open import open_model

    return open_model(how["model"], base_url=how["base_url"])


def goal_option(command: F) -> F:
    """`--goal`, in words."""
    return click.option(
        "--goal", metavar="TEXT", required=True, callback=_goal,
        help="What to reach, in your words.",
    )(command)  # fmt: skip


def _goal(_: click.Context, __: click.Parameter, given: str) -> str:
    if not given.strip():
        raise click.BadParameter("a goal has words")
    return given


def inputs_option(command: F) -> F:
    """`--input k=v`, any number of times."""
    return click.option(
        "--input", "inputs", metavar="NAME=VALUE", multiple=True, callback=_inputs,
        help="An input of the goal; VALUE is JSON if it parses as JSON, else text, so a text of"
        """ digits is NAME='"7"'. Repeatable.""",
    )(command)  # fmt: skip


def raise_option(command: F) -> F:
    """`--raise LIMIT=AMOUNT`, any number of times: a person's decision, recorded."""
    return click.option(
        "--raise", "raised", metavar="LIMIT=AMOUNT", multiple=True, callback=_amounts,
        help="Raise a limit of this run first, as max_usd=2.00; recorded under your name, never"
        " above the policy's cap. Repeatable.",
    )(command)  # fmt: skip


def _amounts(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> Mapping[str, str]:
    pairs = pairs_of(given)  # refuses what is no pair, and what is given twice
    said = dict(each.partition("=")[::2] for each in given)
    return {name.strip(): said[name].strip() for name in said if name.strip() in pairs}


def change_option(command: F) -> F:
    """`--inputs k=v`, any number of times: other inputs than the run was started with."""
    return click.option(
        "--inputs", "inputs", metavar="NAME=VALUE", multiple=True, callback=_inputs,
        help="Change an input and plan anew; VALUE as for --input of run start. Repeatable.",
    )(command)  # fmt: skip


def _inputs(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> Mapping[str, Any]:
    return pairs_of(given)


def pairs_of(given: Iterable[str]) -> Mapping[str, Any]:
    """Read `NAME=VALUE` pairs.

    Raises:
        click.BadParameter: One is no pair, or a name is given twice.
    """
    found: dict[str, Any] = {}
    for each in given:
        name, is_pair, value = each.partition("=")
        if not is_pair or not name.strip():
            raise click.BadParameter(f"{each!r} is not NAME=VALUE")
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()!r} is given twice")
        found[name.strip()] = _value(value)
    return found


def _value(said: str) -> Any:
    try:
        return json.loads(said, parse_constant=_refuse)
    except ValueError:
        return said


def _refuse(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON: then it is text


def said_again(*names: str) -> str:
    """Return the words that a hint needs so that the next command finds the same things.

    Args:
        names: `agent`, `world`, `model` and `base-url`, where the next command takes them beside
            the journal.
    """
    given = click.get_current_context().params
    words = ""
    for name, param in _AGAIN.items():
        said = given.get(param) if name in (*names, "journal") else None
        known = (None, _UNSAID.get(name), os.environ.get(f"PLANGATE_{name.upper()}"))
        if said not in known:
            words += f" --{name} {shlex.quote(_printed(str(said)))}"
    file = click.get_current_context().meta.get("plangate.prices_file")
    if file and "agent" in names:
        words += f" --prices {shlex.quote(file)}"
    return words


def _printed(said: str) -> str:
    if "@" not in said:
        return said
    from plangate.journal.store import hidden

    return hidden(said)  # a hint is read over shoulders and kept in logs


_AGAIN = {
    "agent": "agent_name",
    "world": "world_url",
    "model": "model",
    "base-url": "base_url",
    "journal": "journal",
}
_UNSAID = {"agent": "refund", "journal": DEFAULT_JOURNAL}
"""What a command takes where nothing is said: the agent of a run that is an example's own."""


def who() -> str:
    """Return the name of the person at this machine, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
