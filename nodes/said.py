"""What people said and did at the gate, in words for whoever plans later: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plangate.journal.session import Session
from plangate.nodes.edit import told
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan


def said_by_people(session: Session) -> Iterator[str]:
    """Yield comments word for word, and each edit as what was changed from what to what."""
    view = session.view
    for decision in view.decisions.values():
        if decision.comment:
            yield decision.comment
        inputs = decision.answer.get("inputs")
        if decision.decision == "edit" and isinstance(inputs, Mapping):
            yield f"{decision.by} changed inputs: {', '.join(inputs)}"
    for version, proposed in view.plans.items():
        if proposed.author.kind == "human" and version - 1 in view.plans:
            old, new = _plan(session, version - 1), _plan(session, version)
            yield from told(old, new, proposed.author.name)


def _plan(session: Session, version: int) -> Plan:
    return parse(Plan, session.load(session.view.plans[version].plan))
