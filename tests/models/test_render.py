from __future__ import annotations

from plangate.models.render import render_catalog, render_issues, render_policy, render_value
from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.issue import Issue
from plangate.plan.policy import Policy, Require

PARAMS = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"type": "integer", "minimum": 1, "maximum": 100},
        "currency": {"enum": ["EUR", "USD"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["string", "null"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["order_id", "amount"],
    "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
}
OUTPUT = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
PAY = ToolSpec(
    name="pay",
    summary="Pay back.",
    effect=Effect.IRREVERSIBLE,
    external=True,
    key="k",
    scope="global",
    params=PARAMS,
    output=OUTPUT,
    errors={"too_late": "business_rejection"},
)


ARGS = (
    '  args: {order_id: string, amount: integer 1..100, currency?: "EUR" | "USD", '
    "note?: string | null, either?: string | null, lines?: [{sku?: string}]}"
)


def test_a_tool_is_three_or_four_lines_with_types():
    assert render_catalog(Catalog.of([PAY])).splitlines() == [
        "- pay [irreversible, external] Pay back.",
        ARGS,
        "  output: {ok: boolean}",
        "  errors: too_late",
    ]


def test_a_recursive_schema_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {
        "type": "object",
        "properties": {"top": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
    }
    spec = ToolSpec(name="walk", summary="s", effect=Effect.READ, params=schema, output=OUTPUT)

    assert "next?: object" in render_catalog(Catalog.of([spec]))


def test_requirements_and_constants_of_the_policy_are_shown():
    rule = Require(
        before="pay", ancestors=("check", "human:customer"), followed_by=("look",), reason="r"
    )

    assert render_policy(Policy(constants=("EUR", 3), requires=(rule,))).splitlines() == [
        "- before pay: check, human:customer (r)",
        "- after pay: look (r)",
        '- literals that need no source: "EUR", 3',
    ]
    assert render_policy(Policy()) == "(none)"


def test_issues_come_errors_first_and_are_counted_beyond_forty():
    warning = Issue(layer=3, code="w", says="odd", severity="warning")
    error = Issue(layer=3, code="e", step="S1", field="args.x", says="bad", hint="Fix it.")

    lines = render_issues([warning, *[error] * 50]).splitlines()

    assert lines[0] == "- error e at S1.args.x: bad Fix it."
    assert lines[-1] == "- and 11 more"
    assert render_issues([]) == ""


def test_a_text_stays_as_it_is_and_other_values_become_json():
    assert render_value("a {{b}}") == "a {{b}}"
    assert render_value({"n": (1, "é")}) == '{"n": [1, "é"]}'
