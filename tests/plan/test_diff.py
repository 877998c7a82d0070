from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.revise.diff import PlanDiff, diff
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan

OBJECT = {"type": "object"}
TOOLS = ("look", "search", "classify", "decide")
CATALOG = Catalog.of(
    ToolSpec(name=name, summary="s", effect=Effect.READ, params=OBJECT, output=OBJECT)
    for name in TOOLS
)


def step(id_: str, tool: str, args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "objective": "o", "tool": tool, "args": args or {}, **more}


def plan_of(*steps: dict[str, Any], **more: Any) -> Plan:
    said = {"goal_id": "g", "goal": "g", "task_type": "t", "author": {"kind": "human"}, **more}
    return parse(Plan, {**said, "steps": list(steps)})


CHECK = {"id": "c", "level": "L1", "claim": "c", "rule": "result.ok"}
S1 = step("S1", "look", {"id": "${inputs.id}"})
S2 = step("S2", "search", {"id": "${S1.id}"})
S3 = step("S3", "decide", {"shipped": "${S2.shipped}", "limit": 9}, after=["S1"])
OLD = plan_of(S1, S2, S3, version=1)


def changed(*steps: dict[str, Any], **more: Any) -> PlanDiff:
    return diff(OLD, plan_of(*steps, version=2, **more), catalog=CATALOG)


def test_a_step_in_whose_place_two_stand_is_replaced_and_its_readers_are_kept():
    first = step("S2a", "look", {"id": "${S1.id}"})
    second = step("S2b", "classify", {"kind": "${S2a.kind}"})
    reader = step("S3", "decide", {"shipped": "${S2b.shipped}", "limit": 9}, after=["S1"])

    found = changed(S1, first, second, reader)

    assert (found.from_version, found.to_version) == (1, 2)
    assert found.kept == ("S1", "S3")
    assert dict(found.replaced) == {"S2": ("S2a", "S2b")}
    assert (found.inserted, found.removed, found.invalidated) == ((), (), ("S2",))
    assert dict(found.updated) == {"S3": ("args",)}
    assert found.changed_args == ("S3.shipped",)
    assert found.reordered == ()


@pytest.mark.parametrize(
    ("reader", "kept"),
    [
        ({"shipped": "${S1.shipped}", "limit": 9}, True),
        ({"shipped": True, "limit": 9}, False),
        ({"shipped": "${S2.shipped}", "limit": 10}, False),
        ({"shipped": "${S2.shipped}", "limit": "9"}, False),
        ({"shipped": "${inputs.shipped}", "limit": 9}, False),
        ({"shipped": "${S2.shipped}"}, False),
    ],
)
def test_kept_means_the_same_literals(reader, kept):
    assert ("S3" in changed(S1, S2, step("S3", "decide", reader, after=["S1"])).kept) == kept


def test_a_step_with_another_tool_takes_its_own_place():
    found = changed(S1, step("S2", "classify", {"id": "${S1.id}"}), S3)

    assert dict(found.replaced) == {"S2": ("S2",)}
    assert "S2" in found.invalidated


def test_steps_without_a_counterpart_are_inserted_or_removed():
    assert changed(S1, S2, S3, step("S4", "look")).inserted == ("S4",)
    assert changed(S1, S2).removed == ("S3",)


def test_a_step_that_waits_for_others_than_before_is_reordered():
    late = step("S1", "look", {"id": "${inputs.id}"}, after=["S2"])
    early = step("S2", "search", {"id": "${inputs.id}"})

    assert changed(late, early, S3).reordered == ("S1", "S2")


def test_checks_are_told_by_what_became_of_them():
    old = plan_of(
        {**S1, "success": [CHECK, {**CHECK, "id": "d"}]}, success_criteria=[CHECK | {"id": "g"}]
    )
    new = plan_of({**S1, "success": [{**CHECK, "level": "L2"}, {**CHECK, "id": "e"}]})

    found = diff(old, new, catalog=CATALOG)

    assert dict(found.changed_checks) == {
        "c": "changed",
        "d": "dropped",
        "g": "dropped",
        "e": "added",
    }
    assert any("check d of S1 is dropped" in each for each in found.boundary)


def test_a_diff_survives_json():
    found = changed(S1, step("S2a", "look"))

    assert parse(PlanDiff, found.model_dump_json()) == found


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    steps = []
    for at in range(draw(st.integers(1, 6))):
        earlier = [f"S{each}" for each in range(at)]
        args = {"x": draw(st.integers(0, 3))}
        if earlier:
            args["y"] = f"${{{draw(st.sampled_from(earlier))}.out}}"  # type: ignore[assignment]
        after = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        success = [{**CHECK, "id": f"c{at}"}] if draw(st.booleans()) else []
        tool = draw(st.sampled_from(TOOLS))
        steps.append(step(f"S{at}", tool, args, after=after, success=success))
    return plan_of(*steps)


@settings(max_examples=40)
@given(plans())
def test_a_plan_does_not_differ_from_itself(plan: Plan):
    found = diff(plan, plan)

    assert found.is_empty
    assert found.kept == tuple(each.id for each in plan.steps)


@settings(max_examples=40)
@given(plans(), plans())
def test_every_step_of_both_versions_is_told_once(old: Plan, new: Plan):
    found = diff(old, new, catalog=CATALOG)
    in_place = {each for ids in found.replaced.values() for each in ids}

    assert set(found.kept) | set(found.invalidated) == set(old.by_id)
    assert set(found.kept).isdisjoint(found.invalidated)
    assert set(found.inserted) | in_place | set(old.by_id) >= set(new.by_id)
    assert set(found.removed) == set(old.by_id) - set(new.by_id) - set(found.replaced)
