"""An agent step: a model chooses among the tools of its envelope, and nothing leaves it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plangate.engine.dataflow import run_plan
from plangate.plan.catalog import ArgRule, Labels
from plangate.plan.facts import Rights
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Budget
from plangate.plan.value.step import Check, Route
from plangate.tools.answers import Refused
from plangate.tools.tool import tool
from tests.engine.agents import (
    CALLED,
    DONE,
    TOOLS,
    Log,
    agent,
    bench_for,
    envelope,
    read_log,
    run_agent,
    says,
)
from tests.engine.conftest import ME, plan_of
from tests.engine.models import Scripted

READ = says("read_log", host="web-1")


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLED.clear()


def events(session, kind):
    log = session.journal.log.read(session.run.run_id)
    return [each.event for each in log if each.event.type == kind]


def shown(chat, turn):
    """What the model was shown in a turn of what it did so far."""
    return "\n".join(each["content"] for each in chat.asked[turn])


async def test_it_calls_what_it_may_and_answers_in_the_form_of_the_step(lab):
    check = Check(id="said", level="L1", claim="It has a cause", rule="size(result.cause) > 0")
    chat = Scripted([READ, DONE])

    halt, session = await run_agent(lab, plan_of(agent(success=(check,))), chat)

    assert halt.reason == "done"
    assert session.load(session.view.steps["S1"].output) == {"cause": "memory"}
    assert CALLED == [("read_log", "web-1")]
    assert list(session.view.attempts) == ["S1.1-A1", "S1.2-A1", "S1.3-A1"]
    assert "web-1 ran out of memory" in shown(chat, 1)
    assert (session.view.model_calls, session.view.tool_calls) == (2, 1)
    [verdict] = session.view.verdicts["S1"]
    assert [each.ref for each in verdict.evidence] == ["log://web-1"]


async def test_its_model_is_shown_the_task_the_tools_and_the_data_and_nothing_of_the_run(lab):
    chat = Scripted([DONE])

    await run_agent(lab, plan_of(agent(), inputs={"iban": "DE00"}), chat)

    text = shown(chat, 0)
    assert "Find the cause" in text
    assert "web-1 is down" in text
    assert "read_log [read]" in text
    assert "transfer_money" not in text
    assert "DE00" not in text


OUTSIDE = {
    "a tool that is not in the envelope": (says("transfer_money", cents=5), "outside_envelope"),
    "a tool that nobody has": (says("read_minds", who="me"), "outside_envelope"),
    "a name that only looks alike": (says("READ_LOG", host="w"), "outside_envelope"),
    "arguments that do not fit": (says("read_log", hosts=["w"]), "bad_arguments"),
    "arguments that are no JSON": ('{"tool": "read_log", "arguments": "{"}', "bad_arguments"),
    "arguments that are a list": ('{"tool": "read_log", "arguments": "[]"}', "bad_arguments"),
    "a reference": (says("read_log", host="${inputs.iban}"), "bad_arguments"),
    "a secret": (says("read_log", host="secret://crm/password"), "bad_arguments"),
}


@pytest.mark.parametrize("case", OUTSIDE)
async def test_what_lies_outside_is_refused_recorded_and_told_and_the_step_goes_on(lab, case):
    wish, code = OUTSIDE[case]
    chat = Scripted([wish, DONE])

    halt, session = await run_agent(lab, plan_of(agent(), inputs={"iban": "DE00"}), chat)

    assert (halt.reason, CALLED) == ("done", [])
    [refused] = events(session, "agent_refused")
    assert (refused.step, refused.attempt_id, refused.code) == ("S1", "S1.1-A1", code)
    assert f'refused\\":\\"{code}' in shown(chat, 1) or f'refused":"{code}' in shown(chat, 1)


FLOODS = {
    "a thousand calls in one turn": json.dumps([json.loads(READ)] * 1000),
    "a thousand calls, one after another": READ * 1000,
    "huge arguments": says("read_log", host="x" * 2_000_000),
    "long arguments": says("read_log", host="x" * 30_000),
    "no JSON": "I would rather chat",
}


@pytest.mark.parametrize("case", FLOODS)
async def test_an_answer_that_is_no_single_wish_calls_at_most_one_tool_and_ends_bounded(lab, case):
    chat = Scripted([FLOODS[case]])

    _, session = await run_agent(lab, plan_of(agent(autonomy=envelope(max_steps=3))), chat)

    assert session.view.steps["S1"].status == "failed"
    assert len(CALLED) <= 3
    assert session.view.model_calls <= 3


async def test_an_endless_loop_ends_at_its_bound_and_half_an_answer_is_none(lab):
    chat = Scripted([READ])

    _, session = await run_agent(lab, plan_of(agent(autonomy=envelope(max_steps=4))), chat)

    ended = session.view.steps["S1"]
    assert (ended.status, ended.outcome, ended.error_code) == (
        "failed",
        "permanent",
        "out_of_bounds",
    )
    assert (ended.output, len(chat.asked), len(CALLED)) == (None, 4, 4)


async def test_a_bound_leads_where_a_route_of_the_plan_says(lab):
    step = agent(
        autonomy=envelope(max_steps=1),
        routes=(Route(on="out_of_bounds", action="skip"),),
    )

    _, session = await run_agent(lab, plan_of(step), Scripted([READ]))

    assert session.view.steps["S1"].status == "skipped"


async def test_it_stops_when_its_time_is_over(lab):
    @tool(effect="read")
    async def slow(host: str) -> Log:
        """Take long."""
        await asyncio.sleep(5)
        return {"text": host}

    step = agent(autonomy=envelope(tools=("slow",), max_seconds=0.3))

    _, session = await run_agent(
        lab, plan_of(step), Scripted([says("slow", host="w")]), tools=[slow]
    )

    assert session.view.steps["S1"].error_code == "out_of_bounds"
    assert session.view.attempts["S1.2-A1"].ended.outcome == "cancelled"


async def test_it_stops_before_the_call_that_would_cost_more_than_its_money(lab):
    # A call may take 100 tokens out at 2 USD a million, so the second one is not made.
    step = agent(autonomy=envelope(max_usd=Decimal("0.0015"), max_steps=50))

    _, session = await run_agent(lab, plan_of(step), Scripted([READ]))

    ended = session.view.steps["S1"]
    assert ended.error_code == "out_of_bounds"
    assert "agent.max_usd" in ended.why
    assert session.view.spent_usd <= step.autonomy.max_usd


async def test_a_limit_of_the_run_stops_the_run_and_not_the_step(lab):
    plan = plan_of(agent(), budget=Budget(max_model_calls=1))

    halt, session = await run_agent(lab, plan, Scripted([READ, DONE]))

    assert (halt.reason, session.view.steps["S1"].status) == ("budget", "running")


async def test_a_right_that_is_gone_in_the_middle_is_gone_for_the_next_call(lab):
    @tool(effect="read", scopes=["logs"])
    def read_secret_log(host: str) -> Log:
        """Read a log."""
        CALLED.append(("read_secret_log", host))
        return {"text": host}

    class Fading:
        async def rights(self, principal, run):
            return Rights(principal=principal, scopes=() if CALLED else ("logs",))

    step = agent(autonomy=envelope(tools=("read_secret_log",)))
    chat = Scripted([says("read_secret_log", host="a"), says("read_secret_log", host="b"), DONE])
    session = await asyncio.to_thread(lab.session)
    bench = bench_for(lab, session, plan_of(step), chat, [read_secret_log])

    await run_plan(replace(bench, authorizer=Fading()))
    await session.aflush()

    assert CALLED == [("read_secret_log", "a")]
    assert [each.code for each in events(session, "agent_refused")] == ["tool_gone"]


async def test_rights_that_nobody_knows_end_the_step(lab):
    class Broken:
        async def rights(self, principal, run):
            if len(chat.asked):
                raise OSError("down")
            return ME

    chat = Scripted([READ, DONE])
    session = await asyncio.to_thread(lab.session)
    bench = bench_for(lab, session, plan_of(agent()), chat, TOOLS)

    await run_plan(replace(bench, authorizer=Broken()))

    ended = session.view.steps["S1"]
    assert (ended.outcome, ended.error_code, CALLED) == ("denied", "rights_unknown", [])


async def test_what_one_tool_was_denied_no_other_tool_reaches(lab):
    def reader(name):
        def body(order: str) -> Log:
            """Read an order."""
            CALLED.append((name, order))
            raise Refused("no")

        body.__name__ = name
        return tool(effect="read", reads=["order:{order}"])(body)

    step = agent(autonomy=envelope(tools=("one", "two")))
    chat = Scripted([says("one", order="7"), says("two", order="7"), says("two", order="8"), DONE])

    _, session = await run_agent(lab, plan_of(step), chat, tools=[reader("one"), reader("two")])

    assert CALLED == [("one", "7"), ("two", "8")]
    assert [each.code for each in events(session, "agent_refused")] == ["denied_before"]


async def test_a_result_that_gives_orders_stays_data_and_its_orders_are_refused(lab):
    step = agent(autonomy=envelope(tools=("read_mail",)))
    chat = Scripted([says("read_mail", host="w"), says("transfer_money", cents=999999), DONE])

    _, session = await run_agent(lab, plan_of(step, inputs={"secret": "hush"}), chat)

    assert CALLED == [("read_mail", "w")]
    assert "hush" not in shown(chat, 1)
    last = chat.asked[1][-1]["content"]
    assert last.index("<data") < last.index("Call transfer_money") < last.rindex("</data")
    assert session.view.steps["S1"].status == "done"


async def test_an_answer_that_does_not_fit_is_told_and_may_be_mended(lab):
    chat = Scripted([says("answer", cause=5), DONE])

    _, session = await run_agent(lab, plan_of(agent()), chat)

    assert session.view.steps["S1"].status == "done"
    assert "cause" in shown(chat, 1)


async def test_a_large_result_is_shown_by_its_size(lab):
    @tool(effect="read")
    def dump(host: str) -> Log:
        """Read all."""
        return {"text": "y" * 100_000}

    chat = Scripted([says("dump", host="w"), DONE])
    await run_agent(lab, plan_of(agent(autonomy=envelope(tools=("dump",)))), chat, tools=[dump])

    assert "too large to be shown" in shown(chat, 1)
    assert len(shown(chat, 1)) < 20_000


class Killed(BaseException):
    """Stands for the end of a process."""


async def test_whoever_takes_it_up_again_goes_on_from_the_record_within_the_same_bounds(lab):
    plan = plan_of(agent(autonomy=envelope(max_steps=4)))
    wrong = says("transfer_money", cents=1)
    with pytest.raises(Killed):
        await run_agent(lab, plan, Scripted([READ, wrong, Killed()]))

    chat = Scripted([DONE])
    halt, session = await run_agent(lab, plan, chat, "r1")

    assert halt.reason == "done"
    assert CALLED == [("read_log", "web-1")]
    assert len(chat.asked) == 1
    assert len(events(session, "agent_refused")) == 1
    # Two turns, the one that was lost, and the answer: the bound counts them all.
    assert session.view.model_calls == 4


async def test_a_turn_that_was_lost_counts_against_the_bound(lab):
    plan = plan_of(agent(autonomy=envelope(max_steps=2)))
    with pytest.raises(Killed):
        await run_agent(lab, plan, Scripted([READ, Killed()]))

    _, session = await run_agent(lab, plan, Scripted([DONE]), "r1")

    assert session.view.steps["S1"].error_code == "out_of_bounds"


@pytest.mark.parametrize(
    ("rule", "labels", "says_why"),
    [
        (ArgRule(requires_trusted=True), (), "trusted values only"),
        (ArgRule(max_confidentiality=()), ("pii",), "pii data may reach"),
    ],
)
async def test_a_sink_that_must_not_be_written_by_a_model_keeps_the_step_from_starting(
    lab, rule, labels, says_why
):
    @tool(effect="read", arg_rules={"host": rule}, labels=Labels(confidentiality=labels))
    def look_up(host: str) -> Log:
        """Look a host up."""
        raise AssertionError

    step = agent(autonomy=envelope(tools=("look_up",), labels=labels))
    chat = Scripted([DONE])

    _, session = await run_agent(lab, plan_of(step), chat, tools=[look_up])

    ended = session.view.steps["S1"]
    assert (ended.outcome, ended.error_code, chat.asked) == ("denied", "forbidden_flow", [])
    assert says_why in ended.why


async def test_a_tool_that_acts_keeps_the_step_from_starting(lab):
    step = agent(autonomy=envelope(tools=("transfer_money",), ceiling="irreversible"))
    chat = Scripted([says("transfer_money", cents=1), DONE])

    _, session = await run_agent(lab, plan_of(step), chat)

    assert (session.view.steps["S1"].error_code, CALLED, chat.asked) == ("forbidden_flow", [], [])


async def test_policy_is_asked_for_each_tool_of_the_envelope_at_its_call(lab):
    deny = '[[allow]]\ntool = "*"\n[[deny]]\ntool = "read_log"\nreason = "not today"\n'
    lab.policy = Policy.from_toml(f"schema = 1\n{deny}")

    _, session = await run_agent(lab, plan_of(agent()), Scripted([READ, DONE]))

    assert CALLED == []
    [refused] = events(session, "agent_refused")
    assert (refused.code, refused.why) == ("policy_denied", "not today")


WORDS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["read_log", "read_mail", "transfer_money", "answer", "S1", "agent", "*"]),
)
ARGUMENTS = st.one_of(
    st.text(max_size=60),
    st.dictionaries(
        st.sampled_from(["host", "cents", "cause", "x"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.sampled_from(["${inputs.a}", "${S1.cause}", "secret://a", "web"]),
            st.text(max_size=20),
        ),
        max_size=3,
    ).map(json.dumps),
)
REPLIES = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.builds(
            lambda name, args: json.dumps({"tool": name, "arguments": args}), WORDS, ARGUMENTS
        ),
    ),
    min_size=1,
    max_size=8,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    replies=REPLIES,
    names=st.sets(st.sampled_from(["read_log", "read_mail", "transfer_money"]), min_size=1),
    ceiling=st.sampled_from(["none", "read", "write", "irreversible"]),
    most=st.integers(1, 6),
)
def test_whatever_a_model_writes_nothing_is_called_outside_of_its_envelope(
    lab, replies, names, ceiling, most
):
    CALLED.clear()
    step = agent(autonomy=envelope(tools=tuple(sorted(names)), ceiling=ceiling, max_steps=most))
    chat = Scripted(list(replies))

    _, session = asyncio.run(run_agent(lab, plan_of(step), chat))

    allowed = names & ({"read_log", "read_mail"} if ceiling != "none" else set())
    assert {name for name, _ in CALLED} <= allowed
    assert all("${" not in str(arg) and "secret://" not in str(arg) for _, arg in CALLED)
    assert len(CALLED) <= most
    assert len(chat.asked) <= most
    ended = session.view.steps["S1"]
    assert ended.status in ("done", "failed")
    if ended.status == "done":
        assert set(session.load(ended.output)) == {"cause"}


def test_the_read_tool_of_these_tests_is_one(lab):
    assert not read_log.spec.effect.acts


SECRETS = (
    "password=hunter2secret",
    "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
    "postgres://u:hunter2secret@h/db",
    '{"api_key": "hunter2secret"}',
)


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_secret_in_a_result_is_masked_and_the_model_reads_around_it(lab, secret):
    @tool(effect="read")
    def dump(host: str) -> Log:
        """Read all."""
        return {"text": secret}

    chat = Scripted([says("dump", host="w"), says("dump", host=secret), DONE])
    step = agent(autonomy=envelope(tools=("dump",)))
    _, session = await run_agent(lab, plan_of(step), chat, tools=[dump])

    assert session.view.steps["S1"].status == "done", session.view.steps["S1"].why
    told = " ".join(shown(chat, turn) for turn in range(len(chat.asked)))
    assert "hunter2secret" not in told
    assert "abcdefghijklmnopqrstuvwxyz" not in told
