"""What an agent step may read and write is known before it runs, and an approval is bound to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from plangate.budget.estimate import Known, estimate
from plangate.budget.prices import PriceBook
from plangate.budget.roles import Role, Roles
from plangate.plan.catalog import ArgRule, Catalog, Effect, Labels, ToolSpec
from plangate.plan.facts import Facts, Rights
from plangate.plan.flow.authority import authority_of, grown
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.tier import tier_of
from plangate.plan.value.autonomy import Autonomy
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Check, Step

OBJECT = {"type": "object"}
TEXT = {"type": "string", "maxLength": 40}
SUMMARY = {"type": "object", "properties": {"to": TEXT}, "required": ["to"]}


def spec(name: str, effect: Effect = Effect.READ, **more: Any) -> ToolSpec:
    said = {"name": name, "summary": "s", "effect": effect, "params": OBJECT, "output": OBJECT}
    return ToolSpec(**{**said, **more})


CATALOG = Catalog.of(
    [
        spec("look", usd=Decimal("0.01"), seconds=2.0),
        spec("mail", labels=Labels(integrity="untrusted")),
        spec("register", labels=Labels(confidentiality=("pii",))),
        spec("web", external=True, arg_rules={"q": ArgRule(max_confidentiality=())}),
        spec("trusting", arg_rules={"id": ArgRule(requires_trusted=True)}),
        spec(
            "pay",
            Effect.IRREVERSIBLE,
            key="pay",
            scope="goal",
            arg_rules={"to": ArgRule(requires_trusted=True)},
        ),
    ]
)
ALLOW = 'schema = 1\n[[allow]]\ntool = "*"\n'
FACTS = Facts(
    catalog=CATALOG,
    rights=Rights(principal="ann"),
    policy=Policy.from_toml(ALLOW),
    step_model="writer",
    now=datetime(2026, 1, 1, tzinfo=UTC),
)


def agent(*tools: str, name: str = "S1", args: Any = None, **more: Any) -> Step:
    given = {"tools": tools, "max_steps": 4, "max_seconds": 60.0, **more}
    return Step(
        id=name,
        objective="o",
        kind="agent",
        args=args or {},
        output=SUMMARY,
        autonomy=Autonomy(**given),
    )


def pays(to: str) -> Step:
    return Step(id="S9", objective="o", tool="pay", args={"to": to})


def plan(*steps: Step) -> Plan:
    return Plan(goal_id="g", goal="g", task_type="t", steps=steps, author=Author(kind="template"))


def codes(made: Plan, policy: str = "") -> set[tuple[str, str | None, str]]:
    facts = replace(FACTS, policy=Policy.from_toml(ALLOW + policy))
    return {(each.code, each.step, each.field) for each in validate(made, facts).issues}


@pytest.mark.parametrize(
    ("tools", "policy", "refused"),
    [
        (("mail",), "", True),
        (("look", "mail"), "", True),
        (("look",), "", False),
        (("look",), '[[label]]\ntool = "look"\nintegrity = "untrusted"\n', True),
        (("look",), '[[label]]\ntool = "agent"\nintegrity = "untrusted"\n', True),
    ],
)
def test_an_answer_is_untrusted_if_anything_that_its_agent_may_read_is(tools, policy, refused):
    made = plan(agent(*tools), pays("${S1.to}"))

    assert (("untrusted_flow", "S9", "args.to") in codes(made, policy)) is refused


def test_an_answer_is_untrusted_if_what_its_step_is_given_is():
    read = Step(id="S0", objective="o", tool="mail")
    made = plan(read, agent("look", args={"text": "${S0.body}"}), pays("${S1.to}"))

    assert ("untrusted_flow", "S9", "args.to") in codes(made)


def test_an_argument_that_takes_only_trusted_values_is_in_no_envelope():
    assert ("untrusted_flow", "S1", "autonomy.tools[1]") in codes(plan(agent("look", "trusting")))


def test_what_is_confidential_does_not_reach_a_tool_of_the_same_envelope_that_sends_it_out():
    both = codes(plan(agent("register", "web", labels=("pii",))))
    alone = codes(plan(agent("web")))

    assert ("confidential_flow", "S1", "autonomy.tools[1]") in both
    assert "confidential_flow" not in {code for code, *_ in alone}


def test_data_that_the_labels_of_an_envelope_leave_out_is_not_read_in_it():
    assert ("outside_envelope", "S1", "autonomy.labels") in codes(plan(agent("register")))
    assert "outside_envelope" not in {
        code for code, *_ in codes(plan(agent("register", labels=("pii",))))
    }


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"max_steps": 5}, "autonomy.max_steps is larger (5, was 4)"),
        ({"max_seconds": 61.0}, "autonomy.max_seconds is larger"),
        ({"max_usd": Decimal(2)}, "autonomy.max_usd is larger"),
        ({"max_usd": None}, "autonomy.max_usd is another value"),
        ({"tools": ("look", "mail")}, "autonomy.tools is another value"),
        ({"ceiling": "write"}, "autonomy.ceiling is another value"),
        ({"labels": ("pii",)}, "autonomy.labels is another value"),
    ],
)
def test_a_wider_envelope_is_growth(more, says):
    tools, rest = more.get("tools", ("look",)), {k: v for k, v in more.items() if k != "tools"}
    old = plan(agent("look", max_usd=Decimal(1)))
    new = plan(agent(*tools, **{"max_usd": Decimal(1), **rest}))

    assert any(says in each for each in grown(old, new, CATALOG))


def test_a_narrower_bound_is_no_growth_and_a_new_agent_is():
    old = plan(agent("look", max_usd=Decimal(1)))

    assert grown(old, plan(agent("look", max_usd=Decimal("0.5"), max_steps=3)), CATALOG) == ()
    assert any(
        "S2 is a new effect: agent" in each
        for each in grown(
            old, plan(agent("look", max_usd=Decimal(1)), agent("look", name="S2")), CATALOG
        )
    )


def test_an_authority_holds_the_envelope():
    [grant] = authority_of(plan(agent("look")), FACTS).grants

    assert (grant.tool, grant.effect) == ("agent", "read")
    assert (grant.origins["autonomy.tools"], grant.limits["autonomy.max_steps"]) == ('["look"]', 4)


def test_a_plan_that_lets_a_model_choose_is_never_run_unasked():
    said = tier_of(plan(agent("look")), FACTS)

    assert (said.tier, said.confirm) == ("selective", ("S1",))
    assert "S1 lets a model choose among look, 4 times at most" in said.reasons


def test_a_plan_without_agents_has_the_hash_that_it_had():
    made = plan(Step(id="S1", objective="o", tool="look", success=()))

    assert "autonomy" not in made.model_dump(mode="json", exclude_defaults=True)["steps"][0]
    assert made.content_hash != plan(agent("look")).content_hash
    assert plan(agent("look")).content_hash != plan(agent("look", max_steps=5)).content_hash


BOOK = PriceBook({"writer": {"input": 3, "output": 15}})
WRITER = Role(model="writer", prompt="Choose.", sha256="ab" * 32)


def priced(step: Step):
    known = Known(catalog=CATALOG, book=BOOK, roles=Roles(agent=WRITER, step=WRITER))
    return estimate(plan(step), known).steps[0]


def test_an_agent_is_estimated_at_all_its_turns_each_with_a_call_of_its_dearest_tool():
    got = priced(agent("look", "mail", max_seconds=10_000.0))

    assert (got.model_calls.p95, got.calls.p95) == (4, 8)
    assert (got.model_calls.p50, got.calls.p50) == (2, 4)
    assert got.usd_p95 > Decimal("0.04") > got.usd_p50 > Decimal("0.02")
    assert got.seconds.p95 > 4 * 4.0


def test_an_estimate_of_an_agent_stays_within_its_envelope():
    got = priced(agent("look", max_usd=Decimal("0.01"), max_seconds=3.0, max_steps=50))

    assert (got.usd_p50, got.usd_p95) == (Decimal("0.01"), Decimal("0.01"))
    assert got.seconds.p95 == pytest.approx(3.0)


def test_without_a_model_the_price_of_an_agent_is_unknown():
    got = estimate(plan(agent("look")), Known(catalog=CATALOG, book=BOOK))

    assert got.usd_p95 is None


def test_a_check_may_look_with_a_tool_that_the_agent_may_not_call():
    check = Check(id="c", level="L2", claim="c", tool="look", rule="true")
    made = plan(agent("mail").model_copy(update={"success": (check,)}))

    assert not {code for code, step, _ in codes(made) if step == "S1"} & {"outside_envelope"}
