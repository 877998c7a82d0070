from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plangate.plan.catalog import Catalog, Undo
from plangate.plan.compensation import AUTHOR, Done, Undoing, compensation, undoing
from plangate.plan.facts import Facts, Rights
from plangate.plan.issue import Issue
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.tier import tier_of
from tests.plan.workshop import TEXT, record, spec

SEEN = record(holder=TEXT)
LET_GO: dict[str, Any] = {"tool": "release", "look": "look", "gone": "observed.holder == ''"}
LOOK = spec("look", params=record(seat=TEXT), output=SEEN)
RELEASE = spec("release", "write", params=record(ticket=TEXT), key="release:{ticket}")


def catalog(undo: Any, *more: Any, release: Any = RELEASE) -> Catalog:
    hold = spec(
        "hold",
        "write",
        params=record(seat=TEXT, holder=TEXT),
        output=record(ticket=TEXT, seat=TEXT),
        key="hold:{seat}",
        undo=undo,
    )
    return Catalog.of([LOOK, release, hold, *more])


def held(seat: str = "A1", **output: Any) -> Done:
    return Done(
        effect_key=f"key-{seat}",
        business_key=f"hold:{seat}",
        step="S1",
        tool="hold",
        args={"seat": seat, "holder": "Ann"},
        output={"ticket": f"T-{seat}", "seat": seat, **output},
    )


def test_arguments_come_from_the_result_then_from_the_call_and_by_another_name_where_mapped():
    by_name = undoing(held(), catalog(LET_GO))
    mapped = undoing(held(), catalog({**LET_GO, "args": {"ticket": "args.holder"}}))

    assert isinstance(by_name, Undoing)
    assert isinstance(mapped, Undoing)
    assert (by_name.args, by_name.look_args) == ({"ticket": "T-A1"}, {"seat": "A1"})
    assert mapped.args == {"ticket": "Ann"}


@pytest.mark.parametrize(
    ("undo", "output", "more", "code"),
    [
        (None, {}, {}, "no_undo"),
        ({**LET_GO, "tool": "absent"}, {}, {}, "no_undo"),
        ("release", {}, {}, "undo_unproved"),
        (LET_GO, {"ticket": 7}, {}, "undo_unfit"),
        ({**LET_GO, "args": {"ticket": "output.id"}}, {}, {}, "undo_unfit"),
        ({**LET_GO, "tool": "hold"}, {}, {}, "undo_is_the_effect"),
        (
            LET_GO,
            {},
            {"release": spec("release", "write", params=record(seat=TEXT), key="hold:{seat}")},
            "undo_is_the_effect",
        ),
    ],
)
def test_what_cannot_be_undone_for_sure_is_an_issue_and_no_guess(undo, output, more, code):
    found = undoing(held(**output), catalog(undo, **more))

    assert isinstance(found, Issue)
    assert (found.code, found.step) == (code, "S1")


def test_a_tool_that_the_principal_may_not_use_undoes_nothing():
    locked = spec("release", "write", params=record(ticket=TEXT), scopes=("seats:free",))
    specs = catalog(LET_GO, release=locked).tools.values()

    found = undoing(held(), Catalog.of(specs, scopes=[]))

    assert isinstance(found, Issue)
    assert (found.code, "needs scope seats:free" in found.says) == ("no_undo", True)


def plan_of(*seats: str, **undo: Any) -> Any:
    known = catalog({**LET_GO, **undo})
    found = [undoing(held(seat), known) for seat in seats]
    made = compensation(
        [each for each in found if isinstance(each, Undoing)],
        goal="Take it back",
        goal_id="undo:g",
        catalog_hash="",
        policy_hash="",
    )
    return made, known


def test_the_plan_of_an_undo_is_one_chain_that_passes_every_layer_and_always_asks():
    plan, known = plan_of("B2", "A1", only_if="result.holder != ''")
    facts = Facts(
        catalog=known,
        rights=Rights(principal="ann"),
        policy=Policy.from_toml('schema = 1\n[[allow]]\ntool = "*"\n'),
        now=None,  # type: ignore[arg-type]
    )

    assert [(step.id, step.after) for step in plan.steps] == [
        ("L1", ()),
        ("U1", ("L1",)),
        ("L2", ("U1",)),
        ("U2", ("L2",)),
    ]
    assert [each for each in validate(plan, facts).issues if each.severity == "error"] == []
    assert tier_of(plan, facts).confirm == ("U1", "U2")
    assert (plan.author, plan.inputs["E1"]["undo"]) == (AUTHOR, {"ticket": "T-B2"})


@given(seats=st.lists(st.text("AB123", min_size=1, max_size=3), min_size=1, max_size=6))
def test_whatever_was_done_each_undo_waits_for_the_one_before_and_has_the_recorded_values(seats):
    plan, _ = plan_of(*seats)

    steps = plan.steps
    assert [step.id for step in steps] == [f"U{n}" for n in range(1, len(seats) + 1)]
    assert [step.after for step in steps[1:]] == [(step.id,) for step in steps[:-1]]
    assert [plan.inputs[f"E{n}"]["undo"]["ticket"] for n in range(1, len(seats) + 1)] == [
        f"T-{seat}" for seat in seats
    ]


def test_an_undo_says_where_it_goes_when_the_outside_refuses():
    asks, _ = plan_of("A1")
    aborts, _ = plan_of("A1", on_failure="abort")

    assert {route.action for route in asks.steps[0].routes} == {"ask"}
    assert {r.on: r.action for r in aborts.steps[0].routes}["permanent"] == "abort"


@pytest.mark.parametrize(
    "undo",
    [
        {"tool": "release", "look": "look"},
        {"tool": "release", "gone": "true"},
        {"tool": "release", "only_if": "true"},
        {"tool": "release", "args": {"ticket": "somewhere"}},
    ],
)
def test_an_undo_that_could_not_be_seen_or_filled_is_no_contract(undo):
    with pytest.raises(ValidationError):
        Undo.model_validate(undo)
