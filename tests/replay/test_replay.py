"""A recorded run driven again: nothing differs on unchanged code, and a change is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from plangate.agent import Agent, load_agent
from plangate.graph.payload import Answer
from plangate.journal.journal import Journal
from plangate.journal.points import watch
from plangate.limits import raise_limits
from plangate.plan.errors import ConfigError, JournalError
from plangate.plan.value.frozen import thaw
from plangate.plan.value.plan import Budget
from plangate.prompts import loader
from plangate.replay.drive import Replayed, replay
from plangate.runtime import Options, Runtime
from tests.door.conftest import Shop
from tests.door.ledgers import WORLD, Office, office
from tests.door.letters import POLICY as LETTERS_POLICY
from tests.door.letters import TEMPLATE as LETTER
from tests.door.letters import Post, given
from tests.door.test_limits import Clock as Time
from tests.door.test_model import POLICY as NOTES_POLICY
from tests.door.test_model import draft, keep, kept, notes


class Killed(BaseException):
    """Stands for the end of a process."""


class Case(NamedTuple):
    journal: Journal
    run_id: str
    agent: Agent

    def again(self, agent: Agent | None = None, **how: Any) -> Replayed:
        return replay(self.journal, self.run_id, agent or self.agent, **how)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    made = Shop(tmp_path_factory.mktemp("shop"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def repaired(shop: Shop) -> Case:
    """One refund with a repair, for all that only looks at it."""
    run_id = shop.start("no-logistics-record")
    shop.finish(run_id)
    return Case(shop.runtime.journal, run_id, shop.agent)


def lines(replayed: Replayed) -> list[str]:
    return [each.line for each in replayed.differences]


def rows(journal: Journal) -> list[str]:
    """Everything that a journal's file holds."""
    path = journal.url.removeprefix("sqlite:///")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as opened:
        return list(opened.iterdump())


def changed(agent: Agent, tool: str, **spec: Any) -> Agent:
    """The agent with another contract of one tool."""
    tools = [
        replace(each, spec=each.spec.model_copy(update=spec)) if each.spec.name == tool else each
        for each in agent.tools
    ]
    return replace(agent, tools=tuple(tools))


def test_a_replay_calls_nothing_and_writes_nothing(shop, repaired):
    before, payments = rows(repaired.journal), shop.world.payments()
    untouchable = replace(repaired.agent, connect=_no_world)

    replayed = repaired.again(untouchable)

    assert (lines(replayed), replayed.changes) == ([], ())
    assert replayed.compared > 50
    assert (rows(repaired.journal), shop.world.payments()) == (before, payments)


def _no_world(_: str) -> None:
    raise AssertionError("a replay opened the world")


def test_a_policy_that_changed_is_named_with_what_it_changes(repaired):
    stricter = repaired.agent.policy.replace("over = 10000", "over = 1000")

    replayed = repaired.again(replace(repaired.agent, policy=stricter))

    assert [each.says for each in replayed.changes] == ["the policy changed"]
    assert "tier v1: was selective, would be full (the policy changed)" in lines(replayed)
    assert {each.kind for each in replayed.differences} == {"tier", "question", "plan"}


def test_a_policy_that_forbids_the_effect_ends_the_replay_at_the_check(repaired):
    denial = '\n[[deny]]\ntool = "create_refund"\nreason = "closed"\n'

    found = lines(repaired.again(replace(repaired.agent, policy=repaired.agent.policy + denial)))

    assert "issues v1: was none, would be policy_denied@S6 (the policy changed)" in found
    assert any(each.startswith("effect S6") and "would be nothing" in each for each in found)
    assert "end ending: was completed, would be failed (the policy changed)" in found


def test_a_change_without_consequences_is_named_and_is_no_difference(repaired):
    said = repaired.agent.policy.replace("approval_ttl_s = 3600", "approval_ttl_s = 7200")
    agent = changed(replace(repaired.agent, policy=said), "query_order", summary="Other words.")

    replayed = repaired.again(agent)

    assert lines(replayed) == []
    assert [each.part for each in replayed.changes] == ["policy", "tool:query_order"]


def test_a_schema_that_changed_is_named_where_the_recorded_answer_no_longer_fits(repaired):
    spec = next(each.spec for each in repaired.agent.tools if each.spec.name == "query_order")
    output = thaw(spec.output)
    output["properties"]["order_id"] = {"type": "integer"}

    found = lines(repaired.again(changed(repaired.agent, "query_order", output=output)))

    assert any(
        "(tool query_order has another schema)" in each and each.startswith(("issues", "attempt"))
        for each in found
    )


