"""Theme D, planning: what other people's agents got wrong before anything ran, tried on ours.

The reports are those of docs/discussions/field-reports.md, by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from langgraph.types import Command

from plangate import create_plan_agent, tool
from plangate.budget.prices import PriceBook
from plangate.engine.triggers import halt_of
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.view import fold
from plangate.models.planning import Brief, draft_plan
from plangate.nodes.ending import ending_of
from plangate.plan.errors import PlanRejected
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Budget
from tests.door.ledgers import WORLD, office
from tests.door.test_model import (
    CONFIG,
    GOAL,
    POLICY,
    Notes,
    agent,
    arg,
    draft,
    keep,
    kept,
    notes,
    view_of,
)
from tests.models import test_draft
from tests.models.fake_openai import Said, serving
from tests.models.test_strict import nodes
from tests.plan import test_patch
from tests.plan.workshop import facts

DRAFT = json.loads(draft())
ALLOWED = 'schema = 1\n[[allow]]\ntool = "*"\n[[deny]]\ntool = "notes_of_all"\n'


@pytest.fixture
def url(tmp_path) -> str:
    kept.clear()
    return f"sqlite:///{tmp_path}/journal.db"


@tool(effect="read", scopes=("vault:read",))
def vault(pattern: str) -> Notes:
    """Look where this principal may not."""
    return Notes(len(pattern))


@tool(effect="read")
def notes_of_all(pattern: str) -> Notes:
    """Look where the policy lets nobody."""
    return Notes(len(pattern))


def drafted(*tools: str, **more: Any) -> str:
    """A draft that calls each tool once."""
    steps = [
        {**DRAFT["steps"][0], "id": f"S{at}", "tool": name} for at, name in enumerate(tools, 1)
    ]
    return json.dumps({**DRAFT, "steps": steps, **more})


def raw(journal_url: str) -> Iterator[str]:
    """What the model wrote, draft by draft, as it is kept."""
    journal = Journal.open(journal_url)
    [run] = journal.runs.list()
    view = fold(journal.log.read(run.run_id))
    kept_texts = [journal.artifacts.get(each.draft) for each in view.refused]
    kept_texts += [journal.artifacts.get(each.draft) for each in view.plans.values() if each.draft]
    journal.close()
    return iter(map(str, kept_texts))


# 22: tools that do not exist, nearly exist, or exist for others
def test_an_unknown_and_a_forbidden_tool_differ_and_no_near_match_takes_their_place(url):
    wrong = Said(content=drafted("search_files", "kee-p", "rm", "vault", "notes_of_all"))
    with serving(wrong) as fake:
        model = ChatOpenAI(model="gpt-5-mini", base_url=fake.url, api_key="not-a-key")
        tools = [notes, keep, vault, notes_of_all]
        done = create_plan_agent(model, tools, policy=ALLOWED, journal=url).invoke(
            {**GOAL, "goal": "Keep this note. You may also use the tool rm."}, CONFIG
        )
        told = fake.requests[1]["messages"][-1]["content"]

    view = view_of(url)
    errors = [each for each in view.validated[1].issues if each.severity == "error"]
    codes = {(each.step, each.code) for each in errors if each.field == "tool"}
    assert codes == {
        ("S1", "unknown_tool"),
        ("S2", "unknown_tool"),
        ("S3", "unknown_tool"),
        ("S4", "forbidden_tool"),
        ("S5", "policy_denied"),
    }
    hints = {each.step: each.hint for each in errors if each.code == "unknown_tool"}
    assert "keep" in hints["S2"]
    assert {"keep", "notes"} <= set(hints["S1"].replace(".", "").replace(",", "").split())
    assert "unknown_tool" in told, "the planner is told"
    assert (len(fake.requests), view.questions, kept) == (2, {}, []), "bounded, and nobody asked"
    assert (done["verdict"], done["ending"]) == ("fail", "failed")
    assert [json.loads(each)["steps"][1]["tool"] for each in raw(url)] == ["kee-p", "kee-p"]


# 23: a graph that stops half-way
def test_what_is_pending_and_can_never_run_is_an_error_and_no_success(tmp_path):
    halt = halt_of([], ["S3"])
    with office(tmp_path) as shop:
        view = shop.runtime.view(shop.start())
    view.triggers.append(TriggerFired(kind=halt.reason, step=halt.step, says=halt.says))

    ending = ending_of(view)

    assert (halt.reason, halt.says) == ("stranded", "1 steps can never run")
    assert (ending.ending, ending.verdict) == ("failed", "fail")
    assert "stranded" in ending.why


def test_a_person_cannot_edit_a_cycle_or_a_stranded_step_into_a_plan(tmp_path):
    with office(tmp_path) as shop:
        run_id = shop.start()
        for after in ("S5", "S9"):
            edit = {"op": "add", "path": "/steps/S1/after/-", "value": after}
            why = shop.say(run_id, "edit", edits=(edit,)).why
            assert ("S1 waits for S5" if after == "S5" else "'S9', which is not a step") in why

        assert shop.runtime.view(run_id).version == 1
        assert WORLD.done == []


def test_a_repair_that_makes_a_cycle_is_refused_like_any_plan():
    patched = test_patch.applied({"op": "reorder", "step": "S1", "after": ["S5"]})

    report = validate(patched.plan, facts())

    said = [each.says for each in report.errors if each.code == "cycle"]
    assert [all(f"S{n}" in each for n in (1, 3, 4, 5)) for each in said] == [True]
    assert 5 in report.not_evaluated


# 24: free-form arguments and strict providers
ODD = {"": 1, "键": [[1, [2, None]], {"ключ": "é"}], "a b": {}}


def odd_draft(literal: str = json.dumps(ODD, ensure_ascii=False)) -> str:
    step = test_draft.step("S1", arg("x", literal=literal))
    return json.dumps(test_draft.draft(step), ensure_ascii=False)


def brief() -> Brief:
    return Brief(
        goal="g", goal_id="g", inputs={}, catalog=test_draft.CATALOG,
        policy=Policy.from_toml(POLICY), budget=Budget(),
    )  # fmt: skip


async def plan_by(chat: Any) -> Any:
    got = await draft_plan(chat, brief(), book=PriceBook(), on_call=lambda _: None)
    assert got.plan is not None, got.issues
    return got.plan


async def test_a_strict_and_a_plain_provider_lead_to_the_same_plan_with_any_arguments():
    with serving(Said(content=odd_draft())) as fake:
        strict = await plan_by(ChatOpenAI(model="m", base_url=fake.url, api_key="not-a-key"))
        sent = fake.requests[0]["response_format"]["json_schema"]
    plain = await plan_by(FakeListChatModel(responses=[f"Sure:\n```json\n{odd_draft()}\n```"]))

    assert strict.content_hash == plain.content_hash
    assert json.loads(strict.model_dump_json())["steps"][0]["args"] == {"x": ODD}
    assert sent["strict"] is True
    for node in nodes(sent["schema"]):
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert sorted(node["required"]) == sorted(node["properties"])
        assert not {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} & (
            node.keys() - {"properties"}
        )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (odd_draft('{"a": 1, "a": 2}'), "bad_value"),
        (odd_draft().replace('"tool": "read"', '"tool": "read", "tool": "pay"'), "unparsable"),
    ],
)  # fmt: skip
def test_a_key_given_twice_is_refused_and_neither_value_is_taken(text, code):
    [issue] = test_draft.compiled(text)

    assert (issue.code, "occurs twice" in issue.says) == (code, True)


# 33: another order, a doubled id, a missing one
def test_steps_are_told_apart_by_id_in_whatever_order_they_come():
    steps = [
        test_draft.step(f"S{n}", arg("x", literal=str(n)), objective=f"number {n}")
        for n in (1, 2, 3)
    ]
    straight = test_draft.compiled(test_draft.draft(*steps))
    mixed = test_draft.compiled(test_draft.draft(steps[2], steps[0], steps[1]))

    assert mixed.by_id == straight.by_id
    assert [each.id for each in mixed.steps] == ["S3", "S1", "S2"]


def test_a_doubled_and_a_missing_id_go_back_to_the_planner(url):
    doubled = drafted("notes", "notes").replace('"S2"', '"S1"')
    missing = json.loads(drafted("notes", "keep"))
    del missing["steps"][1]["id"]
    with serving(
        Said(content=doubled), Said(content=json.dumps(missing)), Said(content=draft())
    ) as fake:
        agent(fake, url).invoke(GOAL, CONFIG)
        told = [each["messages"][-1]["content"] for each in fake.requests[1:]]

    assert "duplicate_id" in told[0]
    assert "missing_field" in told[1]
    assert "steps[1].id" in told[1]
    assert view_of(url).validated[2].valid


# 34: what is no plan
NO_PLAN = {
    "an escape as in LaTeX": draft().replace("Keep it", "\\alpha it"),
    "a bare list": json.dumps(DRAFT["steps"]),
    "cut off": draft()[:-40],
    "empty": "",
    "too many steps": drafted(*["keep"] * 61),
    "full-width punctuation": draft().replace(",", "\uff0c").replace(":", "\uff1a"),
    "a field is missing": json.dumps({k: v for k, v in DRAFT.items() if k != "steps"}),
}


@pytest.mark.parametrize("text", NO_PLAN.values(), ids=NO_PLAN)
def test_what_is_no_plan_ends_planning_with_the_text_kept_and_no_question(url, text):
    with serving(Said(content=text)) as fake, pytest.raises(PlanRejected) as caught:
        agent(fake, url).invoke(GOAL, CONFIG)

    view = view_of(url)
    assert caught.value.issues == view.refused[-1].issues
    assert len(fake.requests) == 2, "the same fault twice is not asked about a third time"
    assert [*raw(url)] == [text, text]
    assert view.ended is not None
    assert (view.ended.ending, view.ended.verdict) == ("failed", "fail")
    assert caught.value.issues[0].code in view.ended.why
    assert (view.questions, kept) == ({}, [])


def test_after_an_unreadable_draft_the_planner_is_told_about_that_one(url):
    with serving(
        Said(content=drafted("invented")), Said(content="I give up."), Said(content=draft())
    ) as fake:
        agent(fake, url).invoke(GOAL, CONFIG)
        told = fake.requests[2]["messages"][-1]["content"]

    assert "holds no JSON object" in told
    assert "invented" not in told


def test_prose_and_fences_around_a_plan_do_no_harm(url):
    with serving(Said(content=f"Here {{it}} is:\n```json\n{draft()}\n```\nAll right?")) as fake:
        asked = agent(fake, url).invoke(GOAL, CONFIG)

    assert asked["plan_version"] == 1
    assert len(fake.requests) == 1


# 49: the reviewer's words
def test_a_comment_stays_with_its_version_and_the_next_one_comes_with_the_difference(url):
    changed = json.loads(draft())
    changed["steps"][0]["objective"] = "Keep it as CSV"
    words = "CSV, not XLSX; skip step 2\n\u00abword for word\u00bb"
    with serving(Said(content=draft()), Said(content=json.dumps(changed))) as fake:
        planner = agent(fake, url)
        planner.invoke(GOAL, CONFIG)
        asked = planner.invoke(
            Command(resume={"decision": "changes", "comment": words, "by": "ann"}), CONFIG
        )

    view = view_of(url)
    [(key, decision)] = view.decisions.items()
    payload = asked["__interrupt__"][0].value
    assert decision.comment == words
    assert view.questions[key].plan_version == 1
    assert payload["diff"]["updated"] == {"S1": ["objective"]}
    assert (payload["diff"]["from_version"], payload["diff"]["to_version"]) == (1, 2)
    assert payload["warnings"] == []
