from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from plangate.examples.refund.tools import TOOLS
from plangate.examples.refund.world import RefundWorld
from plangate.plan.effects import effect_key, evidence_of
from plangate.plan.shape.shape import compile_shape
from plangate.tools.answers import Found, ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.registry import Registry

REGISTRY = Registry(TOOLS)
REFUND = {"order_id": "ORD-A1B2C3D4", "line": 1, "amount_cents": 8900}
KEY = effect_key(REGISTRY["create_refund"].spec, REFUND, "goal").key
Call: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def context(world: RefundWorld) -> ToolContext:
    return ToolContext(
        run_id="r", step="S1", attempt_id="S1-A1", principal="ann", world=world, effect_key=KEY
    )


@pytest.fixture
def call(context: ToolContext) -> Call:
    async def run(name: str, **args: Any) -> dict[str, Any]:
        spec = REGISTRY[name].spec
        assert compile_shape(spec.params).accepts(args) == ()
        output = await REGISTRY[name].call(args, context)
        assert isinstance(output, dict)
        assert compile_shape(spec.output).accepts(output) == ()
        return output

    return run


def shown(name: str, args: dict[str, Any], output: dict[str, Any]) -> list[str]:
    return list(evidence_of(REGISTRY[name].spec, args, output))


async def code_of(called: Awaitable[object]) -> str:
    with pytest.raises(ToolFailed) as failed:
        await called
    return failed.value.code


def test_every_contract_is_checked_all_the_way_down():
    for tool in TOOLS:
        assert not compile_shape(tool.spec.params).unchecked, tool.spec.name
        assert not compile_shape(tool.spec.output).unchecked, tool.spec.name


def test_only_one_tool_acts_and_every_error_code_has_a_class():
    assert [each.spec.name for each in TOOLS if each.spec.effect.acts] == ["create_refund"]
    assert all(each.spec.usd == 0 for each in TOOLS)


async def test_an_order_is_shown_with_its_lines_and_without_what_the_customer_wrote(call: Call):
    order = await call("query_order", order_id="ORD-D3V6W2X9")

    assert (order["status"], order["version"], order["refunded_cents"]) == ("refunded", 11, 3900)
    assert order["lines"] == [
        {"line": 1, "sku": "yoga-mat", "amount_cents": 3900, "refunded_cents": 3900}
    ]
    assert "SYSTEM" not in str(order)
    assert shown("query_order", {}, order) == ["order://ORD-D3V6W2X9?version=11"]


@pytest.mark.parametrize(
    ("order_id", "state"),
    [
        ("ORD-B7K2M9Q4", "not_shipped"),
        ("ORD-F2J5L8P3", "in_transit"),
        ("ORD-G9S4U7Y2", "delivered"),
        ("ORD-M5Q9S2U7", "lost"),
    ],
)
async def test_the_carrier_says_where_a_parcel_is(call: Call, order_id: str, state: str):
    parcel = await call("query_logistics", order_id=order_id)

    assert parcel["shipping_state"] == state
    assert shown("query_logistics", {}, parcel)[0].startswith(f"logistics://{order_id}?version=")


async def test_an_order_without_a_label_is_unknown_to_the_carrier(call: Call):
    spec = REGISTRY["query_logistics"].spec

    code = await code_of(call("query_logistics", order_id="ORD-A1B2C3D4"))

    assert (code, spec.errors[code]) == ("logistics_record_not_found", "permanent")


@pytest.mark.parametrize(
    ("order_id", "state", "rule"),
    [
        ("ORD-A1B2C3D4", "not_shipped", "NL2"),
        ("ORD-J4D7E2K5", "not_shipped", "NL3"),
        ("ORD-E8F1G4H7", "digital", "NL1"),
    ],
)
async def test_a_missing_record_is_classified_from_the_order_itself(
    call: Call, order_id: str, state: str, rule: str
):
    details = await call("query_fulfillment_details", order_id=order_id)
    names = ("status", "fulfillment_type", "promised_ship_at")

    found = await call("classify_no_logistics_record", **{name: details[name] for name in names})

    assert (found["shipping_state"], found["rule_id"]) == (state, rule)


