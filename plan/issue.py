"""A finding about a plan. A value, never an exception: a planner gets all of them at once."""

from __future__ import annotations

from typing import Literal

from plangate.plan.value.frozen import Frozen


class Issue(Frozen):
    """One finding, worded for whoever must repair it."""

    layer: int
    """1 schema · 2 graph · 3 tools and arguments · 4 business · 5 permissions and effects ·
    6 budget · 7 completion · 8 semantic."""

    code: str
    """Stable name of the kind of finding; see `plangate.plan.codes`."""

    step: str | None = None
    """Id of the step, or None where the plan as a whole is meant."""

    field: str = ""
    """Path below the step (or plan), as `args.order_id` or `success[0].rule`."""

    says: str
    """What is wrong with which thing."""

    hint: str = ""
    """What to do, as an imperative."""

    severity: Literal["error", "warning"] = "error"


class Report(Frozen):
    """What validation found."""

    issues: tuple[Issue, ...] = ()
    """In order of layer, then of appearance in the plan; errors and warnings."""

    not_evaluated: tuple[int, ...] = ()
    """Layers whose input an earlier layer found broken; never guessed."""

    unreachable_steps: tuple[str, ...] = ()
    missing_verifiers: tuple[str, ...] = ()
    """Steps without a check, or without one strong enough for their effect."""

    content_hash: str = ""
    catalog_hash: str = ""
    policy_hash: str = ""

    @property
    def errors(self) -> tuple[Issue, ...]:
        """The issues that stop the plan."""
        return tuple(issue for issue in self.issues if issue.severity == "error")

    @property
    def warnings(self) -> tuple[Issue, ...]:
        """The issues that a person should see."""
        return tuple(issue for issue in self.issues if issue.severity == "warning")

    @property
    def valid(self) -> bool:
        """True only if every layer was evaluated and none found an error."""
        return not self.errors and not self.not_evaluated
