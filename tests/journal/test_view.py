from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.journal.agents import AgentRefused
from plangate.journal.assumed import AssumptionSettled
from plangate.journal.attempts import AttemptEnded, AttemptStarted, CallOverran
from plangate.journal.causes import GoalRevised, RunFollowed
from plangate.journal.events import (
    EVENT,
    DraftRefused,
    EffectMoved,
    Entry,
    Event,
    GoalVerified,
    ModelCalled,
    PlanCriticized,
    PlanProposed,
    PlanValidated,
    Reflected,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEnded,
    StepReleased,
    TriggerFired,
    VerdictReached,
)
from plangate.journal.grounds import Fingerprinted, OutsideAsked
from plangate.journal.judged import CriterionJudged
from plangate.journal.questions import (
    AnswerCounted,
    AnswerRefused,
    DecisionTaken,
    InfoRead,
    Moved,
    QuestionAsked,
    StopAsked,
    WorldMoved,
)
from plangate.journal.spending import (
    BudgetStopped,
    LimitRaised,
    PartlyReported,
    Reestimated,
    SpendingLost,
)
from plangate.journal.view import RunView, fold
from plangate.plan.errors import JournalError
from plangate.plan.facts import PlanEstimate, Range
from plangate.plan.value.plan import Author
from plangate.plan.verdict import Verdict

AT = datetime(2026, 1, 31, tzinfo=UTC)


def entries(events: list[Event]) -> list[Entry]:
    return [
        Entry(run_id="r", seq=seq, at=AT, epoch=1, event=event)
        for seq, event in enumerate(events, 1)
    ]


def view(*events: Event) -> RunView:
    return fold(entries(list(events)))


def proposed(version: int = 1, *carried: str, kind: str = "template") -> PlanProposed:
    return PlanProposed(
        version=version,
        plan="sha256:0",
        content_hash=f"h{version}",
        author=Author(kind=kind),
        carried=carried,
    )


def asked(question_id: str, kind: str = "approval", step: str | None = None) -> QuestionAsked:
    return QuestionAsked(
        question_id=question_id,
        kind=kind,
        audience="operator",
        payload="sha256:0",
        payload_sha256="0",
        plan_version=1,
        content_hash="h1",
        step=step,
    )


def decided(question_id: str, decision: str = "approve", content_hash: str = "") -> DecisionTaken:
    return DecisionTaken(
        question_id=question_id, decision=decision, by="ann", content_hash=content_hash
    )


def started(attempt: str, step: str, version: int = 1, capability: str = "t@1") -> AttemptStarted:
    return AttemptStarted(
        attempt_id=attempt,
        step=step,
        plan_version=version,
        capability=capability,
        args="sha256:0",
        args_sha256="0",
    )


def ended(attempt: str, step: str, usd: Decimal | None = Decimal(0)) -> AttemptEnded:
    return AttemptEnded(
        attempt_id=attempt, step=step, status="succeeded", outcome="success", usd=usd
    )


def done(step: str, version: int = 1) -> StepEnded:
    return StepEnded(step=step, plan_version=version, status="done", output="sha256:1")


def called(usd: Decimal | None) -> ModelCalled:
    return ModelCalled(
        role="planner",
        model="m",
        prompt="p",
        prompt_sha256="0",
        ok=True,
        input_tokens=100,
        cached_tokens=50,
        output_tokens=20,
        reasoning_tokens=10,
        usd=usd,
        latency_s=1.0,
    )


def judged(step: str, attempt: str, check: str, says: str) -> VerdictReached:
    verdict = Verdict(says=says, check_id=check, level="L1", verifier="cel@1", claim="c")
    return VerdictReached(step=step, attempt_id=attempt, verdict=verdict)


def test_a_run_starts_with_what_was_asked():
    seen = view(RunStarted(goal_id="g", goal="Refund", inputs="sha256:0", principal="ann"))

    assert (seen.run_id, seen.goal_id, seen.goal, seen.principal) == ("r", "g", "Refund", "ann")
    assert (seen.seq, seen.version, seen.steps, seen.ended) == (1, 0, {}, None)