def test_a_tool_that_is_gone_is_named(repaired):
    left = tuple(each for each in repaired.agent.tools if each.spec.name != "search_policy")

    policy = repaired.agent.policy.replace('"search_policy"', '"query_order"')

    found = lines(repaired.again(replace(repaired.agent, tools=left, policy=policy)))

    assert [each for each in found if each.startswith("plan v1 valid: was yes, would be no")]
    assert "tool search_policy is gone" in " ".join(found)


def test_a_template_that_changed_is_named_as_the_reason_for_another_plan(repaired):
    text = repaired.agent.templates[0].replace("Read the order", "Look the order up")
    assert text != repaired.agent.templates[0]

    found = repaired.again(replace(repaired.agent, templates=(text,)))

    assert found.differences[0].line.startswith("plan v1 content hash: was ")
    assert found.differences[0].why == ("template refund changed",)
    assert found.differences[-1].kind == "run"


def test_a_repair_rule_that_is_gone_is_named_as_the_reason_for_another_end(repaired):
    found = repaired.again(replace(repaired.agent, repairs=""))

    repair = [each for each in found.differences if each.kind == "repair"]
    assert repair[0].why == ("the repair rules changed",)


@pytest.fixture(scope="module")
def planned(tmp_path_factory) -> Iterator[Case]:
    """A run whose plan a model wrote; the first draft named a tool that does not exist."""
    kept.clear()
    said = iter([draft("invented"), draft()])
    agent = Agent(name="notes", tools=(notes, keep), policy=NOTES_POLICY)
    url = f"sqlite:///{tmp_path_factory.mktemp('notes')}/journal.db"
    runtime = Runtime(agent, url, Options(model=Chat(said)))
    given = {"goal": "Keep this note", "inputs": {"text": "milk"}}
    for _ in runtime.start(given, run_id="run_notes"):
        pass
    yield Case(runtime.journal, "run_notes", agent)
    runtime.close()


class Chat:
    """A chat model that writes what it is given."""

    model_name = "gpt-5-mini"

    def __init__(self, said: Iterator[str]) -> None:
        self.said = said

    async def ainvoke(self, _messages: object) -> Any:
        return SimpleNamespace(content=next(self.said), usage_metadata=None)


def test_what_a_model_wrote_is_written_again_without_asking_it(planned):
    assert lines(planned.again()) == []


def test_a_prompt_that_changed_is_named(planned, tmp_path, monkeypatch):
    shutil.copytree(Path(loader.__file__).parent, tmp_path / "prompts")
    prompt = tmp_path / "prompts/planner.md"
    prompt.write_text(prompt.read_text() + "\nBe brief.\n")
    monkeypatch.setattr(loader, "resources", SimpleNamespace(files=lambda _: tmp_path / "prompts"))

    replayed = planned.again()

    assert [each.part for each in replayed.changes] == ["prompt:planner"]
    assert {each.kind for each in replayed.differences} == {"model"}
    assert all(each.why == ("prompt planner changed",) for each in replayed.differences)


def test_another_model_is_asked_and_its_plan_is_compared(planned):
    other = json.loads(draft())
    other["steps"][0]["objective"] = "Keep it well"

    replayed = planned.again(model=Chat(iter([json.dumps(other)])))

    assert any(each.startswith("plan v1 content hash: was ") for each in lines(replayed))
    assert kept == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["attempt.started", "effect.returned"])
def test_a_run_whose_owner_was_killed_and_that_another_finished_replays_alike(tmp_path, point):
    with office(tmp_path) as made:
        run_id = made.start()
        made.say(run_id)
        with pytest.raises(Killed):
            killed_at(point, made, run_id)
        cut = replay(made.runtime.journal, run_id, made.runtime.agent)
        made.go(run_id)
        done, reads = list(WORLD.done), list(WORLD.reads)

        replayed = replay(made.runtime.journal, run_id, made.runtime.agent)

        assert lines(replayed) == []
        # What went on beside the effect may not have been on the disk yet when its owner died.
        assert [each for each in lines(cut) if ": was nothing, would be " not in each] == []
        assert (WORLD.done, WORLD.reads) == (done, reads)


def killed_at(point: str, made: Office, run_id: str) -> None:
    def deadly(name: str) -> None:
        if name == point:
            watch(None)
            raise Killed

    watch(deadly)
    try:
        made.go(run_id)
    finally:
        watch(None)


def test_a_run_that_waits_for_a_person_replays_up_to_the_question(tmp_path):
    with office(tmp_path) as made:
        run_id = made.start()
        waiting = replay(made.runtime.journal, run_id, made.runtime.agent)
        made.say(run_id)
        said = replay(made.runtime.journal, run_id, made.runtime.agent)

    assert (lines(waiting), lines(said)) == ([], [])


