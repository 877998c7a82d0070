from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plangate.plan.catalog import Catalog, Effect, ToolSpec
from plangate.plan.errors import PlanRejected
from plangate.plan.revise.operations import Patch
from plangate.plan.revise.patch import Patched, apply
from plangate.plan.revise.rewrite import reads_of
from plangate.plan.shape.tokens import steps_in
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Author, Plan

OBJECT = {"type": "object"}
AUTHOR = Author(kind="replanner")
NAMES = ("look", "search", "classify", "decide", "prove")
PAY = ToolSpec(
    name="pay",
    summary="s",
    effect=Effect.IRREVERSIBLE,
    params=OBJECT,
    output=OBJECT,
    key="pay:{to}",
    scope="goal",
)
CATALOG = Catalog.of(
    [
        PAY,
        *(
            ToolSpec(name=name, summary="s", effect=Effect.READ, params=OBJECT, output=OBJECT)
            for name in NAMES
        ),
    ]
)


def step(id_: str, tool: str, args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": id_, "objective": "o", "tool": tool, "args": args or {}, **more}


def plan_of(*steps: dict[str, Any], **more: Any) -> Plan:
    said = {"goal_id": "g", "goal": "g", "task_type": "t", "author": {"kind": "human"}, **more}
    return parse(Plan, {**said, "steps": list(steps)})


PLAN = plan_of(
    step("S1", "look"),
    step("S2", "search", {"id": "${S1.id}"}),
    step("S3", "decide", {"shipped": "${S2.shipped}"}, after=["S1", "S2"]),
    step("S4", "pay", {"to": "ann", "cents": "${S3.cents}"}, after=["S3"]),
    step("S5", "prove", after=["S4"]),
    step("S9", "look", {"topic": "weather"}),
)
TWO = [step("S2a", "look", {"id": "${S1.id}"}), step("S2b", "classify", {"k": "${S2a.kind}"})]
SHIPPED = {"S2.shipped": "S2b.shipped"}


def patch(*operations: dict[str, Any]) -> Patch:
    return parse(Patch, {"operations": list(operations), "reasons": ["error://gone"]})


def replace(step_id: str = "S2", steps: Any = TWO, references: Any = SHIPPED) -> dict[str, Any]:
    return {"op": "replace", "step": step_id, "steps": steps, "references": references}


def applied(*operations: dict[str, Any], done: tuple[str, ...] = (), plan: Plan = PLAN) -> Patched:
    return apply(plan, patch(*operations), AUTHOR, done=frozenset(done), catalog=CATALOG)


def faults(*operations: dict[str, Any], done: tuple[str, ...] = (), plan: Plan = PLAN) -> list[str]:
    with pytest.raises(PlanRejected) as caught:
        applied(*operations, done=done, plan=plan)
    return [issue.code for issue in caught.value.issues]


def test_a_replacement_makes_the_next_version_and_keeps_what_is_done():
    found = applied({"op": "keep", "step": "S1"}, replace(), done=("S1", "S9"))

    assert (found.plan.version, found.plan.parent_hash) == (2, PLAN.content_hash)
    assert found.plan.author == AUTHOR
    assert [each.id for each in found.plan.steps] == ["S1", "S2a", "S2b", "S3", "S4", "S5", "S9"]
    assert found.carried == ("S1", "S9")
    assert found.diff.kept == ("S1", "S3", "S4", "S5", "S9")
    assert dict(found.diff.replaced) == {"S2": ("S2a", "S2b")}
    assert found.diff.boundary == ()


def test_what_the_patch_does_not_name_goes_over_unchanged():
    said = PLAN.model_dump(mode="json") | {
        "inputs": {"order": {"lines": [1, 2]}},
        "input_schema": {"type": "object", "required": ["order"]},
        "budget": {"max_usd": "0.50"},
        "notes": [{"decision_code": "d"}],
    }
    plan = parse(Plan, said)

    new = applied(replace(), plan=plan).plan

    for field in ("inputs", "input_schema", "budget", "notes", "goal", "goal_id", "task_type"):
        assert getattr(new, field) == getattr(plan, field)
    assert parse(Plan, new.model_dump_json()).content_hash == new.content_hash


def test_order_on_the_old_step_becomes_order_on_the_last_new_ones():
    fork = [step("S2a", "look"), step("S2b", "look"), step("S2c", "look", after=["S2b"])]

    found = applied(replace(steps=fork, references={"S2.shipped": "S2c.shipped"}))

    assert found.plan.by_id["S3"].after == ("S1", "S2a", "S2c")


RULES = [
    ("steps.S2.output.shipped", "steps.S2b.output.shipped"),
    ("steps . S2 . output . shipped == true", "steps.S2b.output.shipped == true"),
    ("steps.S2.output.shipped.contains('x')", "steps.S2b.output.shipped.contains('x')"),
    ("steps.S2.output.shipped.at[0].x > 1", "steps.S2b.output.shipped.at[0].x > 1"),
    ("has(steps.S2.output.shipped)", "has(steps.S2b.output.shipped)"),
    ("result.x == 'steps.S2.output.gone'", "result.x == 'steps.S2.output.gone'"),
    (
        'result.x == r"\\" && steps.S2.output.shipped',
        'result.x == r"\\" && steps.S2b.output.shipped',
    ),
    ("result.steps.S2.x // steps.S2.output.y", "result.steps.S2.x // steps.S2.output.y"),
    ("steps.S20.output.shipped", "steps.S20.output.shipped"),
    ("steps.S2.status == 'done'", "steps.S2b.status == 'done'"),
]


@pytest.mark.parametrize(("rule", "rewritten"), RULES)
def test_rules_everywhere_are_rewritten_name_by_name(rule, rewritten):
    check = {"id": "c", "level": "L1", "claim": "c", "rule": rule}
    condition = {"id": "c", "text": "t", "rule": rule}
    last = step("S6", "decide", when=rule, preconditions=[rule], success=[check],
                join={"mode": "when", "rule": rule})  # fmt: skip
    plan = plan_of(
        *(each.model_dump(mode="json") for each in PLAN.steps),
        last,
        success_criteria=[{**check, "id": "goal"}],
        constraints=[{**condition, "source": "user"}],
        abort_conditions=[condition],
        replan_conditions=[condition],
    )
    status = {"steps.S2.status": "steps.S2b.status"}

    new = applied(replace(references=SHIPPED | status), plan=plan).plan

    said = new.by_id["S6"]
    assert [said.when, said.preconditions[0], said.join.rule] == [rewritten] * 3
    parts = (said.success, new.success_criteria, new.constraints, new.abort_conditions)
    assert [each.rule for part in (*parts, new.replan_conditions) for each in part] == [
        rewritten
    ] * 5


def test_references_everywhere_are_rewritten():
    ask = {
        "id": "S6",
        "objective": "o",
        "kind": "human",
        "for_each": "${S2.shipped.all}",
        "question": {
            "audience": "customer",
            "type": "confirm",
            "text": "?",
            "details": {"x": ["${S2.shipped}"]},
        },
        "success": [{"id": "c", "level": "L2", "claim": "c", "tool": "look",
                     "args": {"x": "${S2.shipped.id}"}}],
        "routes": [{"on": "permanent", "action": "fallback", "step": "S2"}],
        "compensation": "S2",
    }  # fmt: skip
    assumption = {"id": "a", "statement": "s", "source": "user", "invalidates": ["S2", "S3"]}
    plan = plan_of(
        *(each.model_dump(mode="json") for each in PLAN.steps), ask, assumptions=[assumption]
    )
    one = [step("S2b", "classify")]

    new = applied(replace(steps=one), plan=plan).plan

    said = new.by_id["S6"]
    assert said.question is not None
    assert dict(said.question.details) == {"x": ("${S2b.shipped}",)}
    assert (said.for_each, said.success[0].args["x"]) == (
        "${S2b.shipped.all}",
        "${S2b.shipped.id}",
    )
    assert (said.routes[0].step, said.compensation) == ("S2b", "S2b")
    assert new.assumptions[0].invalidates == ("S2b", "S3")


@pytest.mark.parametrize(
    "more",
    [
        {"args": {"x": "${S2.colour}"}},
        {"args": {"x": {"deep": ["${S2}"]}}},
        {"when": "steps.S2.output.colour == 'red'"},
        {"when": "steps.S2.status == 'done'"},
        {"when": "steps['S2'].output.colour == 'red'"},
        {"when": "size(steps.S2.output) > 0"},
        {"success": [{"id": "c", "level": "L1", "claim": "c", "rule": "steps.S2.output.x > 1"}]},
        {"routes": [{"on": "permanent", "action": "fallback", "step": "S2"}]},
    ],
)
def test_a_reference_that_the_map_does_not_cover_is_a_fault(more):
    plan = plan_of(
        *(each.model_dump(mode="json") for each in PLAN.steps), step("S6", "look", **more)
    )

    assert faults(replace(), plan=plan) == ["patch_uncovered_reference"]


def test_a_map_of_the_whole_step_covers_every_path():
    rule = "steps.S2.status == 'done' && steps.S2.output.colour == 'red'"
    plan = plan_of(
        *(each.model_dump(mode="json") for each in PLAN.steps),
        step("S6", "look", {"x": "${S2.colour}"}, when=rule),
    )

    new = applied(replace(references={"S2": "S2b"}), plan=plan).plan

    assert new.by_id["S6"].when == rule.replace("S2", "S2b")
    assert new.by_id["S6"].args["x"] == "${S2b.colour}"


@pytest.mark.parametrize(
    ("operations", "done", "codes"),
    [
        ([{"op": "keep", "step": "S7"}], (), ["patch_unknown_step"]),
        ([{"op": "keep", "step": "S2"}, replace()], (), ["patch_conflict"]),
        ([replace()], ("S1", "S2"), ["patch_drops_done"]),
        ([replace(steps=[step("S1", "look")])], (), ["patch_duplicate_id", "patch_unknown_step"]),
        ([replace(steps=[step("S2b", "look", after=["S2"])])], (), ["patch_uncovered_reference"]),
        ([replace(references={"S2.shipped": "S8.x"})], (), ["patch_unknown_step"]),
        ([replace(references=SHIPPED | {"S3.cents": "S2b.x"})], (), ["patch_conflict"]),
        ([{"op": "keep", "step": "S1"}], (), ["patch_changes_nothing"]),
        ([{"op": "reorder", "step": "S1", "after": []}], (), ["patch_changes_nothing"]),
        ([{"op": "invalidate", "step": "S1"}], ("S1",), ["patch_changes_nothing"]),
        ([{"op": "reorder", "step": "S9", "after": ["S1"]}], ("S1", "S9"), ["patch_too_late"]),
        ([{"op": "insert", "steps": [step("S1", "look")]}], (), ["patch_duplicate_id"]),
        ([{"op": "insert", "steps": [step("N", "look")], "before": ["S8"]}], (),
         ["patch_unknown_step"]),
        ([replace(), {"op": "insert", "steps": [step("N", "look", {"x": "${S2.id}"})]}], (),
         ["patch_uncovered_reference"]),
        ([{"op": "reorder", "step": "S5", "after": []}, {"op": "keep", "step": "S5"}], (),
         ["patch_conflict"]),
        ([{"op": "stop", "reason": "no way on"}], (), ["patch_stops"]),
        ([{"op": "stop", "reason": "r"}, {"op": "keep", "step": "S7"}], (),
         ["patch_stops", "patch_unknown_step"]),
    ],
)  # fmt: skip
def test_a_patch_that_does_not_fit_is_refused(operations, done, codes):
    assert faults(*operations, done=done) == codes


def test_what_rests_on_a_lost_result_falls_with_it_whatever_its_number():
    lost = {"op": "invalidate", "step": "S2"}

    found = applied(lost, replace(), done=("S1", "S2", "S3", "S9"))

    assert found.carried == ("S1", "S9")
    assert found.invalidated == ("S2", "S3")
    assert found.orphaned_effects == ()
    assert found.diff.invalidated == ("S2", "S3")


@pytest.mark.parametrize(
    ("changed", "carried"), [("S1", ("S4",)), ("S2", ("S1", "S4")), ("S4", ("S1", "S2", "S3"))]
)
def test_a_stand_in_falls_with_its_step_and_who_read_the_step_falls_with_the_stand_in(
    changed, carried
):
    """Else both would act for one purpose, or a reader would keep what is not there any more."""
    hands_over = [{"on": "permanent", "action": "fallback", "step": "S2"}]
    plan = plan_of(
        step("S1", "query_order", {"id": "ORD-1"}, routes=hands_over),
        step("S2", "query_order", {"id": "ORD-2"}),
        step("S3", "tidy", {"text": "${S1.id}"}),
        step("S4", "query_order", {"id": "ORD-4"}),
    )
    update = {"op": "update", "step": changed, "args": {"id": "ORD-9"}}

    assert applied(update, done=("S1", "S2", "S3", "S4"), plan=plan).carried == carried


def test_a_done_effect_that_rests_on_a_lost_result_is_named_and_not_carried():
    lost = {"op": "invalidate", "step": "S2"}

    found = applied(lost, replace(), done=("S1", "S2", "S3", "S4"))

    assert found.orphaned_effects == ("S4",)
    assert "S4" not in found.carried
    assert found.diff.external_effects_preserved == ("S4",)


def test_a_done_effect_that_still_stands_is_preserved():
    update = {"op": "update", "step": "S9", "args": {"topic": "news"}}

    found = applied(update, done=("S1", "S2", "S3", "S4", "S9"))

    assert found.carried == ("S1", "S2", "S3", "S4")
    assert (found.invalidated, found.orphaned_effects) == (("S9",), ())
    assert found.diff.external_effects_preserved == ("S4",)


def test_without_contracts_a_fallen_step_may_have_acted():
    operations = patch({"op": "update", "step": "S9", "args": {"topic": "news"}})

    assert apply(PLAN, operations, AUTHOR, done=frozenset({"S9"})).orphaned_effects == ("S9",)


def test_a_new_order_alone_costs_no_result():
    found = applied({"op": "reorder", "step": "S5", "after": ["S4", "S9"]}, done=("S1", "S9"))

    assert found.carried == ("S1", "S9")
    assert dict(found.diff.updated) == {"S5": ("after",)}
    assert found.diff.reordered == ("S5",)


def test_what_a_step_says_and_what_it_waits_for_can_change_together():
    found = applied(
        {"op": "update", "step": "S5", "args": {"x": 1}},
        {"op": "reorder", "step": "S5", "after": ["S9"]},
    )

    assert (found.plan.by_id["S5"].args["x"], found.plan.by_id["S5"].after) == (1, ("S9",))


def test_an_inserted_step_is_waited_for_and_takes_nobodys_place():
    clean = [step("C1", "look", {"id": "${S1.id}"}), step("C2", "classify", {"k": "${C1.kind}"})]

    found = applied({"op": "insert", "steps": clean, "before": ["S3"]}, done=("S1", "S2"))

    assert [each.id for each in found.plan.steps][:6] == ["S1", "S2", "C1", "C2", "S3", "S4"]
    assert found.plan.by_id["S3"].after == ("S1", "S2", "C2")
    assert (found.carried, found.invalidated) == (("S1", "S2"), ())
    assert (found.diff.inserted, dict(found.diff.replaced)) == (("C1", "C2"), {})


def test_an_inserted_step_that_nothing_waits_for_stands_at_the_end():
    found = applied({"op": "insert", "steps": [step("N", "look")]})

    assert found.plan.steps[-1].id == "N"
    assert all("N" not in each.needs for each in found.plan.steps)


def test_nothing_is_put_before_what_is_done_unless_it_runs_again():
    insert = {"op": "insert", "steps": [step("N", "look")], "before": ["S3"]}
    done = ("S1", "S2", "S3")

    assert faults(insert, done=done) == ["patch_too_late"]
    assert applied({"op": "invalidate", "step": "S2"}, insert, done=done).carried == ("S1",)


def test_the_word_of_a_person_falls_with_what_stood_before_it():
    ask = {
        "id": "S6",
        "objective": "o",
        "kind": "human",
        "after": ["S3"],
        "question": {"audience": "customer", "type": "confirm", "text": "?"},
    }
    plan = plan_of(*(each.model_dump(mode="json") for each in PLAN.steps), ask)

    found = applied(
        {"op": "update", "step": "S3", "required_facts": ["x"]}, done=("S3", "S6"), plan=plan
    )

    assert found.invalidated == ("S3", "S6")


def test_a_dropped_obligation_is_told_at_the_boundary():
    check = {"id": "due", "level": "L1", "claim": "It is due", "rule": "result.due"}
    plan = plan_of(*(each.model_dump(mode="json") for each in PLAN.steps[:3]),
                   step("S4", "pay", {"to": "ann"}, after=["S3"], success=[check]))  # fmt: skip

    found = applied({"op": "update", "step": "S4", "success": []}, plan=plan)

    assert found.diff.boundary == ("check due of S4 is dropped (It is due)",)
    assert dict(found.diff.changed_checks) == {"due": "dropped"}


def test_a_rule_reads_the_steps_it_names_outside_quotes():
    assert steps_in("steps.A.output.x == 'steps.B.output' && result.steps.C") == {"A"}


def test_a_result_rests_on_arguments_rules_and_checks_but_not_on_mere_order():
    check = {"id": "c", "level": "L2", "claim": "c", "tool": "look",
             "args": {"x": "${S3.x}"}, "rule": "steps.S4.output.y"}  # fmt: skip
    said = step(
        "S6", "look", {"x": "${S1.x}"}, after=["S5"], when="steps.S2.output.z", success=[check]
    )

    assert reads_of(plan_of(said).steps[0]) == {"S1", "S2", "S3", "S4"}


operations = st.lists(
    st.one_of(
        st.builds(
            lambda at, n: {"op": "update", "step": f"S{at}", "args": {"n": n}},
            st.sampled_from([1, 2, 3, 4, 5, 9]),
            st.integers(0, 3),
        ),
        st.builds(
            lambda at, facts: {"op": "update", "step": f"S{at}", "required_facts": facts},
            st.sampled_from([1, 2, 3, 4, 5, 9]),
            st.lists(st.sampled_from(["a", "b"]), max_size=2),
        ),
        st.just({"op": "invalidate", "step": "S2"}),
        st.just(replace()),
    ),
    min_size=1,
    max_size=3,
)
settled = st.frozensets(st.sampled_from(sorted(PLAN.by_id)))


@settings(max_examples=60)
@given(operations, settled)
def test_no_done_step_is_dropped_in_silence(changes: list[dict[str, Any]], done: frozenset[str]):
    try:
        found = apply(PLAN, patch(*changes), AUTHOR, done=done, catalog=CATALOG)
    except PlanRejected:
        return

    assert sorted((*found.carried, *found.invalidated)) == sorted(done)
    assert set(found.invalidated) <= set(found.diff.invalidated)
    assert set(found.carried) <= set(found.plan.by_id)
    assert set(found.orphaned_effects) == {"S4"} & set(found.invalidated)


@given(settled)
def test_keeping_everything_is_no_new_version(done: frozenset[str]):
    keep = [{"op": "keep", "step": name} for name in PLAN.by_id]

    assert faults(*keep, done=tuple(done)) == ["patch_changes_nothing"]
