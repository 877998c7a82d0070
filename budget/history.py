"""Figures from earlier runs: robust quantiles, from enough calls of exactly the same thing.

Same means: this version of the tool; this model with this wording of the prompt, and for a step the
same question and form of answer. Anything else is another subject, and teaches nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from plangate.plan.forecast import Range
from plangate.plan.value.frozen import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.budget.roles import Role, Roles
    from plangate.journal.samples import Samples
    from plangate.plan.catalog import Catalog
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

MIN_SAMPLES = 10
"""Calls before history goes before a contract: with fewer, the largest says little of the p95."""


class Seen(NamedTuple):
    """What calls of one subject took."""

    seconds: Range
    tokens_in: Range
    tokens_out: Range
    calls: int

    @property
    def source(self) -> str:
        """Where the figures come from, with how many."""
        return f"history (n={self.calls})"


def seen(samples: Samples | None) -> Seen | None:
    """Return the quantiles of one subject's calls; None: there are not enough."""
    if samples is None or len(samples.samples) < MIN_SAMPLES:
        return None
    calls = samples.samples
    return Seen(
        quantiles([each.seconds for each in calls]),
        quantiles([each.tokens_in for each in calls]),
        quantiles([each.tokens_out for each in calls]),
        len(calls),
    )


def quantiles(values: Sequence[float]) -> Range:
    """Return the median and the p95 of what was observed.

    The p95 is an observed value, that of rank 0.95 x (n + 1): from twenty on a single outlier does
    not set it, and with fewer the largest one does, which is on the safe side.

    Example:
        >>> quantiles([3, 1, 2, 100])
        Range(p50=2.5, p95=100.0)
    """
    ordered = sorted(values)
    count = len(ordered)
    low, high = ordered[(count - 1) // 2], ordered[count // 2]
    rank = min(count, math.ceil(0.95 * (count + 1) - 1e-9))
    return Range(p50=(low + high) / 2, p95=float(ordered[rank - 1]))


def tool_subject(name: str, version: str) -> str:
    """Return the subject of a tool's calls."""
    return f"tool:{name}@{version}"


def step_subject(step: Step, model: str, prompt_sha256: str) -> str:
    """Return the subject of a model step: what it is asked, in which form, with which wording."""
    question = digest(
        {"objective": step.objective, "output": step.output, "args": sorted(step.args)}
    )
    return f"step:{model}:{prompt_sha256[:16]}:{question[:16]}"


def role_subject(name: str, model: str, prompt_sha256: str) -> str:
    """Return the subject of a role's calls."""
    return f"role:{name}:{model}:{prompt_sha256[:16]}"


def repair_subject(task_type: str, catalog_hash: str) -> str:
    """Return the subject of what runs of a type took beyond their first plan."""
    return f"repair:{task_type}:{catalog_hash[:16]}"


def subjects_of(plan: Plan, catalog: Catalog, roles: Roles) -> frozenset[str]:
    """Return everything that the estimate of a plan asks history for."""
    checks = [*plan.success_criteria, *(each for step in plan.steps for each in step.success)]
    named = {*(step.tool for step in plan.steps), *(check.tool for check in checks)}
    named |= {name for step in plan.steps if step.autonomy for name in step.autonomy.tools}
    specs = (catalog.tools.get(name or "") for name in named)
    found = {tool_subject(spec.name, spec.version) for spec in specs if spec is not None}
    found |= {role_subject(name, role.model, role.sha256) for name, role in roles.named()}
    found.add(repair_subject(plan.task_type, catalog.content_hash))
    if roles.step is not None:
        found |= {_step(step, roles.step) for step in plan.steps if step.kind == "model"}
    return frozenset(found)


def _step(step: Step, role: Role) -> str:
    return step_subject(step, role.model, role.sha256)
