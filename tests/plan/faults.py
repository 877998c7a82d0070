"""One fault for each code: what is changed in a sound plan, and what must be said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from plangate.plan.catalog import Effect
from plangate.plan.facts import PlanEstimate, Range, Rights, RoleEstimate
from plangate.plan.flow.denial import Denial
from plangate.plan.layers.schema import MAX_STEPS
from plangate.plan.policy import Policy
from tests.plan.workshop import POLICY

Data = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    code: str
    change: Callable[[Data], object]
    step: str | None = None
    at: str = ""
    severity: str = "error"
    facts: dict[str, Any] = field(default_factory=dict)
    says: str = ""

    @property
    def id(self) -> str:
        return f"{self.code}-{self.step}-{self.at}"


def estimate(usd: str | None = "1", seconds: float = 1, calls: int = 0) -> PlanEstimate:
    """`calls`: of a critic."""
    price = None if usd is None else Decimal(usd)
    span, count = Range(p50=seconds, p95=seconds), Range(p50=calls, p95=calls)
    return PlanEstimate(
        steps=(),
        seconds=span,
        tokens=Range(p50=9, p95=9),
        usd_p50=price,
        usd_p95=price,
        calls=count,
        overhead=(
            RoleEstimate(
                role="critic",
                seconds=span,
                usd_p50=price,
                usd_p95=price,
                calls=count,
                model_calls=count,
                source="test",
            ),
        ),
    )


def step(data: Data, at: int, **changes: Any) -> None:
    data["steps"][at].update(changes)


def args(data: Data, at: int, **changes: Any) -> None:
    data["steps"][at]["args"].update(changes)


def added(data: Data, **fields: Any) -> None:
    data["steps"].append({"id": "S9", "objective": "More", "args": {}, **fields})


def asks(data: Data, **fields: Any) -> None:
    said = {"kind": "model", "args": {"text": "${S1.memo}"}, "output": ANSWER, **fields}
    added(data, **said)


def looped(
    data: Data,
    over: str = "${S1.lines}",
    most: int | None = 5,
    check: str = "${item.sku}",
    **given: Any,
) -> None:
    """Add a step that tags each line of the order."""
    again = {"id": "there", "level": "L2", "claim": "It is tagged", "tool": "check_order"}
    added(
        data,
        tool="tag",
        for_each=over,
        max_items=most,
        args={"id": "${item.sku}", "tag": "${item.sku}", **given},
        success=[{**again, "args": {"id": check}, "rule": "observed.ok && result.value > 0"}],
        routes=[
            {"on": "unknown", "action": "ask"},
            {"on": "too_many_items", "action": "abort"},
        ],
    )


def in_inputs(data: Data, count: int, **more: Any) -> None:
    data["inputs"]["lines"] = [{"sku": f"K{n}", "cents": n} for n in range(count)]
    looped(data, "${inputs.lines}", **more)


def criterion(data: Data, **changes: Any) -> None:
    data["success_criteria"][0].update(changes)


def budget(**limits: Any) -> Callable[[Data], object]:
    return lambda data: data.update(budget=limits)


def route(on: str, action: str, **rest: Any) -> list[Data]:
    return [{"on": on, "action": action, **rest}]


def stands_in(data: Data, at: int = 0, on: str = "permanent", tool: str = "query_order") -> None:
    step(data, at, routes=route(on, "fallback", step="S9"))
    if all(each["id"] != "S9" for each in data["steps"]):
        added(data, tool=tool, args={"id": "${inputs.order}"})


TENANTS = Policy.from_toml('schema = 1\n[[allow]]\ntool = "*"\ntenants = ["eu"]\n')
MODEL = {"step_model": "gpt-5-mini"}
DENIED = Denial(
    step="S9",
    version=1,
    tool="wire",
    effect=Effect.IRREVERSIBLE,
    claims=("order:ORD-1",),
    why="over the limit",
)
ANSWER = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
ASKED = {"audience": "ann", "type": "text", "text": "?"}
OBJECTS = {"type": "array"}
FREE = {"tools": ["query_order"], "max_steps": 3, "max_seconds": 10.0}


def roams(data: Data, *, says: Data | None = None, **more: Any) -> None:
    """Add an agent step; `more` changes its envelope, `says` the step."""
    given = {"tool": None, "output": ANSWER, "autonomy": {**FREE, **more}, "args": {}}
    added(data, kind="agent", **{**given, **(says or {})})


SCHEMA = (
    Fault("incomplete_step", lambda d: roams(d, says={"autonomy": None}), "S9", "autonomy"),
    Fault("incomplete_step", lambda d: roams(d, says={"output": None}), "S9", "output"),
    Fault("incomplete_step", lambda d: step(d, 0, autonomy=FREE), "S1", "autonomy"),
    Fault("incomplete_step", lambda d: roams(d, says={"args": {"calls so far": 1}}), "S9", "args"),
    Fault("no_steps", lambda d: d.update(steps=[]), at="steps"),
    Fault(
        "too_many_steps",
        lambda d: d.update(steps=[{"id": f"T{n}", "objective": "x"} for n in range(MAX_STEPS + 1)]),
        at="steps",
    ),
    Fault("bad_value", lambda d: d["inputs"].update(cents=2**60)),
    Fault("duplicate_id", lambda d: step(d, 3, id="S1", after=[]), "S1"),
    Fault("duplicate_id", lambda d: criterion(d, id="c1"), says="check id 'c1' is used 2 times"),
    Fault("reserved_id", lambda d: added(d, id="inputs", tool="check_order"), "inputs", "id"),
    Fault("empty_objective", lambda d: step(d, 0, objective=" "), "S1", "objective"),
    Fault("incomplete_step", lambda d: d["steps"][0].pop("tool"), "S1", "tool"),
    Fault("incomplete_step", lambda d: d["steps"][1].pop("question"), "S2", "question"),
    Fault("incomplete_step", lambda d: step(d, 0, question=ASKED), "S1", "question"),
    Fault("incomplete_step", lambda d: asks(d, output=None), "S9", "output"),
    Fault("incomplete_step", lambda d: step(d, 0, output=ANSWER), "S1", "output"),
)
GRAPH = (
    Fault("unknown_step", lambda d: step(d, 3, after=["S3", "S33"]), "S4", "after[1]"),
    Fault("unknown_step", lambda d: step(d, 3, compensation="S8"), "S4", "compensation"),
    Fault("cycle", lambda d: step(d, 0, after=["S4"]), "S1", "after"),
    Fault("cycle", lambda d: step(d, 3, after=["S4"]), "S4", "after", says="S4 waits for S4"),
    Fault("unreachable_step", lambda d: step(d, 0, after=["S8"]), "S4"),
    Fault(
        "impossible_join", lambda d: step(d, 3, join={"mode": "at_least", "n": 5}), "S4", "join.n"
    ),
    Fault(
        "fallback_to_itself",
        lambda d: step(d, 3, routes=route("permanent", "fallback", step="S4")),
        "S4",
        "routes[0]",
    ),
    Fault("stand_in_shared", lambda d: (stands_in(d), stands_in(d, at=2)), "S3", "routes[0].step"),
    Fault(
        "route_without_step",
        lambda d: step(d, 3, routes=route("permanent", "fallback")),
        "S4",
        "routes[0]",
    ),
    Fault("not_ancestor", lambda d: step(d, 0, when="steps.S4.output.ok"), "S1", "when"),
    Fault(
        "not_ancestor",
        lambda d: d["steps"][2]["success"][0]["args"].update(id="${S4.ok}"),
        "S3",
        "success[0].args.id",
    ),
)
TOOLS = (
    Fault("unknown_tool", lambda d: step(d, 0, tool="query_ordr"), "S1", "tool"),
    Fault(
        "forbidden_tool",
        lambda d: step(d, 0, tool="secret"),
        "S1",
        "tool",
        says="needs scope vault",
    ),
    Fault("version_drift", lambda d: step(d, 0, tool_version="1"), "S1", "tool_version"),
    Fault("missing_argument", lambda d: d["steps"][0]["args"].pop("id"), "S1", "args.id"),
    Fault("surplus_argument", lambda d: args(d, 0, idd="x"), "S1", "args.idd"),
    Fault("wrong_type", lambda d: args(d, 0, id=5), "S1", "args.id", says="is integer, not string"),
    Fault("out_of_range", lambda d: args(d, 2, cents=0), "S3", "args.cents", says="not >= 1"),
    Fault("out_of_range", lambda d: d["inputs"].update(cents=0), "S3", "args.cents"),
    Fault("unknown_reference", lambda d: args(d, 0, id="${S7.id}"), "S1", "args.id"),
    Fault("bad_reference_path", lambda d: args(d, 2, id="${S1.idd}"), "S3", "args.id"),
    Fault("bad_reference_path", lambda d: args(d, 0, id="${inputs.ordr}"), "S1", "args.id"),
    Fault(
        "bad_reference_path",
        lambda d: d["steps"][1]["question"]["details"].update(cents="${S1.cent}"),
        "S2",
        "question.details.cents",
    ),
    Fault("reference_type", lambda d: args(d, 2, id="${S1.cents}"), "S3", "args.id"),
    Fault("reference_type", lambda d: args(d, 0, id="${inputs.cents}"), "S1", "args.id"),
    Fault("reference_gap", lambda d: args(d, 3, id="${S1.note}"), "S4", "args.id", "warning"),
    Fault("reference_gap", lambda d: args(d, 3, id="${S1.memo}"), "S4", "args.id", "warning"),
    Fault("embedded_reference", lambda d: args(d, 0, id="x ${S1.id}"), "S1", "args.id"),
    Fault("unsourced_argument", lambda d: args(d, 2, account="DE1"), "S3", "args.account"),
    Fault("unsourced_argument", lambda d: args(d, 3, id="ORD-2"), "S4", "args.id", "warning"),
    Fault("secret_in_plan", lambda d: args(d, 2, account="password=hunter2"), "S3", "args.account"),
    Fault("secret_in_plan", lambda d: d.update(goal="use https://a:b1@host"), None, "goal"),
    Fault("unchecked_shape", lambda d: added(d, tool="loose"), "S9", "tool"),
    Fault("unchecked_shape", lambda d: args(d, 3, id="${S1.extra}"), "S4", "args.id", "warning"),
    Fault(
        "bad_input",
        lambda d: d.update(
            input_schema={
                "type": "object",
                "properties": {"cents": {"type": "string"}, "order": {"type": "string"}},
            }
        ),
        at="inputs.cents",
    ),
    Fault(
        "bad_rule",
        lambda d: step(d, 2, preconditions=["steps.S1.output.cents > '1'"]),
        "S3",
        "preconditions[0]",
    ),
    Fault(
        "bad_rule",
        lambda d: d["abort_conditions"][0].update(rule="run.failure > 3"),
        at="abort_conditions[0].rule",
    ),
    Fault("bad_rule", lambda d: step(d, 2, when="result.operation == ''"), "S3", "when"),
    Fault(
        "unchecked_rule",
        lambda d: step(d, 2, when="steps.S1.output.extra == 1"),
        "S3",
        "when",
        "warning",
    ),
    Fault("no_model", asks, "S9", "kind"),
    Fault(
        "bad_output_schema",
        lambda d: asks(d, output={"type": "string"}),
        "S9",
        "output",
        facts=MODEL,
    ),
    Fault(
        "unchecked_shape",
        lambda d: asks(d, output={"type": "object", "properties": {"to": {"not": {}}}}),
        "S9",
        "output",
        "warning",
        facts=MODEL,
    ),
    Fault(
        "bad_reference_path",
        lambda d: (asks(d), args(d, 2, account="${S9.too}")),
        "S3",
        "args.account",
        facts=MODEL,
    ),
    Fault(
        "unknown_reference",
        lambda d: asks(d, args={"text": "${S8.memo}"}),
        "S9",
        "args.text",
        facts=MODEL,
    ),
    Fault(
        "reference_type",
        lambda d: (asks(d), args(d, 2, cents="${S9.to}")),
        "S3",
        "args.cents",
        facts=MODEL,
    ),
    Fault(
        "unsourced_argument",
        lambda d: asks(d, args={"text": "DE1"}),
        "S9",
        "args.text",
        "warning",
        facts=MODEL,
    ),
    Fault("no_check", asks, "S9", "success", "warning", facts=MODEL),
    Fault("dead_step", asks, "S9", "", "warning", facts=MODEL),
    Fault(
        "policy_denied",
        asks,
        "S9",
        "tool",
        facts={**MODEL, "policy": Policy.from_toml(POLICY + '[[deny]]\ntool = "model"\n')},
    ),
    Fault(
        "not_supported",
        lambda d: asks(d, for_each="${S1.lines}"),
        "S9",
        "for_each",
        facts=MODEL,
    ),
    Fault("not_supported", lambda d: added(d, kind="milestone"), "S9", "kind"),
    Fault("no_model", roams, "S9", "kind"),
    Fault("unknown_tool", lambda d: roams(d, tools=["query_ordr"]), "S9", "autonomy.tools[0]"),
    Fault("bad_output_schema", lambda d: roams(d, says={"output": OBJECTS}), "S9", "output"),
    Fault("not_supported", lambda d: roams(d, says={"for_each": "${S1.lines}"}), "S9", "for_each"),
    Fault(
        "not_supported",
        lambda d: roams(d, tools=["pay"], ceiling="irreversible"),
        "S9",
        "autonomy.tools[0]",
        facts=MODEL,
    ),
    Fault(
        "outside_envelope",
        lambda d: roams(d, ceiling="none"),
        "S9",
        "autonomy.tools[0]",
        says="above the ceiling 'none'",
        facts=MODEL,
    ),
    Fault(
        "policy_denied",
        roams,
        "S9",
        "autonomy.tools[0]",
        facts={**MODEL, "policy": Policy.from_toml(POLICY + '[[deny]]\ntool = "query_order"\n')},
    ),
    Fault(
        "policy_denied",
        roams,
        "S9",
        "tool",
        facts={**MODEL, "policy": Policy.from_toml(POLICY + '[[deny]]\ntool = "agent"\n')},
    ),
    Fault(
        "over_autonomy",
        lambda d: roams(d, max_seconds=100.0),
        "S9",
        "autonomy.max_seconds",
        facts={**MODEL, "policy": Policy.from_toml(POLICY + "[limits.step]\nmax_seconds = 60\n")},
    ),
    Fault(
        "over_autonomy",
        lambda d: roams(d, max_steps=9),
        "S9",
        "autonomy.max_steps",
        facts={
            **MODEL,
            "policy": Policy.from_toml(POLICY + "[limits.step]\nmax_model_calls = 8\n"),
        },
    ),
    Fault(
        "outside_envelope",
        roams,
        "S9",
        "autonomy.tools[0]",
        says="has to be a step of its own",
        facts={
            **MODEL,
            "policy": Policy.from_toml(
                POLICY + '[[require]]\nbefore = "query_order"\nancestors = ["pay"]\n'
            ),
        },
    ),
    Fault("not_supported", lambda d: step(d, 1, join={"mode": "any"}), "S2", "join"),
    Fault(
        "may_be_missing",
        lambda d: step(d, 3, join={"mode": "any"}),
        "S4",
        "args.id",
    ),
    Fault("stand_in_differs", lambda d: stands_in(d, tool="check_order"), "S1", "routes"),
    Fault("fallback_on_unknown", lambda d: stands_in(d, at=3, on="unknown"), "S4", "routes[0]"),
    Fault(
        "fallback_on_unknown",
        lambda d: stands_in(d, at=2, on="unexpected_state"),
        "S3",
        "routes[0]",
    ),
    Fault("not_supported", lambda d: step(d, 1, for_each="${S1.lines}"), "S2", "for_each"),
    Fault("not_supported", lambda d: looped(d, "${memory.orders}"), "S9", "for_each"),
    Fault(
        "not_supported",
        lambda d: (looped(d), step(d, -1, routes=route("permanent", "fallback", step="S2"))),
        "S9",
        "routes[0]",
    ),
    Fault(
        "may_be_missing",
        lambda d: (looped(d), step(d, -1, after=["S2"], join={"mode": "any"})),
        "S9",
        "for_each",
    ),
    Fault("no_max_items", lambda d: looped(d, most=None), "S9", "max_items"),
    Fault("bad_max_items", lambda d: looped(d, most=0), "S9", "max_items"),
    Fault("bad_max_items", lambda d: looped(d, most=1_001), "S9", "max_items"),
    Fault("bad_max_items", lambda d: step(d, 0, max_items=3), "S1", "max_items"),
    Fault("not_a_list", lambda d: looped(d, "${S1.id}"), "S9", "for_each"),
    Fault("not_a_list", lambda d: looped(d, "the lines"), "S9", "for_each"),
    Fault("not_a_list", lambda d: looped(d, "${inputs.order}"), "S9", "for_each"),
    Fault("unknown_reference", lambda d: looped(d, "${S7.lines}"), "S9", "for_each"),
    Fault("bad_reference_path", lambda d: looped(d, "${S1.lyne}"), "S9", "for_each"),
    Fault("too_many_items", lambda d: in_inputs(d, 3, most=2), "S9", "max_items"),
    Fault("one_effect_for_all", lambda d: looped(d, id="${S1.id}"), "S9", "args"),
    Fault("bad_reference_path", lambda d: looped(d, tag="${item.colour}"), "S9", "args.tag"),
    Fault("reference_type", lambda d: looped(d, tag="${item.cents}"), "S9", "args.tag"),
    Fault("reference_type", lambda d: in_inputs(d, 3, tag="${item.cents}"), "S9", "args.tag"),
    Fault("unknown_reference", lambda d: args(d, 0, id="${item.sku}"), "S1", "args.id"),
    Fault(
        "not_ancestor",
        lambda d: (
            d["success_criteria"][0].update(rule="true") or looped(d, check="${S3.operation}")
        ),
        "S9",
        "success[0].args.id",
    ),
    Fault("not_supported", lambda d: args(d, 0, id="${memory.order}"), "S1", "args.id"),
    Fault(
        "bad_attempts",
        lambda d: step(d, 0, declared={"max_attempts": 4}),
        "S1",
        "declared.max_attempts",
    ),
    Fault(
        "bad_timeout", lambda d: step(d, 0, declared={"timeout_s": 0.0}), "S1", "declared.timeout_s"
    ),
    Fault(
        "claim_differs",
        lambda d: step(d, 0, declared={"max_attempts": 2}),
        "S1",
        "declared.max_attempts",
        "warning",
    ),
    Fault(
        "unknown_error_code",
        lambda d: step(d, 0, routes=route("order_gon", "abort")),
        "S1",
        "routes[0].on",
        "warning",
    ),
)
AUDITOR = {"rights": Rights(principal="bob", roles=("auditor",))}
RISK = (
    Fault("policy_denied", lambda d: added(d, tool="count"), "S9", "tool", facts=AUDITOR),
    Fault("missing_ancestor", lambda d: step(d, 1, question={**ASKED}), "S3", "after"),
    Fault("wrong_order", lambda d: step(d, 2, after=[], when=None), "S3", "after"),
    Fault(
        "skippable_guard",
        lambda d: step(d, 1, when="steps.S1.output.cents > 1", after=["S1"]),
        "S3",
        "after",
    ),
    Fault(
        "skippable_guard", lambda d: step(d, 0, routes=route("order_gone", "skip")), "S3", "after"
    ),
    Fault("missing_follow_up", lambda d: step(d, 3, after=[]), "S3"),
    Fault(
        "effect_understated",
        lambda d: step(d, 2, declared={"side_effect": "read"}),
        "S3",
        "declared.side_effect",
    ),
    Fault(
        "effect_understated",
        lambda d: step(d, 2, declared={"reversible": True}),
        "S3",
        "declared.reversible",
    ),
    Fault(
        "missing_scope",
        lambda d: added(d, tool="read_person", args={"id": "ORD-1"}),
        "S9",
        "tool",
        facts=AUDITOR,
    ),
    Fault(
        "unproved_effect",
        lambda d: d["steps"][2]["success"][0].update(
            level="L1", tool=None, rule="result.operation != ''"
        ),
        "S3",
        "success",
    ),
    Fault(
        "acting_check",
        lambda d: criterion(d, level="L2", tool="drop", args={"id": "${S1.id}"}),
        None,
        "success_criteria[0].tool",
    ),
    Fault(
        "parallel_claim",
        lambda d: d["steps"].append({**d["steps"][2], "id": "S9", "success": []}),
        "S9",
        "after",
    ),
    Fault("wrong_tenant", lambda d: None, "S1", "tool", facts={"policy": TENANTS}),
    Fault(
        "denied_before",
        lambda d: args(d, 2, id="${inputs.order}"),
        "S3",
        "tool",
        facts={"denied": (DENIED,)},
    ),
    Fault(
        "over_autonomy",
        lambda d: None,
        "S3",
        "tool",
        facts={"policy": Policy.from_toml(POLICY + '[autonomy]\nmax_effect = "write"')},
    ),
    Fault(
        "over_autonomy",
        lambda d: None,
        at="steps",
        facts={"policy": Policy.from_toml(POLICY + "[autonomy]\nmax_steps = 3")},
    ),
    Fault(
        "over_autonomy",
        lambda d: None,
        at="budget.max_usd",
        facts={
            "estimate": estimate(None),
            "policy": Policy.from_toml(POLICY + '[autonomy]\nmax_usd = "9"'),
        },
        says="may cost an unknown sum",
    ),
    Fault(
        "untrusted_condition",
        lambda d: (
            added(d, tool="read_mail", args={"id": "ORD-1"}),
            step(d, 2, after=["S2", "S9"], when="steps.S9.output.body == 'x'"),
        ),
        "S3",
        "when",
        "warning",
    ),
    Fault(
        "untrusted_flow",
        lambda d: (
            added(d, tool="read_mail", args={"id": "ORD-1"}),
            args(d, 2, account="${S9.body}"),
        ),
        "S3",
        "args.account",
        says="untrusted data reaches pay.account: read_mail.body → pay.account (S9 → S3)",
    ),
    Fault(
        "untrusted_flow",
        lambda d: (
            added(d, id="S8", tool="read_mail", args={"id": "ORD-1"}),
            asks(d, args={"text": "${S8.body}"}),
            args(d, 2, account="${S9.to}"),
        ),
        "S3",
        "args.account",
        says="read_mail.body → S9.to → pay.account (S8 → S9 → S3)",
        facts=MODEL,
    ),
    Fault(
        "confidential_flow",
        lambda d: (added(d, tool="read_person", args={"id": "ORD-1"}), args(d, 2, id="${S9.name}")),
        "S3",
        "args.id",
    ),
    Fault("over_usd", budget(max_usd="0.5"), at="budget.max_usd", facts={"estimate": estimate()}),
    Fault(
        "over_usd",
        lambda d: None,
        at="budget.max_usd",
        facts={
            "estimate": estimate(),
            "policy": Policy.from_toml(POLICY + '[limits.run]\nmax_usd = "0.5"'),
        },
    ),
    Fault("unknown_price", budget(max_usd="5"), facts={"estimate": estimate(None)}),
    Fault(
        "over_seconds",
        budget(max_seconds=5.0),
        at="budget.max_seconds",
        facts={"estimate": estimate(seconds=9)},
    ),
    Fault("over_deadline", budget(deadline="2026-11-29T00:00:00Z"), at="budget.deadline"),
    Fault("over_calls", budget(max_tool_calls=3), at="budget.max_tool_calls"),
    Fault(
        "over_calls",
        budget(max_model_calls=3),
        at="budget.max_model_calls",
        facts={"estimate": estimate(calls=9)},
    ),
    Fault(
        "over_tokens", budget(max_tokens=8), at="budget.max_tokens", facts={"estimate": estimate()}
    ),
)
COMPLETION = (
    Fault("no_check", lambda d: step(d, 0, success=[]), "S1", "success", "warning"),
    Fault("no_check", lambda d: step(d, 2, success=[]), "S3", "success"),
    Fault(
        "uncheckable", lambda d: d["steps"][0]["success"][0].update(rule=None), "S1", "success[0]"
    ),
    Fault("uncheckable", lambda d: criterion(d, level="L2"), None, "success_criteria[0]"),
    Fault(
        "vague_check",
        lambda d: criterion(d, level="L3", rule=None, claim="it is good enough"),
        None,
        "success_criteria[0].claim",
    ),
    Fault("no_criteria", lambda d: d.update(success_criteria=[]), None, "success_criteria"),
    Fault("weak_criterion", budget(min_level="L2"), None, "success_criteria[0].level"),
    Fault(
        "no_evidence",
        lambda d: criterion(d, rule="inputs.cents > 0"),
        None,
        "success_criteria[0].rule",
    ),
    Fault("no_abort", lambda d: d.update(abort_conditions=[]), None, "abort_conditions", "warning"),
    Fault(
        "unrouted_failure", lambda d: added(d, tool="drop", args={"id": "ORD-1"}), "S9", "routes"
    ),
    Fault(
        "unrouted_failure",
        lambda d: added(d, tool="tag", args={"id": "ORD-1", "tag": "FIX-1"}),
        "S9",
        "routes",
        "warning",
    ),
    Fault(
        "dead_step", lambda d: added(d, tool="search", args={"text": "ORD-1"}), "S9", "", "warning"
    ),
)
FAULTS = (*SCHEMA, *GRAPH, *TOOLS, *RISK, *COMPLETION)
