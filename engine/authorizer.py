"""Who may do what, asked again whenever it matters: at validation, and before each call.

Rights that were true when a plan was approved may be gone when its step starts. An authorizer that
cannot answer grants nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from plangate.engine.classify import redact
from plangate.journal.grounds import OutsideAsked
from plangate.plan.catalog import Catalog
from plangate.plan.errors import Denied
from plangate.plan.facts import Rights

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.journal.runs import Run
    from plangate.journal.session import Session


AUTHORIZER = "authorizer"
"""Whose question it was, where rights are on the record."""


class Authorizer(Protocol):
    """Knows the rights of a principal at this moment."""

    async def rights(self, principal: str, run: Run) -> Rights:
        """Return the roles, scopes and tenant that a principal has now, for one run."""
        ...


class RecordedRights:
    """Rights as the run was started with; they change for a new run only."""

    async def rights(self, principal: str, run: Run) -> Rights:
        """Return what stands in the run's row."""
        del principal
        return run.principal


async def rights_now(authorizer: Authorizer, session: Session) -> Rights:
    """Ask for the rights of a run's principal, and record them where they are not as they were.

    Raises:
        Denied: The authorizer fails, or answers for somebody else.
    """
    try:
        rights = await _asked(authorizer, session.run)
    except Denied as exc:
        _note(session, None, str(exc))
        raise
    _note(session, rights)
    return rights


def _note(session: Session, rights: Rights | None, why: str = "") -> None:
    """Record an answer that differs from the last one; the first is what it was started with."""
    view = session.view
    as_started = not view.rights and rights == session.run.principal
    if not view.seq or as_started:
        return
    said = OutsideAsked(by=AUTHORIZER, how="rights", tool="")
    if rights is None:
        said = said.model_copy(
            update={"outcome": "denied", "error_code": "rights_unknown", "error": redact(why)}
        )
    else:
        said = said.model_copy(update={"output": session.put(rights.model_dump(mode="json"))})
    if view.rights != (said.output or said.error_code):
        session.emit(said)


async def _asked(authorizer: Authorizer, run: Run) -> Rights:
    who = run.principal.principal
    try:
        rights: object = await authorizer.rights(who, run)
    except Exception as exc:  # foreign code ends here, and no answer is no right
        raise Denied(
            f"the rights of {who!r} are not known: {exc}",
            hint="Make the authorizer answer, then resume the run.",
        ) from exc
    if not isinstance(rights, Rights) or rights.principal != who:
        raise Denied(
            f"the authorizer did not answer for {who!r}",
            hint="Return Rights(principal=...) of the principal that was asked for.",
        )
    return rights


async def authorized(bench: Bench) -> Bench:
    """Return the bench with the rights of this moment; the same one if nothing has changed.

    Raises:
        Denied: As `rights_now`.
    """
    rights = await rights_now(bench.authorizer, bench.session)
    if rights == bench.rights:
        return bench
    specs = [tool.spec for tool in bench.tools.values()]
    return replace(bench, rights=rights, catalog=Catalog.of(specs, rights.scopes))