async def test_a_presale_past_its_day_says_what_contradicts_it(call: Call):
    details = await call("query_fulfillment_details", order_id="ORD-K1M6P9R2")
    names = ("status", "fulfillment_type", "promised_ship_at")

    found = await call("classify_no_logistics_record", **{name: details[name] for name in names})

    assert (found["shipping_state"], found["rule_id"]) == ("not_shipped", "NL4")
    assert "past" in found["conflict"]


@pytest.mark.parametrize("order_id", ["ORD-L8T3V5X1"])
async def test_records_that_contradict_each_other_are_nobodys_guess(call: Call, order_id: str):
    details = await call("query_fulfillment_details", order_id=order_id)
    names = ("status", "fulfillment_type", "promised_ship_at")
    known = {name: details[name] for name in names}

    assert await code_of(call("classify_no_logistics_record", **known)) == "fulfillment_conflict"


@pytest.mark.parametrize(
    ("state", "kind", "rule", "refundable"),
    [
        ("not_shipped", "standard", "R001", True),
        ("in_transit", "presale", "R002", False),
        ("delivered", "standard", "R003", True),
        ("digital", "digital", "R004", False),
        ("not_shipped", "presale", "R005", True),
        ("lost", "standard", "R006", True),
    ],
)
async def test_the_policy_in_force_has_one_rule_for_each_case(
    call: Call, state: str, kind: str, rule: str, refundable: bool
):
    args = {"policy_id": "refund", "shipping_state": state, "fulfillment_type": kind}

    found = await call("search_policy", **args)

    assert (found["rule_id"], found["refundable"], found["version"]) == (rule, refundable, 18)
    assert found["auto_limit_cents"] == 10000
    assert shown("search_policy", args, found) == [f"policy://refund/v18#{rule}"]


async def test_a_case_that_no_rule_covers_is_said_to_be_none(call: Call):
    args = {"shipping_state": "digital", "fulfillment_type": "standard"}

    assert await code_of(call("search_policy", policy_id="refund", **args)) == "no_policy_rule"


def case(order_id: str, version: int, rule_id: str, state: str, **other: Any) -> dict[str, Any]:
    known = {"order_id": order_id, "order_version": version, "rule_id": rule_id}
    fixed = {"line": 1, "policy_version": 18, "shipping_state": state}
    return {**known, **fixed, **other}


async def test_a_refund_that_is_due_names_order_version_and_rule(call: Call):
    args = case("ORD-A1B2C3D4", 8, "R001", "not_shipped", amount_cents=8900)

    due = await call("verify_eligibility", **args)

    assert due["check_id"] == "refund_eligibility_v4"
    assert (due["eligible"], due["eligible_amount_cents"], due["over_auto_limit"]) == (
        True,
        8900,
        False,
    )
    assert shown("verify_eligibility", args, due) == [
        "order://ORD-A1B2C3D4?version=8",
        "policy://refund/v18#R001",
    ]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (case("ORD-D3V6W2X9", 11, "R003", "delivered", amount_cents=3900), "already_refunded"),
        (case("ORD-F2J5L8P3", 7, "R002", "in_transit", amount_cents=5400), "not_eligible"),
        (case("ORD-H6Z1A3C8", 9, "R003", "delivered", amount_cents=9900), "not_eligible"),
        (case("ORD-A1B2C3D4", 8, "R006", "not_shipped", amount_cents=8900), "not_eligible"),
        (case("ORD-A1B2C3D4", 8, "R001", "not_shipped", amount_cents=8901), "amount_differs"),
        (case("ORD-A1B2C3D4", 8, "R001", "not_shipped", line=2, amount_cents=1), "amount_differs"),
        (case("ORD-A1B2C3D4", 7, "R001", "not_shipped", amount_cents=8900), "order_changed"),
        (case("ORD-A1B2C3D4", 8, "R999", "not_shipped", amount_cents=8900), "no_policy_rule"),
        (case("ORD-00000000", 1, "R001", "not_shipped", amount_cents=8900), "order_not_found"),
    ],
)
async def test_a_refund_that_is_not_due_says_why(call: Call, args: dict[str, Any], code: str):
    assert await code_of(call("verify_eligibility", **args)) == code