def test_a_step_goes_from_released_to_done():
    statuses = []
    seen = RunView()
    for event in (
        proposed(),
        StepReleased(step="S1", plan_version=1),
        started("S1-A1", "S1"),
        ended("S1-A1", "S1"),
        done("S1"),
    ):
        seen.apply(event)
        statuses.append(seen.steps["S1"].status if seen.steps else None)

    assert statuses == [None, "pending", "running", "running", "done"]
    assert seen.steps["S1"].attempts == ("S1-A1",)
    assert (seen.steps["S1"].output, seen.steps["S1"].outcome) == ("sha256:1", "success")
    assert seen.attempts["S1-A1"].ended is not None


def test_a_new_version_keeps_what_it_carries_and_starts_the_rest_anew():
    seen = view(
        proposed(1),
        *(event for step in ("S1", "S2") for event in (started(f"{step}-A1", step), done(step))),
        judged("S1", "S1-A1", "c1", "pass"),
        judged("S2", "S2-A1", "c2", "fail"),
        proposed(2, "S1", "S9", kind="replanner"),
    )

    assert list(seen.steps) == list(seen.verdicts) == ["S1"]
    assert (seen.steps["S1"].status, seen.steps["S1"].plan_version) == ("done", 1)
    assert (seen.version, seen.replans, sorted(seen.attempts)) == (2, 1, ["S1-A1", "S2-A1"])


def test_what_belongs_to_an_older_version_moves_no_step():
    seen = view(
        proposed(2),
        StepReleased(step="S1", plan_version=1),
        started("S1-A1", "S1", version=1),
        done("S1", version=1),
    )

    assert seen.steps == {}
    assert list(seen.attempts) == ["S1-A1"]


def test_verdicts_are_of_the_newest_attempt_and_the_newest_of_each_check():
    seen = view(
        proposed(),
        judged("S1", "S1-A1", "c1", "fail"),
        judged("S1", "S1-A2", "c1", "unknown"),
        judged("S1", "S1-A2", "c2", "pass"),
        judged("S1", "S1-A2", "c1", "pass"),
    )

    said = [(verdict.check_id, verdict.says) for verdict in seen.verdicts["S1"]]
    assert said == [("c2", "pass"), ("c1", "pass")]


