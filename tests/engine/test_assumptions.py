"""What a plan takes for true is found out from results, and stops what rests on it if it is not."""

from __future__ import annotations

import pytest
from typing_extensions import TypedDict

from plangate.plan.flow.authority import grown
from plangate.plan.layers.rules import rules_in
from plangate.plan.revise.operations import Patch, Replace
from plangate.plan.revise.patch import apply
from plangate.plan.value.plan import Assumption, Author
from plangate.plan.value.step import Step
from plangate.tools.registry import Registry
from plangate.tools.tool import tool
from tests.engine.conftest import plan_of

TABLE = Assumption(
    id="small",
    statement="The table is small",
    source="user",
    rule="steps.S1.output.rows < 100",
    invalidates=("S3",),
)


class Rows(TypedDict):
    rows: int


SEEN: list[str] = []


def tools(rows):
    @tool(effect="read")
    def count(name: str) -> Rows:
        """Count rows."""
        SEEN.append(name)
        return {"rows": rows}

    return [count]


def step(name, *after):
    return Step(id=name, objective="Count", tool="count", args={"name": name}, after=after)


def plan(**change):
    assumed = TABLE.model_copy(update=change)
    return plan_of(step("S1"), step("S2", "S1"), step("S3", "S2"), assumptions=(assumed,))


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


async def test_an_assumption_that_results_bear_out_is_verified_with_its_evidence(lab):
    halt, session = await lab.run(plan(), tools(5))

    said = session.view.assumed["small"]
    assert (halt.reason, said.status, said.evidence, said.stops) == (
        "done", "verified", ("obs://S1-A1",), (),
    )  # fmt: skip


async def test_one_that_proves_false_stops_the_run_before_what_rests_on_it(lab):
    halt, session = await lab.run(plan(), tools(500))

    said = session.view.assumed["small"]
    assert (said.status, said.stops, SEEN) == ("invalidated", ("S3",), ["S1"])
    assert (halt.kind, halt.code, halt.step) == ("assumption", "assumption:small", "S3")
    assert "The table is small" in halt.says


async def test_what_rests_on_it_is_not_released_later_either(lab):
    _, session = await lab.run(plan(), tools(500), run_id="")
    session.close()

    halt, session = await lab.run(plan(), tools(500), run_id=session.run.run_id)

    assert SEEN == ["S1", "S2"]
    assert session.view.steps["S3"].error_code == "assumption:small"
    assert halt.code == "assumption:small"


@pytest.mark.parametrize("rule", ["steps.S9.output.rows < 1", "steps.S1.output.rows < 100"])
async def test_what_cannot_be_told_yet_stays_open(lab, rule):
    bare = plan_of(step("S2"), assumptions=(TABLE.model_copy(update={"rule": rule}),))

    halt, session = await lab.run(bare, tools(5))

    assert (halt.reason, session.view.assumed) == ("done", {})


async def test_one_without_a_rule_is_what_it_was_a_sentence(lab):
    halt, session = await lab.run(plan(rule=None), tools(500))

    assert (halt.reason, session.view.assumed) == ("done", {})


def test_its_rule_is_checked_like_any_other():
    assert [each.field for each in rules_in(plan())] == ["assumptions[0].rule"]


@pytest.mark.parametrize(
    ("change", "grows"),
    [
        ({}, False),
        ({"statement": "It is tiny"}, False),
        ({"invalidates": ("S2", "S3")}, False),
        ({"invalidates": ()}, True),
        ({"rule": "true"}, True),
        ({"rule": None}, True),
        ({"id": "other"}, True),
        ({"invalidates": (), "status": "invalidated"}, False),
    ],
)
def test_a_version_that_looks_less_or_stops_less_has_grown(change, grows):
    catalog = Registry(tools(5)).catalog()

    assert bool(grown(plan(), plan(**change), catalog)) is grows


def test_a_repair_takes_the_assumption_along_to_what_takes_the_place_of_a_step():
    patch = Patch(operations=(Replace(step="S3", steps=(step("S3a", "S2"),)),))
    catalog = Registry(tools(5)).catalog()
    got = apply(plan(), patch, Author(kind="replanner"), done=frozenset(), catalog=catalog)

    [assumed] = got.plan.assumptions
    assert (assumed.rule, assumed.invalidates) == (TABLE.rule, ("S3a",))