def test_an_effect_that_another_run_had_made_is_found_again(shop):
    first = shop.start("straightforward")
    shop.finish(first)
    second = shop.start("straightforward")
    shop.finish(second)

    assert lines(replay(shop.runtime.journal, second, shop.agent)) == []


def test_a_call_that_nobody_ever_made_is_a_difference_and_no_call(tmp_path):
    with office(tmp_path) as made:
        WORLD.blind = True
        today, made.runtime = made.runtime, once(made.runtime)
        run_id = made.start()
        made.say(run_id)
        made.go(run_id)
        reads = list(WORLD.reads)

        found = lines(replay(made.runtime.journal, run_id, today.agent))

        today.close()
    says = "call S1-A2 would call look: was never made, would be made (tool look has another"
    assert [each for each in found if each.startswith(says)], found
    assert reads == WORLD.reads


def once(runtime: Runtime) -> Runtime:
    """The same agent, whose reads are tried once only."""
    return Runtime(changed(runtime.agent, "look", max_attempts=1), runtime.journal.url)


def test_a_run_that_is_unknown_is_said_to_be(repaired):
    with pytest.raises(ConfigError, match="run_none"):
        replay(repaired.journal, "run_none", repaired.agent)


def test_another_agent_is_refused(repaired, planned):
    with pytest.raises(ConfigError, match="is of agent 'notes', and this is agent 'refund'"):
        replay(planned.journal, planned.run_id, repaired.agent)


def test_a_record_that_lacks_a_value_is_refused_before_anything_is_driven(repaired, tmp_path):
    path = Path(repaired.journal.url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as source, sqlite3.connect(tmp_path / "journal.db") as copy:
        source.backup(copy)
        copy.execute("DELETE FROM artifacts WHERE ref IN (SELECT output FROM effects)")
    with (
        Journal.open(f"sqlite:///{tmp_path}/journal.db") as journal,
        pytest.raises(JournalError),
    ):
        replay(journal, repaired.run_id, load_agent("refund"))


@pytest.mark.parametrize("policy", ["", "[limits.day]\nmax_tool_calls = 9\n"])
def test_a_run_that_stopped_at_a_limit_and_was_raised_is_driven_alike(tmp_path, policy):
    post = Post(tmp_path, busy=2)
    budget, rules = Budget(max_tool_calls=4), LETTERS_POLICY + policy
    runtime = post.open(budget=budget, policy=rules)
    list(runtime.start(given(), run_id="r"))
    runtime.answer("r", Answer(decision="approve", by="ann"))
    list(runtime.advance("r"))
    raise_limits(runtime, "r", {"max_tool_calls": "9"}, by="ann")
    list(runtime.advance("r"))
    agent = Agent(name="post", tools=post.tools(), policy=rules, templates=(LETTER,), budget=budget)

    again = replay(runtime.journal, "r", agent)

    assert runtime.view("r").ended.verdict == "pass"
    assert lines(again) == []
    post.close()


def test_a_run_that_stands_at_a_limit_is_driven_as_far_as_it_came(tmp_path):
    post = Post(tmp_path, busy=2)
    budget = Budget(max_tool_calls=4)
    runtime = post.open(budget=budget)
    list(runtime.start(given(), run_id="r"))
    runtime.answer("r", Answer(decision="approve", by="ann"))
    list(runtime.advance("r"))
    list(runtime.advance("r"))
    agent = Agent(
        name="post", tools=post.tools(), policy=LETTERS_POLICY, templates=(LETTER,), budget=budget
    )

    again = replay(runtime.journal, "r", agent)

    assert runtime.view("r").stopped.limit == "max_tool_calls"
    assert lines(again) == []
    post.close()


def test_a_run_that_the_day_stopped_because_of_others_is_driven_alike(tmp_path):
    post, clock = Post(tmp_path), Time()
    rules = LETTERS_POLICY + "[limits.day]\nmax_tool_calls = 5\n"
    runtime = post.open(policy=rules, clock=clock)
    for name, to in (("r1", "Ann"), ("r2", "Bob")):
        list(runtime.start(given(to), run_id=name))
        runtime.answer(name, Answer(decision="approve", by="ann"))
        list(runtime.advance(name))
    stopped = runtime.view("r2").stopped
    clock.now += timedelta(days=1)
    list(runtime.advance("r2"))
    runtime.answer("r2", Answer(decision="approve", by="ann"))
    list(runtime.advance("r2"))
    agent = Agent(name="post", tools=post.tools(), policy=rules, templates=(LETTER,))

    again = replay(runtime.journal, "r2", agent)

    assert (stopped.limit, runtime.view("r2").ended.verdict) == ("day.max_tool_calls", "pass")
    assert lines(again) == []
    post.close()
