from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.facts import Facts, History, PlanEstimate, Range, Rights, StepEstimate
from plangate.plan.policy import Policy
from plangate.plan.tier import tier_of
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Question, Step

OBJECT = {"type": "object"}
PARAMS = {"type": "object", "properties": {"cents": {"type": "integer", "default": 500}}}


def spec(name: str, effect: Effect, **more: object) -> ToolSpec:
    key = {"key": f"{name}:1", "scope": "goal"} if effect.acts else {}
    return ToolSpec(
        **{
            "name": name,
            "summary": "s",
            "effect": effect,
            "params": PARAMS,
            "output": OBJECT,
            **key,
            **more,
        }
    )


CATALOG = Catalog.of(
    [
        spec("look", Effect.READ),
        spec("note", Effect.WRITE, undo="unnote"),
        spec("unnote", Effect.WRITE, undo="note"),
        spec("scribble", Effect.WRITE),
        spec("post", Effect.WRITE, undo="note", external=True),
        spec("send", Effect.WRITE, undo="note", external=True),
        spec("pay", Effect.IRREVERSIBLE),
        spec("ask_oracle", Effect.READ, usd=Decimal("0.40")),
        spec("ask_stranger", Effect.READ, usd=None),
    ]
)
PROVEN = History({"t": 3})
LIMIT = '[[threshold]]\ntool = "note"\narg = "cents"\nover = 100\ntier = "full"\n'


def plan_of(*steps: str | Step) -> Plan:
    made = tuple(
        Step(id=f"S{at}", objective="o", tool=each) if isinstance(each, str) else each
        for at, each in enumerate(steps, 1)
    )
    return Plan(
        goal_id="g",
        goal="g",
        task_type="t",
        inputs={"cents": 50},
        steps=made,
        author=Author(kind="human"),
    )


def facts(text: str = "", history: History = PROVEN, **more: object) -> Facts:
    return Facts(
        catalog=CATALOG,
        rights=Rights(principal="ann"),
        policy=Policy.from_toml("schema = 1\n" + text),
        history=history,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        **more,  # type: ignore[arg-type]
    )


ASK = Step(
    id="S9",
    objective="o",
    kind="human",
    question=Question(audience="customer", type="confirm", text="Go on?"),
)


@pytest.mark.parametrize(
    ("steps", "tier", "confirm"),
    [
        (("look", ASK), "auto", ()),
        (("look", "note"), "auto", ()),
        (("look", "scribble"), "selective", ("S2",)),
        (("look", "post"), "selective", ("S2",)),
        (("pay", "look"), "selective", ("S1",)),
        (("look", "nobody_knows"), "selective", ("S2",)),
        (("look", "post", "send"), "full", ("S1", "S2", "S3")),
        ((Step(id="S1", objective="o", tool="look", approval="always"),), "selective", ("S1",)),
        ((Step(id="S1", objective="o", kind="agent"),), "selective", ("S1",)),
    ],
)
def test_the_riskiest_step_makes_the_tier(steps, tier, confirm):
    found = tier_of(plan_of(*steps), facts())

    assert (found.tier, found.confirm) == (tier, confirm)
    assert found.reasons


def test_a_plan_that_only_reads_needs_no_history_but_one_with_effects_does():
    assert tier_of(plan_of("look"), facts(history=History())).tier == "auto"
    assert tier_of(plan_of("look", "note"), facts(history=History())).confirm == ("S2",)


def test_the_policy_says_what_a_first_time_is_worth():
    def first(tier: str) -> str:
        text = f'[tiers]\nfirst_time = "{tier}"'
        return tier_of(plan_of("note"), facts(text, History())).tier

    assert [first(tier) for tier in ("auto", "selective", "full")] == ["auto", "selective", "full"]


@pytest.mark.parametrize(
    ("args", "tier"),
    [
        ({"cents": 100}, "auto"),
        ({"cents": 101}, "full"),
        ({"cents": "${inputs.cents}"}, "auto"),
        ({"cents": "${S1.cents}"}, "full"),
        ({"cents": "${inputs.nothing}"}, "full"),
        ({"cents": True}, "full"),
        ({}, "full"),
    ],
)
def test_an_amount_that_is_over_its_limit_or_not_known_yet_is_a_risk(args, tier):
    note = Step(id="S2", objective="o", tool="note", args=args)

    assert tier_of(plan_of("look", note), facts(LIMIT)).tier == tier


@pytest.mark.parametrize(
    ("tool", "confirm"), [("look", ()), ("ask_oracle", ("S2",)), ("ask_stranger", ("S2",))]
)
def test_a_cost_over_the_limit_or_unknown_marks_the_steps_that_cost(tool, confirm):
    found = tier_of(plan_of("look", tool), facts('[tiers]\nauto_usd = "0.10"'))

    assert found.confirm == confirm


def test_an_estimate_goes_before_the_prices_of_the_contracts():
    span = Range(p50=1, p95=2)
    priced = StepEstimate(
        step="S1",
        seconds=span,
        tokens_in=span,
        tokens_out=span,
        usd_p50=Decimal(1),
        usd_p95=Decimal(2),
        source="history",
    )
    estimate = PlanEstimate(
        steps=(priced,),
        seconds=span,
        tokens=span,
        usd_p50=Decimal(1),
        usd_p95=Decimal(2),
        calls=span,
    )

    found = tier_of(plan_of("look"), facts('[tiers]\nauto_usd = "1.50"', estimate=estimate))

    assert found.reasons == ("may cost 2 USD, over 1.50",)


def test_what_the_planner_declares_changes_nothing():
    claims = {"side_effect": "none", "reversible": True}
    step = Step(id="S1", objective="o", tool="pay", declared=claims)  # type: ignore[arg-type]

    assert tier_of(plan_of(step), facts()).tier == "selective"
