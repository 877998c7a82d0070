"""Plans as data: checked, priced, approved, run exactly as approved, verified from evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plangate.agent import Agent, Scenario
    from plangate.budget.prices import PriceBook
    from plangate.create import create_plan_agent
    from plangate.plan.catalog import Effect, Undo
    from plangate.plan.errors import PlangateError
    from plangate.plan.facts import Rights
    from plangate.plan.policy import Policy
    from plangate.plan.value.plan import Budget, Plan
    from plangate.plan.value.step import Step
    from plangate.preview import build_preview
    from plangate.runtime import Options, Runtime
    from plangate.tools.answers import Found, NotSent, Operation, ToolFailed
    from plangate.tools.child import Limits
    from plangate.tools.context import ToolContext
    from plangate.tools.credentials import Granted, Secret, Wanted
    from plangate.tools.http import HttpApi
    from plangate.tools.tool import Tool, tool

__all__ = [
    "Agent",
    "Budget",
    "Effect",
    "Found",
    "Granted",
    "HttpApi",
    "Limits",
    "NotSent",
    "Operation",
    "Options",
    "Plan",
    "PlangateError",
    "Policy",
    "PriceBook",
    "Rights",
    "Runtime",
    "Scenario",
    "Secret",
    "Step",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "Undo",
    "Wanted",
    "build_preview",
    "create_plan_agent",
    "tool",
]

_HOME = {
    "Agent": "plangate.agent",
    "Budget": "plangate.plan.value.plan",
    "Effect": "plangate.plan.catalog",
    "Found": "plangate.tools.answers",
    "Granted": "plangate.tools.credentials",
    "HttpApi": "plangate.tools.http",
    "Limits": "plangate.tools.child",
    "NotSent": "plangate.tools.answers",
    "Operation": "plangate.tools.answers",
    "Options": "plangate.runtime",
    "Plan": "plangate.plan.value.plan",
    "PlangateError": "plangate.plan.errors",
    "Policy": "plangate.plan.policy",
    "PriceBook": "plangate.budget.prices",
    "Rights": "plangate.plan.facts",
    "Runtime": "plangate.runtime",
    "Scenario": "plangate.agent",
    "Secret": "plangate.tools.credentials",
    "Step": "plangate.plan.value.step",
    "Tool": "plangate.tools.tool",
    "ToolContext": "plangate.tools.context",
    "ToolFailed": "plangate.tools.answers",
    "Undo": "plangate.plan.catalog",
    "Wanted": "plangate.tools.credentials",
    "build_preview": "plangate.preview",
    "create_plan_agent": "plangate.create",
    "tool": "plangate.tools.tool",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import plangate` costs milliseconds."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
