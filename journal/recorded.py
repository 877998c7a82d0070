"""One run as its record tells it, whoever holds it: its owner, or a process that only looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pydantic import JsonValue

    from plangate.journal.reference import Ref
    from plangate.journal.runs import Run
    from plangate.journal.view import RunView


class Recorded(Protocol):
    """What can be read of a run without owning it."""

    @property
    def run(self) -> Run:
        """The row of the run."""
        ...

    @property
    def view(self) -> RunView:
        """Its log, folded."""
        ...

    def load(self, ref: Ref, /) -> JsonValue:
        """Return the value behind a reference."""
        ...
