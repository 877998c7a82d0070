"""What a check concluded, and from what. Unknown is a value of its own: never pass, never fail."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plangate.plan.outcome import Level, Says
from plangate.plan.value.frozen import Frozen

PERSON = "person:"
"""Leads the name of a verifier that is one."""


class EvidenceRef(Frozen):
    """A pointer to evidence, `scheme://id?version=N#part`, with the digest of what it showed.

    Examples: `order://ORD-1?version=8`, `policy://refund/v18#R001`, `obs://S1-A1`.
    """

    ref: Annotated[str, Field(pattern=r"^[a-z][a-z0-9+.-]*://\S{1,300}$")]
    sha256: str = ""
    """Digest of the canonical JSON that was seen; empty where only the pointer is known."""


class Verdict(Frozen):
    """The result of one check."""

    says: Says
    check_id: str
    level: Level
    verifier: str
    """Who or what decided: `cel@1`, `judge@<prompt sha256>`, `person:<name>`."""

    claim: str
    evidence: tuple[EvidenceRef, ...] = ()
    failed_constraints: tuple[str, ...] = ()
    why: str = ""
    """One line for a person; for `unknown`, what was missing."""

    confidence: float | None = None
    """L3 only."""

    repairable: bool = False
    recommended_route: str = ""

    @property
    def by_person(self) -> bool:
        """True if a person gave it."""
        return self.verifier.startswith(PERSON)


def overall(verdicts: tuple[Verdict, ...]) -> Says:
    """Return the weakest of several verdicts: any fail is fail, else any unknown is unknown.

    No verdict at all is unknown: nothing was shown.
    """
    said = {verdict.says for verdict in verdicts}
    if "fail" in said:
        return "fail"
    return "pass" if said == {"pass"} else "unknown"
