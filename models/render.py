"""Plan values as the compact text that fills prompt slots; the same values give the same text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plangate.plan.contract import MODEL
from plangate.plan.value.frozen import thaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.plan.catalog import Catalog, ToolSpec
    from plangate.plan.issue import Issue
    from plangate.plan.policy import Policy, Require
    from plangate.plan.value.frozen import Json

_MOST_ISSUES = 40  # a planner that made more has to start anew; the rest would only cost tokens
_DEPTH = 3


def render_catalog(catalog: Catalog) -> str:
    """Return one block a tool: name, effect, summary, parameters and output fields with types."""
    return render_tools(spec for _, spec in sorted(catalog.tools.items()))


def render_tools(specs: Iterable[ToolSpec]) -> str:
    """Return one block a tool, in the order given."""
    return "\n".join(map(_tool_text, specs)) or "(none)"


def render_policy(policy: Policy) -> str:
    """Return one line a `require` rule, whether models may be asked, and the usable constants."""
    lines = [line for rule in policy.requires for line in _require_lines(rule)]
    if any(rule.tool in ("*", MODEL) for rule in policy.allows):
        lines.append("- steps of kind `model` are possible")
    if policy.constants:
        shown = ", ".join(json.dumps(each, ensure_ascii=False) for each in policy.constants)
        lines.append(f"- literals that need no source: {shown}")
    return "\n".join(lines) or "(none)"


def render_value(value: Json) -> str:
    """Return a text as it stands, and anything else as compact JSON."""
    return value if isinstance(value, str) else _json(value)


def render_issues(issues: Iterable[Issue]) -> str:
    """Return one line an issue, errors first, at most 40; what is left out is counted."""
    ordered = sorted(issues, key=lambda issue: issue.severity != "error")
    lines = [_issue_line(issue) for issue in ordered[:_MOST_ISSUES]]
    if left_out := len(ordered) - len(lines):
        lines.append(f"- and {left_out} more")
    return "\n".join(lines)


def _issue_line(issue: Issue) -> str:
    where = ".".join(part for part in (issue.step or "plan", issue.field) if part)
    hint = f" {issue.hint}" if issue.hint else ""
    return f"- {issue.severity} {issue.code} at {where}: {issue.says}{hint}"


def _require_lines(rule: Require) -> Iterable[str]:
    why = f" ({rule.reason})" if rule.reason else ""
    if rule.ancestors:
        yield f"- before {rule.before}: {', '.join(rule.ancestors)}{why}"
    if rule.followed_by:
        yield f"- after {rule.before}: {', '.join(rule.followed_by)}{why}"


def _tool_text(spec: ToolSpec) -> str:
    effect = spec.effect.value + (", external" if spec.external else "")
    lines = [
        f"- {spec.name} [{effect}] {spec.summary}",
        f"  args: {_fields(spec.params, spec.params, _DEPTH)}",
        f"  output: {_fields(spec.output, spec.output, _DEPTH)}",
    ]
    if spec.errors:
        lines.append(f"  errors: {', '.join(sorted(spec.errors))}")
    return "\n".join(lines)


def _fields(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    required = frozenset(schema.get("required", ()))
    shown = [
        f"{name}{'' if name in required else '?'}: {_type(each, root, depth)}"
        for name, each in schema.get("properties", {}).items()
    ]
    return "{" + ", ".join(shown) + "}"


def _type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    schema = _followed(schema, root)
    if "const" in schema or "enum" in schema:
        return " | ".join(_json(each) for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(_type(each, root, depth) for each in schema["anyOf"])
    kind = schema.get("type", "any")
    if depth and kind == "object" and "properties" in schema:
        return _fields(schema, root, depth - 1)
    if depth and kind == "array" and "items" in schema:
        return f"[{_type(schema['items'], root, depth - 1)}]"
    named = " | ".join(kind) if isinstance(kind, (list, tuple)) else kind
    return f"{named}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    return f" {'' if low is None else low}..{'' if high is None else high}"


def _followed(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = root.get("$defs", {}).get(name, schema)
    return found


def _json(value: Json) -> str:
    return json.dumps(thaw(value), ensure_ascii=False)
