from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from langchain_openai import ChatOpenAI

from plangate.graph.payload import Answer
from plangate.journal.events import TriggerFired
from plangate.journal.runs import Run
from plangate.limits import raise_limits
from plangate.plan.catalog import Catalog
from plangate.plan.errors import ConfigError, Denied
from plangate.plan.facts import Facts, Rights
from plangate.plan.policy import Policy
from plangate.plan.spent import Spent
from plangate.plan.value.plan import Budget
from tests.door.letters import POLICY, TEMPLATE, Post, given
from tests.models.fake_openai import Said, serving

APPROVE = Answer(decision="approve", by="ann")
ME = Rights(principal="local")
RUN_CAP = POLICY + '[limits.run]\nmax_tool_calls = 6\nmax_usd = "5"\n'
DAY_CAP = POLICY + "[limits.day]\nmax_tool_calls = 4\n"


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def post(tmp_path):
    made = Post(tmp_path)
    yield made
    made.close()


def worked(runtime, run_id, to="Ann"):
    """Take a run as far as it goes with the approval of its plan."""
    list(runtime.start(given(to), run_id=run_id))
    if runtime.waits(run_id):
        runtime.answer(run_id, APPROVE)
        list(runtime.advance(run_id))
    return runtime.view(run_id)


def partial(runtime, run_id):
    return runtime.journal.artifacts.get(runtime.view(run_id).partial)


def test_a_stop_says_what_is_done_what_is_not_which_limit_and_what_to_do(post):
    post.busy = 2
    runtime = post.open(budget=Budget(max_tool_calls=4))

    view = worked(runtime, "r")

    report = partial(runtime, "r")
    assert (runtime.journal.runs.get("r").status, view.ended, post.sent) == ("stopped", None, [])
    assert report["stopped"] == {
        "limit": "max_tool_calls",
        "spent": "4",
        "needs": "1",
        "allowed": "4",
        "step": "S2",
        "done": ["S1"],
        "not_done": ["S2"],
        "what_to_do": "Raise it: plangate run resume r --raise max_tool_calls=AMOUNT,"
        " up to the policy's cap.",
    }
    assert (report["ending"], report["verdict"]) == ("stopped", "unknown")


def test_a_limit_that_a_person_raised_lets_the_run_go_on_from_where_it_stood(post):
    post.busy = 2
    runtime = post.open(budget=Budget(max_tool_calls=4))
    worked(runtime, "r")

    raise_limits(runtime, "r", {"max_tool_calls": "9"}, by="ann", reason="it is worth it")
    list(runtime.advance("r"))

    view = runtime.view("r")
    assert (view.ended.verdict, post.sent) == ("pass", ["Ann"])
    assert [(each.by, dict(each.was), dict(each.limits)) for each in view.raised] == [
        ("ann", {"max_tool_calls": "4"}, {"max_tool_calls": "9"})
    ]
    assert [each.started.step for each in view.attempts.values()] == ["S1", "S1", "S1", "S2"]


@pytest.mark.parametrize(
    ("limits", "error", "says"),
    [
        ({"max_tool_calls": "7"}, Denied, "the policy allows 6"),
        ({"max_tool_calls": "4"}, ConfigError, "max_tool_calls is 4 already"),
        ({"max_tool_calls": "many"}, ConfigError, "max_tool_calls cannot be 'many'"),
        ({"max_tool_calls": "-1"}, ConfigError, "max_tool_calls cannot be"),
        ({"max_tokens": "5"}, ConfigError, "max_tokens is not limited in this run"),
        ({"deadline": "2030-01-01"}, ConfigError, "'deadline' is no limit that can be raised"),
        ({}, ConfigError, "no limit is named"),
    ],
)
def test_a_raise_that_is_none_changes_nothing_and_says_why(post, limits, error, says):
    post.busy = 2
    runtime = post.open(budget=Budget(max_tool_calls=4), policy=RUN_CAP)
    worked(runtime, "r")

    with pytest.raises(error, match=says) as caught:
        raise_limits(runtime, "r", limits, by="ann")

    assert caught.value.hint
    assert runtime.view("r").raised == []


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ({"budget": Budget(max_tool_calls=3)}, "over_calls"),
        ({"budget": Budget(max_seconds=0.5)}, "over_seconds"),
        ({"budget": Budget(deadline=datetime(2026, 3, 1, 11, tzinfo=UTC))}, "over_deadline"),
        ({"policy": POLICY + "[limits.run]\nmax_tool_calls = 3\n"}, "over_calls"),
        ({"policy": POLICY + "[limits.run]\nmax_seconds = 0.5\n"}, "over_seconds"),
        ({"policy": POLICY + "[limits.run]\ndeadline = 2026-03-01T11:00:00Z\n"}, "over_deadline"),
    ],
)
def test_a_limit_that_a_plan_cannot_keep_ends_the_run_before_anything_is_called(post, chosen, code):
    runtime = post.open(clock=Clock(), **chosen)

    view = worked(runtime, "r")

    assert view.ended.why.startswith(code)
    assert (view.questions, view.attempts, post.sent) == ({}, {}, [])


def test_a_run_that_is_taken_up_again_at_the_same_limit_stops_there_again(post):
    post.busy = 2
    runtime = post.open(budget=Budget(max_tool_calls=4))
    first = worked(runtime, "r").stopped

    for _ in range(3):
        list(runtime.advance("r"))

        view = runtime.view("r")
        assert (view.stopped, view.ended, post.sent) == (first, None, [])
        assert partial(runtime, "r")["stopped"]["step"] == "S2"
    raise_limits(runtime, "r", {"max_tool_calls": "9"}, by="ann")
    list(runtime.advance("r"))
    assert (runtime.view("r").ended.verdict, post.sent) == ("pass", ["Ann"])


