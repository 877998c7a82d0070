"""What a run is made of now, held against what it was made of: looked at once by each owner.

A change is recorded with what follows from it. Who may go on goes on; a plan that has to be checked
again is, before a step of it runs (`plangate.nodes.executor`); a plan that cannot be carried out
any more goes back to its planner, and what was done stays on the record.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, cast

from plangate.graph.wiring import NEXT
from plangate.journal.grounds import Fingerprinted
from plangate.journal.journal import Journal
from plangate.journal.reference import Ref
from plangate.journal.session import Session
from plangate.journal.view import RunView, fold
from plangate.nodes.kit import Kit, step_model_name
from plangate.plan.catalog import Catalog, ToolPrint
from plangate.plan.contract import MODEL
from plangate.plan.errors import Unreadable
from plangate.plan.fingerprint import Compared, Fingerprint, Rest, compare
from plangate.plan.outcome import OVER
from plangate.plan.value.frozen import digest, parse
from plangate.plan.value.plan import Plan
from plangate.prompts.loader import load

PROMPTS = ("planner", "critic", "judge", "schema", "work")
CONTRACTS_CHANGED = "contracts_changed"
"""Code of the trigger that has a person asked again about what was approved already."""


def made_of(kit: Kit, catalog: Catalog) -> Fingerprint:
    """Take the fingerprint of an agent, its rules and this code, as a principal sees them."""
    return Fingerprint(
        plangate=_version(),
        plan_schema=_plan_schema(),
        graph=_graph(),
        policy=kit.policy.content_hash,
        repairs=digest([each.content_hash for each in kit.repairs]),
        prompts={name: load(name).sha256 for name in PROMPTS},
        templates={each.template: each.content_hash for each in kit.templates},
        tools={name: spec.fingerprint for name, spec in catalog.tools.items()} | _step_model(kit),
    )


def put_print(session: Session, kit: Kit) -> Ref:
    """Store the fingerprint of this moment; an equal one is stored once."""
    return session.put(made_of(kit, kit.catalog(session)).model_dump(mode="json"))


def begin(session: Session, kit: Kit) -> None:
    """Record what a run is made of; nothing is known to compare it with."""
    session.looked_back = True
    session.emit(Fingerprinted(fingerprint=put_print(session, kit), word="first"))


def look_back(session: Session, kit: Kit) -> None:
    """Compare once, when a new owner goes on with a run, and record what is not as it was."""
    view = session.view
    if session.looked_back or not view.seq or view.ended is not None or view.cancelled is not None:
        return
    session.looked_back = True
    if not view.fingerprint:
        session.emit(Fingerprinted(fingerprint=put_print(session, kit), word="first"))
        return
    now = put_print(session, kit)
    if now == view.fingerprint:
        return
    found = compared(session, kit, view.fingerprint)
    session.emit(Fingerprinted(fingerprint=now, word=found.word, reasons=found.reasons))


def compared(session: Session, kit: Kit, was: Ref) -> Compared:
    """Compare a recorded fingerprint with that of now, for the rest of the current plan.

    Args:
        session: Read are its `run`, `view` and `load`.
        kit: Of today.
        was: The recorded one.
    """
    catalog = kit.catalog(session)
    before = parse(Fingerprint, session.load(was))
    plan = readable_plan(session, kit)
    if plan is None:
        rest = Rest(readable=not session.view.version)
    else:
        rest = Rest(tools=_tools_left(plan, session.view), refused=tuple(catalog.forbidden))
    return compare(before, made_of(kit, catalog), rest)


def changed_since(journal: Journal, kit: Kit, run_id: str) -> Compared:
    """Hold what a run was last made of against what it would be made of now; changes nothing.

    Raises:
        ConfigError: No such run.
    """
    run, view = journal.runs.get(run_id), fold(journal.log.read(run_id))
    if not view.fingerprint:
        return Compared("same")
    load = journal.artifacts.get
    seen = SimpleNamespace(
        run=run, view=view, load=load, load_as=lambda kind, ref: parse(kind, load(ref))
    )
    return compared(cast("Session", seen), kit, view.fingerprint)


def readable_plan(session: Session, kit: Kit, number: int | None = None) -> Plan | None:
    """Load a version of the plan; None where there is none, or this code cannot read its form."""
    if not session.view.version:
        return None
    try:
        return kit.plan(session, number)
    except Unreadable:
        return None


def away(name: str, session: Session) -> str:
    """Return the node to go to instead of working on a plan that has to be made anew, or empty."""
    redo = session.view.redo
    if redo is None or redo.word != "replan" or name in ("planner", "settle"):
        return ""
    return "planner" if "planner" in NEXT[name] else "human_gate"


def _step_model(kit: Kit) -> dict[str, ToolPrint]:
    """The model of model steps counts as a capability whose version is its name."""
    name = step_model_name(kit)
    return {} if name is None else {MODEL: ToolPrint(version=name, form="", powers="", words="")}


def _tools_left(plan: Plan, view: RunView) -> frozenset[str]:
    """Return the tools of steps that have not ended, and of what will be checked."""
    open_steps = [
        step
        for step in plan.steps
        if (seen := view.steps.get(step.id)) is None or seen.status not in OVER
    ]
    checks = [*plan.success_criteria, *(check for step in open_steps for check in step.success)]
    named: list[Any] = [
        *(step.capability for step in open_steps),
        *(check.tool for check in checks),
        *(name for step in open_steps if step.autonomy for name in (*step.autonomy.tools, MODEL)),
    ]
    return frozenset(name for name in named if name)


@cache
def _version() -> str:
    try:
        return version("plangate")
    except PackageNotFoundError:  # run from a copy that was never installed
        return "unknown"


@cache
def _plan_schema() -> str:
    return digest(Plan.model_json_schema())


@cache
def _graph() -> str:
    return digest({node: list(after) for node, after in NEXT.items()})
