"""Who may do what, asked again whenever it matters: at validation, and before each call.

Rights that were true when a plan was approved may be gone when its step starts. An authorizer that
cannot answer grants nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from plangate.plan.catalog import Catalog
from plangate.plan.errors import Denied
from plangate.plan.facts import Rights

if TYPE_CHECKING:
    from plangate.engine.bench import Bench
    from plangate.journal.runs import Run


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


async def rights_now(authorizer: Authorizer, run: Run) -> Rights:
    """Ask for the rights of a run's principal.

    Raises:
        Denied: The authorizer fails, or answers for somebody else.
    """
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
    rights = await rights_now(bench.authorizer, bench.session.run)
    if rights == bench.rights:
        return bench
    specs = [tool.spec for tool in bench.tools.values()]
    return replace(bench, rights=rights, catalog=Catalog.of(specs, rights.scopes))