def test_a_stop_while_the_goal_is_checked_is_a_stop_like_any_other(post):
    post.busy = 1
    runtime = post.open(budget=Budget(max_tool_calls=4))

    view = worked(runtime, "r")

    assert (view.stopped.limit, post.sent) == ("max_tool_calls", ["Ann"])
    assert partial(runtime, "r")["stopped"]["done"] == ["S1", "S2"]
    raise_limits(runtime, "r", {"max_tool_calls": "5"}, by="ann")
    list(runtime.advance("r"))
    assert (runtime.view("r").ended.verdict, post.sent) == ("pass", ["Ann"])
    assert runtime.view("r").tool_calls == 5


def test_the_day_of_a_principal_is_shared_by_its_runs_and_over_at_midnight(post):
    clock = Clock()
    runtime = post.open(policy=DAY_CAP, clock=clock)
    first = worked(runtime, "r1")
    second = worked(runtime, "r2", to="Bob")

    assert (first.ended.verdict, second.stopped.limit) == ("pass", "day.max_tool_calls")
    assert post.sent == ["Ann"]
    assert "midnight UTC" in partial(runtime, "r2")["stopped"]["what_to_do"]
    with pytest.raises(ConfigError):
        raise_limits(runtime, "r2", {"max_tool_calls": "90"}, by="ann")

    clock.now += timedelta(hours=11)
    list(runtime.advance("r2"))
    assert runtime.view("r2").stopped is not None
    clock.now += timedelta(hours=2)
    list(runtime.advance("r2"))
    if runtime.waits("r2"):  # the approval was of yesterday
        runtime.answer("r2", APPROVE)
        list(runtime.advance("r2"))

    assert (runtime.view("r2").ended.verdict, post.sent) == ("pass", ["Ann", "Bob"])


def test_no_row_is_written_for_a_tool_call_where_no_day_is_capped(post):
    runtime = post.open()

    worked(runtime, "r")

    with runtime.journal.store.read() as tx:
        assert tx.exec_driver_sql("SELECT COUNT(*) FROM reservations").scalar() == 0


def test_all_rows_of_a_run_that_ended_show_what_it_did_cost(post):
    runtime = post.open(policy=DAY_CAP)

    view = worked(runtime, "r")

    with runtime.journal.store.read() as tx:
        rows = tx.exec_driver_sql("SELECT state, act, tool_calls FROM reservations ORDER BY act")
        assert [tuple(row) for row in rows] == [
            ("settled", "S1-A1", 1),
            ("settled", "S2-A1", 1),
            ("settled", "S2-arrived-1", 1),
            ("settled", "goal-once-1", 1),
        ]
    assert view.tool_calls == 4


def test_the_policys_cap_on_repairs_holds_whatever_the_plan_says(post):
    template = TEMPLATE.replace("success_criteria:", "budget: {max_replans: 9}\nsuccess_criteria:")
    runtime = post.open(policy=POLICY + "[limits.run]\nmax_replans = 0\n", templates=(template,))
    worked(runtime, "r")

    with runtime.hold("r") as session:
        plan = runtime.kit.plan(session)
        assert plan.budget.max_replans == 9
        assert runtime.kit.limits(session, plan.budget).max_replans == 0


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(max_model_calls=0), "max_model_calls"),
        (Budget(max_tokens=10), "max_tokens"),
        (Budget(max_usd=Decimal("0.000001")), "max_usd"),
    ],
)
def test_a_planner_that_would_pass_a_limit_is_not_asked_and_the_run_can_be_resumed(
    post, budget, limit
):
    with serving(Said("{}")) as fake:
        chat = ChatOpenAI(model="gpt-4o-mini", base_url=fake.url, api_key="k", max_tokens=500)
        runtime = post.open(budget=budget, model=chat)
        view = worked(runtime, "r")
        asked = len(fake.requests)

    report = partial(runtime, "r")
    assert (asked, view.stopped.limit, report["plan_versions"]) == (0, limit, [])
    assert (report["ending"], runtime.journal.runs.get("r").status) == ("stopped", "stopped")


def test_a_model_call_whose_owner_died_counts_at_what_was_asked_for(post):
    runtime = post.open()
    runtime.journal.runs.create(
        Run(run_id="r", goal_id="r", goal="g", thread_id="r", agent="post", principal=ME)
    )
    with runtime.hold("r") as session:
        session.emit(TriggerFired(kind="person"))
        asked = Spent(usd=Decimal("0.25"), tokens=900, model_calls=1)
        session.purse.hold(asked, None, act="planner")

    for _ in range(2):  # and once, however often it is resumed
        with runtime.hold("r") as later:
            assert later.view.spent == asked


def test_a_raise_holds_where_a_new_version_is_checked_and_the_policy_all_the_same():
    facts = Facts(
        catalog=Catalog(tools={}),
        rights=ME,
        policy=Policy.from_toml(RUN_CAP),
        raised={"max_tool_calls": 9, "max_usd": Decimal(3)},
        now=datetime(2026, 3, 1, tzinfo=UTC),
    )

    holds = facts.limits(Budget(max_tool_calls=1, max_usd=Decimal(1)))

    assert (holds.max_tool_calls, holds.max_usd) == (6, Decimal(3))
