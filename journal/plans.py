"""Reading back a version of a plan, as it was proposed: whole, or not at all and said so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import ValidationError

from plangate.plan.errors import Unreadable
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from plangate.journal.session import Session
    from plangate.journal.view import RunView


def read_plan(view: RunView, load: Callable[[str], JsonValue], version: int | None = None) -> Plan:
    """Return a version of a run's plan; None: the current one.

    Args:
        view: The run.
        load: Reads an artifact.
        version: One that was proposed.

    Raises:
        Unreadable: It was written by other code, in a form that this one does not know.
        Damaged: It is not in the journal, or not as it was written.
    """
    number = version or view.version
    with _readable(view, number):
        return parse(Plan, load(view.plans[number].plan))


def plan_of(session: Session, version: int | None = None) -> Plan:
    """Do the same in a session, which reads each version once."""
    number = version or session.view.version
    with _readable(session.view, number):
        return session.load_as(Plan, session.view.plans[number].plan)


@contextmanager
def _readable(view: RunView, number: int) -> Iterator[None]:
    try:
        yield
    except ValidationError as exc:
        places = ", ".join(".".join(map(str, each["loc"])) for each in exc.errors()[:3])
        raise Unreadable(
            f"plan version {number} of run {view.run_id!r} is in a form that this plangate cannot"
            f" read ({places or 'all of it'})",
            hint="use the plangate that wrote it, or end the run: plangate run cancel",
        ) from exc