async def test_the_limit_of_the_policy_is_marked_and_the_window_is_open(call: Call):
    over = case("ORD-C5N8R1T6", 5, "R001", "not_shipped", amount_cents=12900)
    part = case("ORD-G9S4U7Y2", 9, "R003", "delivered", line=2, amount_cents=2000)

    assert (await call("verify_eligibility", **over))["over_auto_limit"]
    assert (await call("verify_eligibility", **part))["eligible_amount_cents"] == 2000


async def settled(context: ToolContext, operation_id: str) -> dict[str, Any]:
    poll = REGISTRY["create_refund"].status
    assert poll is not None
    for _ in range(200):
        operation = await poll(operation_id, context)
        if operation.state != "pending":
            return {"state": operation.state, "code": operation.code, "output": operation.output}
        await asyncio.sleep(0.01)
    raise AssertionError(operation_id)


async def test_a_refund_is_accepted_polled_paid_and_proved(call: Call, context: ToolContext):
    accepted = await call("create_refund", **REFUND)

    done = await settled(context, accepted["operation_id"])
    seen = await call("query_refund", operation_id="OP-88")
    final = await call(
        "verify_final_state", order_id=REFUND["order_id"], line=1, operation_id="OP-88"
    )

    assert (accepted["status"], accepted["refund_id"]) == ("accepted", None)
    assert shown("create_refund", REFUND, accepted) == ["operation://OP-88"]
    assert done == {"state": "done", "code": "", "output": seen}
    assert shown("query_refund", {}, seen) == ["operation://OP-88", "refund://RF-77"]
    assert (final["order_status"], final["order_version"], final["consistent"]) == (
        "refunded",
        9,
        True,
    )
    assert shown("verify_final_state", {}, final) == [
        "order://ORD-A1B2C3D4?version=9",
        "refund://RF-77",
    ]


async def test_the_same_effect_key_pays_once(call: Call, context: ToolContext):
    first, second = await asyncio.gather(
        call("create_refund", **REFUND), call("create_refund", **REFUND)
    )
    await settled(context, "OP-88")

    assert first["operation_id"] == second["operation_id"]
    assert len(context.world.payments()) == 1


async def test_a_silent_provider_is_found_out_by_its_key(context: ToolContext, world: RefundWorld):
    world.prepare({"accept_then_timeout": True})
    tool = REGISTRY["create_refund"]
    assert tool.reconcile is not None

    before = await tool.reconcile(KEY, REFUND, context)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tool.call(REFUND, context), timeout=0.3)
    after = await tool.reconcile(KEY, REFUND, context)

    assert (before, after) == (Found(happened=False), Found(True, "OP-88"))
    assert (await settled(context, "OP-88"))["state"] == "done"
    assert len(world.payments()) == 1


async def test_a_declined_operation_is_a_business_no(
    call: Call, context: ToolContext, world: RefundWorld
):
    world.prepare({"provider_fails": "card_closed"})
    accepted = await call("create_refund", **REFUND)

    done = await settled(context, accepted["operation_id"])

    assert (done["state"], done["code"]) == ("failed", "provider_declined")
    assert REGISTRY["create_refund"].spec.errors["provider_declined"] == "business_rejection"


async def test_more_than_was_paid_is_refused_before_anything_happens(call: Call):
    args = {**REFUND, "amount_cents": 8901}

    assert await code_of(call("create_refund", **args)) == "amount_exceeds_payment"


async def test_a_refund_that_is_not_settled_yet_is_no_final_state(call: Call, world: RefundWorld):
    world.prepare({"delay_s": 60})
    await call("create_refund", **REFUND)
    args = {"order_id": REFUND["order_id"], "line": 1, "operation_id": "OP-88"}

    assert await code_of(call("verify_final_state", **args)) == "refund_not_settled"
    assert await code_of(call("verify_final_state", **{**args, "line": 2})) == "another_order"
    assert await code_of(call("query_refund", operation_id="OP-1")) == "operation_not_found"


def test_the_agent_loads_without_its_world():
    code = (
        "import sys; from plangate.agent import load_agent; print(len(load_agent('refund').tools), "
        "[name for name in ('sqlalchemy', 'langgraph', 'langchain_core') if name in sys.modules])"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "9 []"