@pytest.mark.parametrize(
    ("prices", "spent"),
    [
        ([], Decimal(0)),
        ([Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ([Decimal("0.10"), None, Decimal("0.20")], None),
    ],
)
def test_an_unknown_price_makes_an_unknown_sum(prices, spent):
    assert view(*map(called, prices)).spent_usd == spent
    assert view(*(ended("a", "S1", usd) for usd in prices)).spent_usd == spent


def test_calls_and_tokens_are_counted():
    seen = view(
        proposed(), called(None), started("a", "S1"), started("b", "S2", capability="human")
    )

    assert (seen.model_calls, seen.tool_calls, seen.tokens) == (1, 1, 120)


def test_a_question_waits_until_it_is_decided_or_asked_again():
    assert [q.question_id for q in view(asked("q1")).pending_questions] == ["q1"]
    assert view(asked("q1"), decided("q1")).pending_questions == ()
    assert [q.question_id for q in view(asked("q1"), asked("q2")).pending_questions] == ["q2"]
    assert view(asked("q1"), asked("q2"), decided("q2")).pending_questions == ()


def test_questions_about_different_steps_wait_side_by_side_in_order():
    seen = view(asked("q1", "step", "S1"), asked("q2", "step", "S2"), asked("q3", "step", "S1"))

    assert [q.question_id for q in seen.pending_questions] == ["q2", "q3"]


def test_a_new_version_lets_questions_about_the_old_one_fall():
    seen = view(
        asked("q1"),
        asked("q2", "step", "S1"),
        asked("q3", "step", "S2"),
        asked("q4", "effect", "S3"),
        asked("q5", "escalation"),
        proposed(2, "S1"),
    )

    assert [q.question_id for q in seen.pending_questions] == ["q2", "q4", "q5"]


@pytest.mark.parametrize(("tried", "after"), [((), "pending"), (("S1-A1",), "running")])
def test_a_step_with_a_question_waits_and_goes_on_where_it_was(tried, after):
    before = [StepReleased(step="S1", plan_version=1), *(started(a, "S1") for a in tried)]

    waiting = view(proposed(), *before, asked("q1", "step", "S1"))
    answered = view(proposed(), *before, asked("q1", "step", "S1"), decided("q1", "confirm"))

    assert (waiting.steps["S1"].status, answered.steps["S1"].status) == ("waiting", after)


def test_the_first_decision_counts():
    seen = view(asked("q1"), decided("q1", "reject"), decided("q1", "approve"))

    assert seen.decisions["q1"].decision == "reject"
    assert (seen.approved, seen.rejected) == ({}, {"h1"})


@pytest.mark.parametrize(
    "events",
    [
        [decided("q1")],
        [asked("q1"), decided("q1", content_hash="other")],
        [asked("q1"), decided("q1", "changes")],
        [asked("q1", "escalation"), decided("q1")],
        [asked("q1"), decided("q1", "reject"), asked("q2"), decided("q2")],
        [asked("q1"), decided("q1"), asked("q2"), decided("q2", "reject")],
    ],
    ids=["no question", "other content", "no approval", "other kind", "rejected", "rejected later"],
)
def test_nothing_but_a_matching_approval_approves(events):
    assert view(*events).approved == {}


@pytest.mark.parametrize("content_hash", ["", "h1"])
def test_an_approval_is_of_the_content_that_was_shown(content_hash):
    approval = decided("q1", content_hash=content_hash)

    assert view(asked("q1"), approval).approved == {"h1": approval}


def test_a_resumed_run_is_not_stopped_any_more():
    stop = BudgetStopped(limit="usd", spent="1", allowed="1")

    assert view(stop).stopped == stop
    assert view(stop, RunResumed(owner="o")).stopped is None


def test_a_goal_verified_for_one_version_says_nothing_of_the_next():
    verified = GoalVerified(says="pass", verdicts=())

    assert view(proposed(1), verified).goal_verified == verified
    assert view(proposed(1), verified, proposed(2)).goal_verified is None


def test_an_ended_run_waits_for_nobody():
    end = RunEnded(ending="cancelled", verdict="unknown", report="sha256:0")

    assert (view(asked("q1"), end).pending_questions, view(end).ended) == ((), end)


@pytest.mark.parametrize("seqs", [(2,), (1, 3), (1, 1)])
def test_a_log_with_a_gap_is_not_believed(seqs):
    broken = [Entry(run_id="r", seq=seq, at=AT, epoch=1, event=called(None)) for seq in seqs]

    with pytest.raises(JournalError, match="follows event"):
        fold(broken)


def test_a_world_that_moved_takes_the_approval_away():
    moved = WorldMoved(
        step="S6", content_hash="h1", objects=(Moved(object="order://1", was="7", now="8"),)
    )

    seen = view(asked("q1"), decided("q1"), moved)

    assert (seen.approved, seen.moved) == ({}, [moved])


@pytest.mark.parametrize("word", ["escalate", "request_more_info"])
def test_handing_a_question_on_is_no_answer_to_what_is_asked_about(word):
    fired = TriggerFired(kind="person", step="S6")

    seen = view(proposed(), fired, asked("q1"), decided("q1", word))

    assert (seen.open_trigger, seen.approved) == (fired, {})


def test_the_order_of_decisions_and_attempts_can_be_told():
    seen = view(
        proposed(), started("S1-A1", "S1"), ended("S1-A1", "S1", None), asked("q1"), decided("q1")
    )

    assert seen.attempts["S1-A1"].ended_seq < seen.decided["q1"]


def test_changed_inputs_stand_over_the_first_ones():
    changed = DecisionTaken(
        question_id="q1", decision="edit", by="ann", answer={"inputs": {"line": 2}}
    )

    assert view(asked("q1"), changed).inputs_changed == {"line": 2}


STEPS = st.sampled_from(["S1", "S2", "S3"])
VERSIONS = st.integers(1, 3)
ATTEMPTS = st.sampled_from(["S1-A1", "S1-A2", "S2-A1"])
QUESTIONS = st.sampled_from(["q1", "q2", "q3"])
USD = st.none() | st.decimals(0, 9, places=4)
ESTIMATE = PlanEstimate(
    steps=(),
    seconds=Range(p50=1, p95=2),
    tokens=Range(p50=1, p95=2),
    usd_p50=None,
    usd_p95=None,
    calls=Range(p50=1, p95=1),
)
VALIDATED = PlanValidated(
    version=1,
    content_hash="h1",
    valid=True,
    issues=(),
    catalog_hash="",
    policy_hash="",
    tier="auto",
    reasons=(),
    estimate=ESTIMATE,
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.just(RunStarted(goal_id="g", goal="g", inputs="sha256:0", principal="ann")),
    st.just(RunResumed(owner="o")),
    st.builds(called, USD),
    st.builds(
        lambda version, carried, kind: proposed(version, *carried, kind=kind),
        VERSIONS,
        st.lists(STEPS, max_size=3),
        st.sampled_from(["template", "replanner"]),
    ),
    st.just(DraftRefused(draft="sha256:0", issues=())),
    st.just(VALIDATED),
    st.builds(PlanCriticized, version=VERSIONS),
    st.builds(
        asked,
        QUESTIONS,
        st.sampled_from(["approval", "step", "effect", "escalation"]),
        st.none() | STEPS,
    ),
    st.just(AnswerRefused(question_id="q1", why="late")),
    st.just(AnswerCounted(question_id="q1", by="ann", have=1, needs=2)),
    st.just(InfoRead(question_id="q1", tool="t", args="sha256:0")),
    st.builds(
        WorldMoved,
        step=STEPS,
        content_hash=st.sampled_from(["h1", "h2"]),
        objects=st.just((Moved(object="order://1", was="7", now="8"),)),
    ),
    st.builds(
        decided,
        QUESTIONS,
        st.sampled_from(["approve", "reject", "changes", "edit", "escalate"]),
        st.sampled_from(["", "h1", "h2"]),
    ),
    st.builds(StepReleased, step=STEPS, plan_version=VERSIONS),
    st.builds(started, ATTEMPTS, STEPS, VERSIONS, st.sampled_from(["t@1", "human"])),
    st.builds(ended, ATTEMPTS, STEPS, USD),
    st.just(
        AgentRefused(
            step="S1", attempt_id="S1.1-A1", tool="t", arguments="sha256:0", code="c", why="w"
        )
    ),
    st.just(CallOverran(step="S1", attempt_id="S1-A1", tool="t", how="going_on", after_s=1.0)),
    st.just(EffectMoved(effect_key="k", step="S1", tool="t", state="done")),
    st.builds(
        judged,
        STEPS,
        ATTEMPTS,
        st.sampled_from(["c1", "c2"]),
        st.sampled_from(["pass", "fail", "unknown"]),
    ),
    st.builds(done, STEPS, VERSIONS),
    st.builds(TriggerFired, kind=st.text(max_size=5), step=st.none() | STEPS),
    st.builds(
        Reflected,
        failure_category=st.just("x"),
        failed_steps=st.just(()),
        confidence=st.floats(0, 1),
    ),
    st.just(RunFollowed(kind="compensation", run_id="r-undo1", effects=("k",))),
    st.just(
        GoalRevised(
            previous_goal_id="g",
            goal_id="g2",
            goal="Another",
            inputs="sha256:0",
            run_id="r-goal1",
            user_message_ref="artifact://sha256:0",
            confirmed_at=datetime(2026, 1, 1, tzinfo=UTC),
            confirmed_by="ann",
        )
    ),
    st.just(BudgetStopped(limit="usd", spent="1", allowed="1")),
    st.just(PartlyReported(report="sha256:0")),
    st.just(LimitRaised(by="ann", limits={"max_usd": "2"}, was={"max_usd": "1"})),
    st.builds(SpendingLost, acts=st.just(("planner",)), step=st.none() | STEPS, usd=USD),
    st.builds(
        Reestimated,
        trigger=st.sampled_from(["overdue", "over_plan"]),
        step=STEPS,
        plan_version=VERSIONS,
        time_ratio=st.floats(0, 9),
        usd_ratio=USD,
        seconds=st.just(Range(p50=1.0, p95=2.0)),
        usd_p50=USD,
        usd_p95=USD,
        left=st.just({"max_usd": "1 USD"}),
        decision=st.sampled_from(["continue", "compress", "ask", "stop"]),
        says=st.just("so"),
        continue_usd=USD,
        repair_usd=USD,
    ),
    st.builds(StopAsked, kind=st.sampled_from(["drain", "cancel"]), by=st.just("ann")),
    st.just(GoalVerified(says="unknown", verdicts=())),
    st.builds(
        AssumptionSettled,
        assumption=st.just("a"),
        status=st.sampled_from(["verified", "invalidated"]),
        plan_version=VERSIONS,
        says=st.just("so"),
        rule=st.just("true"),
    ),
    st.builds(
        CriterionJudged,
        question_id=st.just("r-q1"),
        content_hash=st.just("c"),
        verdict=st.just(
            Verdict(says="pass", check_id="g", level="L4", verifier="person:ann", claim="c")
        ),
    ),
    st.builds(
        Fingerprinted,
        fingerprint=st.just("sha256:0"),
        word=st.sampled_from(["first", "same", "compatible", "revalidate", "replan"]),
    ),
    st.just(OutsideAsked(by="S1-paid-1", how="call", tool="t", output="sha256:0")),
    st.just(RunEnded(ending="failed", verdict="fail", report="sha256:0")),
)


def test_the_strategy_below_draws_every_kind_of_event():
    drawn = {
        "run_started", "run_resumed", "model_called", "plan_proposed", "draft_refused",
        "plan_validated", "plan_criticized", "question_asked", "answer_refused", "decision_taken",
        "step_released", "attempt_started", "attempt_ended", "effect_moved", "verdict_reached",
        "step_ended", "trigger_fired", "reflected", "budget_stopped", "goal_verified", "run_ended",
        "answer_counted", "info_read", "world_moved", "run_followed", "goal_revised", "stop_asked",
        "call_overran", "fingerprinted", "outside_asked", "partly_reported", "limit_raised",
        "spending_lost", "reestimated", "criterion_judged", "agent_refused",
        "assumption_settled",
    }  # fmt: skip

    assert set(EVENT.json_schema()["discriminator"]["mapping"]) == drawn


@given(st.lists(EVENTS, max_size=30))
def test_any_events_in_any_order_fold_and_in_one_way(events):
    step_by_step = RunView(run_id="r")
    for event in events:
        step_by_step.apply(event)

    assert step_by_step == view(*events) or not events
    assert step_by_step.seq == len(events)
    assert set(step_by_step.verdicts) == set(step_by_step.judged)
    assert not step_by_step.rejected & set(step_by_step.approved)
    failed = {name for name, seen in step_by_step.steps.items() if seen.status == "failed"}
    assert step_by_step.failed == failed


@given(EVENTS)
def test_an_event_read_back_is_the_event_that_was_written(event):
    assert EVENT.validate_json(event.model_dump_json(), strict=True) == event


@given(st.lists(EVENTS, min_size=1, max_size=20), st.data())
def test_a_view_of_a_beginning_goes_on_to_the_view_of_the_whole(events, data):
    cut = data.draw(st.integers(1, len(events)))
    seen = view(*events[:cut])
    for event in events[cut:]:
        seen.apply(event)

    assert seen == view(*events)
