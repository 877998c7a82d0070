"""What people said and did at the gate, in words for whoever plans later: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plangate.journal.plans import plan_of
from plangate.journal.session import Session
from plangate.nodes.edit import told
from plangate.plan.errors import Damaged, Unreadable


def said_by_people(session: Session) -> Iterator[str]:
    """Yield comments word for word, and each edit as what was changed from what to what."""
    for decision in session.view.decisions.values():
        if decision.comment:
            yield decision.comment
    yield from changed_by_people(session)


def changed_by_people(session: Session) -> Iterator[str]:
    """Yield each edit at the gate as what was changed from what to what."""
    view = session.view
    for decision in view.decisions.values():
        inputs = decision.answer.get("inputs")
        if decision.decision == "edit" and isinstance(inputs, Mapping):
            yield f"{decision.by} changed inputs: {', '.join(inputs)}"
    for version, proposed in view.plans.items():
        if proposed.author.kind == "human" and version - 1 in view.plans:
            yield from _edit(session, version)


def _edit(session: Session, version: int) -> list[str]:
    by = session.view.plans[version].author.name
    try:
        old, new = (plan_of(session, n) for n in (version - 1, version))
    except (Damaged, Unreadable):
        return [f"{by} changed the plan (version {version})"]
    return told(old, new, by)
