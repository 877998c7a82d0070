"""Credentials are asked for call by call, with the rights of that call and no others.

A value exists in a `Secret` and nowhere else: it does not print, pickle or become JSON, so it
cannot get into a log, an artifact, a trace or an error by accident.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never, TypeAlias

from pydantic_core import core_schema

from plangate.plan.secrets import MASK, REFERENCE
from plangate.tools.answers import NotSent, Refused
from plangate.tools.thread import run

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler


class Secret:
    """A value that is not to be seen; a parameter of this type takes a reference, `secret://name`.

    Args:
        value: What it hides.

    Example:
        >>> Secret("hunter2")
        Secret('***')
        >>> f"{Secret('hunter2')}"
        '***'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, for the one line that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __reduce__(self) -> Never:
        raise TypeError("a Secret does not leave the process")

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: object, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Read a reference; what it stands for comes with the validation's context."""
        return core_schema.with_info_after_validator_function(
            _looked_up,
            core_schema.str_schema(pattern=REFERENCE),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )


def _looked_up(reference: str, info: core_schema.ValidationInfo) -> Secret:
    known: dict[str, Secret] = {} if info.context is None else info.context
    return known.setdefault(reference, Secret(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One call that needs credentials."""

    tool: str
    principal: str
    tenant: str | None
    scopes: tuple[str, ...]
    """Rights that the tool's contract names and the principal holds: all that the call may do."""

    secrets: tuple[str, ...] = ()
    """References among its arguments, as `secret://crm/password`."""

    run_id: str
    step: str
    attempt_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What a provider gives for one call."""

    credential: Secret | None = None
    """A token that may do no more than was asked for; the tool sees `ToolContext.credential`."""

    secrets: Mapping[str, Secret] = field(default_factory=dict)
    """By reference; every reference that was asked for."""


Credentials: TypeAlias = Callable[[Wanted], Granted | Awaitable[Granted]]
"""Gives credentials for one call. Whatever it raises refuses the call; an `OSError` (the vault
cannot be reached) lets it be tried again. Its words go nowhere: they may hold a secret."""

NOTHING = Granted()


async def grant(credentials: Credentials | None, wanted: Wanted) -> Granted:
    """Ask for what a call needs; a call that needs nothing asks nobody.

    Raises:
        NotSent: The provider cannot be reached.
        Refused: It gives nothing, or there is none and the arguments name a secret.
    """
    if credentials is None:
        if wanted.secrets:
            raise Refused("no_credentials", f"nobody knows {', '.join(wanted.secrets)}")
        return NOTHING
    if not (wanted.scopes or wanted.secrets):
        return NOTHING
    try:
        given = await _asked(credentials, wanted)
    except OSError as exc:
        raise NotSent(
            "no_credentials", f"credentials cannot be had: {type(exc).__name__}"
        ) from None
    except Exception as exc:  # noqa: BLE001 - foreign code; its text may hold a secret
        raise Refused("no_credentials", f"credentials are refused: {type(exc).__name__}") from None
    lacking = sorted(set(wanted.secrets) - given.secrets.keys())
    if lacking:
        raise Refused("no_credentials", f"the provider does not give {', '.join(lacking)}")
    return given


async def _asked(credentials: Credentials, wanted: Wanted) -> Granted:
    given = await run(credentials, wanted)
    if not isinstance(given, Granted):
        raise TypeError("credentials are given as Granted")
    return given
