from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from plangate.plan.catalog import ArgRule, Catalog, Effect, Labels, ToolSpec
from plangate.plan.facts import Facts, Rights
from plangate.plan.layers.run import read_plan, validate
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Plan

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name, schema in fields.items() if "default" not in schema],
        "additionalProperties": False,
    }


def spec(name: str, effect: str = "read", **rest: Any) -> ToolSpec:
    rest.setdefault("params", record(id=TEXT))
    rest.setdefault("output", record(value=WHOLE))
    if Effect(effect).acts:
        rest = {"key": name + ":{id}", "scope": "goal", **rest}
    return ToolSpec(name=name, summary=name, effect=Effect(effect), **rest)


ORDER = record(
    id=TEXT,
    cents=WHOLE,
    status={"enum": ["paid", "open"]},
    note={"type": ["string", "null"]},
    memo={"type": "string", "default": ""},
    extra={},
    lines={"type": "array", "items": record(sku=TEXT, cents=WHOLE)},
)
PAY = {
    "id": TEXT,
    "cents": {"type": "integer", "minimum": 1},
    "account": {"type": "string", "default": "original"},
    "reason": {"enum": ["lost", "late"], "default": "lost"},
    "urgent": {"type": "boolean", "default": False},
}
SPECS = (
    spec("query_order", output=ORDER, version="2", errors={"order_gone": "business_rejection"}),
    spec("check_order", output=record(ok={"type": "boolean"})),
    spec("search", params=record(text=TEXT, top={"type": "integer", "maximum": 9, "default": 3})),
    spec("count", params=record(text={**TEXT, "default": ""}), output=record(value={})),
    spec("read_mail", output=record(body=TEXT), labels=Labels(integrity="untrusted")),
    spec(
        "read_person",
        output=record(name=TEXT),
        labels=Labels(confidentiality=("pii",)),
        scopes=("people",),
    ),
    spec("tidy", "none", params=record(text=TEXT), output=record(text=TEXT)),
    spec(
        "pay",
        "irreversible",
        params=record(**PAY),
        output=record(operation=TEXT),
        external=True,
        reconciles=True,
        writes=("order:{id}",),
        arg_rules={
            "account": ArgRule(requires_trusted=True),
            "id": ArgRule(max_confidentiality=()),
        },
    ),
    spec("tag", "write", params=record(id=TEXT, tag=TEXT), writes=("tags:{id}",)),
    spec("drop", "irreversible"),
    spec("loose", "write", params={"type": "object", "properties": {"id": {"not": {}}}}),
    spec("secret", scopes=("vault",)),
)
CATALOG = Catalog.of(SPECS, ["people"])
POLICY = """
schema = 1
constants = ["FIX-1"]
[[allow]]
tool = "*"
[[deny]]
tool = "count"
roles = ["auditor"]
[[require]]
before = "pay"
ancestors = ["query_order", "human:customer"]
followed_by = ["check_order"]
reason = "money moves for a confirmed order"
"""


def facts(**changes: Any) -> Facts:
    known: dict[str, Any] = {
        "catalog": CATALOG,
        "rights": Rights(principal="ann", roles=("support",), scopes=("people",)),
        "policy": Policy.from_toml(POLICY),
        "now": datetime(2026, 11, 30, tzinfo=UTC),
    }
    return Facts(**{**known, **changes})


SOUND: dict[str, Any] = {
    "goal_id": "g",
    "goal": "Pay the order back",
    "task_type": "refund",
    "inputs": {"order": "ORD-1", "cents": 500},
    "author": {"kind": "planner", "name": "m"},
    "steps": [
        {
            "id": "S1",
            "objective": "Read the order",
            "tool": "query_order",
            "args": {"id": "${inputs.order}"},
            "success": [
                {
                    "id": "c1",
                    "level": "L1",
                    "claim": "it is paid",
                    "rule": "result.status == 'paid'",
                }
            ],
        },
        {
            "id": "S2",
            "objective": "Ask the customer",
            "kind": "human",
            "question": {
                "audience": "customer",
                "type": "confirm",
                "text": "Pay back?",
                "details": {"cents": "${S1.cents}"},
            },
        },
        {
            "id": "S3",
            "objective": "Pay",
            "tool": "pay",
            "args": {"id": "${S1.id}", "cents": "${inputs.cents}"},
            "after": ["S2"],
            "when": "steps.S2.output.confirmed",
            "success": [
                {
                    "id": "c3",
                    "level": "L2",
                    "claim": "the order shows it",
                    "rule": "observed.ok",
                    "tool": "check_order",
                    "args": {"id": "${S1.id}"},
                }
            ],
        },
        {
            "id": "S4",
            "objective": "Look again",
            "tool": "check_order",
            "args": {"id": "${S1.id}"},
            "after": ["S3"],
            "success": [{"id": "c4", "level": "L1", "claim": "it is fine", "rule": "result.ok"}],
        },
    ],
    "success_criteria": [
        {"id": "g1", "level": "L1", "claim": "it is fine", "rule": "steps.S4.output.ok"}
    ],
    "abort_conditions": [{"id": "a1", "text": "too many", "rule": "run.failures > 3"}],
}


def sound() -> dict[str, Any]:
    return deepcopy(SOUND)


def read(data: object) -> Plan:
    plan = read_plan(data)
    assert isinstance(plan, Plan), plan
    return plan


def found(data: object, **changes: Any) -> set[tuple[str, str | None, str]]:
    report = validate(read(data), facts(**changes))
    return {(issue.code, issue.step, issue.field) for issue in report.issues}
