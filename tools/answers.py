"""What a tool can say beside its result: a failure, what the outside knows, how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ToolFailed(Exception):
    """A tool reports that it did not do what was asked. Never reaches the caller of a run.

    Raise it only where nothing happened outside; a call that may have acted and then broke must
    raise something else (a time-out, a connection error), which counts as unknown.

    Args:
        code: A code that the tool declares in `errors=`, which gives its outcome class.
        says: One line for a person. No payload: it goes into the log.
        evidence: Evidence references that show why, as `order://ORD-1?version=8`.
    """

    def __init__(self, code: str, says: str = "", *, evidence: Sequence[str] = ()) -> None:
        super().__init__(says or code)
        self.code = code
        self.says = says
        self.evidence = tuple(evidence)


class NotSent(Exception):
    """A call ended before anything reached the outside: worth another try, whatever the tool does.

    Args:
        code: Short, as `not_connected`.
        says: One line for a person. No payload: it goes into the log.
    """

    def __init__(self, code: str, says: str = "") -> None:
        super().__init__(says or code)
        self.code = code
        self.says = says


class Refused(NotSent):
    """A call was not made and never will be, as no credential is given for it."""


@dataclass(frozen=True, slots=True)
class Found:
    """Answer of a tool's `reconcile`: did the effect with this key happen?"""

    happened: bool | None
    """None: the outside cannot tell; a person decides."""

    operation_id: str | None = None
    """The operation to poll, where the outside accepted it and may still be working."""

    output: Mapping[str, Any] | None = None
    """What the tool would have returned, where it is known."""

    def check(self) -> None:
        """Refuse an answer that only looks like one: `Found("no")` must not count as yes.

        Raises:
            TypeError: A field is of another type.
            UnicodeEncodeError: A text is not Unicode.
        """
        if not (self.happened is None or isinstance(self.happened, bool)):
            raise TypeError(f"happened is {type(self.happened).__name__}, not True, False or None")
        _check_text("operation_id", "" if self.operation_id is None else self.operation_id)


@dataclass(frozen=True, slots=True)
class Operation:
    """Answer of a tool's `status`: how far an accepted operation is."""

    state: Literal["pending", "done", "failed"]
    output: Mapping[str, Any] | None = None
    """For `done`: the final result; it fits the tool's output schema."""

    code: str = ""
    """For `failed`: an error code that the tool declares."""

    business_state: str = ""
    """What the outside calls the state, for the ledger."""

    def check(self) -> None:
        """Refuse a state that is none, and what a ledger cannot hold.

        Raises:
            TypeError: A field is of another type or has a value that it cannot have.
            UnicodeEncodeError: A text is not Unicode.
        """
        if self.state not in ("pending", "done", "failed"):
            raise TypeError("state is none of pending, done, failed")
        _check_text("code", self.code)
        _check_text("business_state", self.business_state)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, not text")
    value.encode()
