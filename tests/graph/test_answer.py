from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plangate.graph.answer import Answer, read_answer

CONFIRM = {"kind": "step", "answer_type": "confirm"}
TEXT = {"kind": "step", "answer_type": "text"}
NUMBER = {"kind": "step", "answer_type": "number"}
EFFECT = {"kind": "effect"}
FAILURE = {"kind": "escalation"}


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (True, Answer(decision="approve")),
        (False, Answer(decision="reject")),
        (
            {"decision": "approve", "plan_hash": "sha256:ab", "by": "ann", "comment": "fine"},
            Answer(decision="approve", plan_hash="sha256:ab", by="ann", comment="fine"),
        ),
        (
            {"decision": "approve", "steps": {"S1": "approve", "S2": "deny"}},
            Answer(decision="approve", steps={"S1": "approve", "S2": "deny"}),
        ),
        (
            {"decision": "edit", "edits": [{"op": "x"}]},
            Answer(decision="edit", edits=({"op": "x"},)),
        ),
        ({"decision": "stop"}, Answer(decision="stop")),
        ({"decisions": [{"type": "approve"}]}, Answer(decision="approve")),
        (
            {"decisions": [{"type": "reject", "message": "why"}]},
            Answer(decision="reject", comment="why"),
        ),
        ({"type": "respond", "message": "cheaper"}, Answer(decision="changes", comment="cheaper")),
        ([{"type": "accept", "args": {"x": "1"}}], Answer(decision="approve")),
        ([{"type": "response", "args": "cheaper"}], Answer(decision="changes", comment="cheaper")),
        (
            {"decision": "escalate", "answer": {"to": "finance"}, "role": "support"},
            Answer(decision="escalate", answer={"to": "finance"}, role="support"),
        ),
        (
            {"decision": "request_more_info", "answer": {"tool": "look"}},
            Answer(decision="request_more_info", answer={"tool": "look"}),
        ),
    ],
)
def test_each_form_of_an_answer_about_a_plan_is_read(raw, meant):
    assert read_answer(raw) == meant


@pytest.mark.parametrize(
    "raw",
    [
        [{"type": "edit", "args": {"action": "a", "args": {"x": "1"}}}],
        [{"type": "edit", "args": {"step": "S6", "args": {"x": "1"}}}],
        {"type": "edit", "edited_action": {"name": "a", "args": {}}},
        {"decisions": [{"type": "edit", "edited_action": {"name": "a", "args": {"x": 1}}}]},
    ],
)
def test_fields_edited_in_a_client_are_texts_and_are_not_taken(raw):
    why = read_answer(raw)

    assert isinstance(why, str)
    assert "typed values" in why


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "approve",
        "yes",
        1,
        0,
        [],
        {},
        [True, True],
        {"decisions": []},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
        {"decisions": [{"type": "approve"}], "except": ["S5"]},
        {"decision": "approve", "except": ["S5"]},
        {"decision": "APPROVE"},
        {"decision": None},
        {"decision": ["approve"]},
        {"decision": "approve", "comment": 1},
        {"decision": "approve", "steps": {"S1": "maybe"}},
        {"decision": "approve", "comment": "x" * 10_001},
        {"type": "ignore", "args": None},
        {"type": "approve", "when": "tomorrow"},
        {"type": "approve_always"},
        {1: 2},
        b"approve",
        object(),
        {"decision": "answer", "answer": object()},
        {"decision": "approve", "by": "\ud800"},
    ],
)
def test_whatever_is_none_of_these_is_a_reason_and_no_consent(raw):
    why = read_answer(raw)

    assert isinstance(why, str)
    assert why


@pytest.mark.parametrize(
    ("asked", "raw", "meant"),
    [
        (CONFIRM, True, Answer(decision="answer", answer={"confirmed": True})),
        (CONFIRM, {"type": "reject"}, Answer(decision="answer", answer={"confirmed": False})),
        (
            CONFIRM,
            {"decision": "answer", "answer": False, "by": "bo"},
            Answer(decision="answer", answer={"confirmed": False}, by="bo"),
        ),
        (CONFIRM, {"decision": "settle"}, Answer(decision="settle")),
        (
            TEXT,
            [{"type": "response", "args": "blue"}],
            Answer(decision="answer", answer={"answer": "blue"}),
        ),
        (
            TEXT,
            {"decisions": [{"type": "edit", "edited_action": {"args": {"answer": "blue"}}}]},
            Answer(decision="answer", answer={"answer": "blue"}),
        ),
        (
            TEXT,
            {"decision": "answer", "answer": "blue"},
            Answer(decision="answer", answer={"answer": "blue"}),
        ),
        (
            TEXT,
            {"decision": "answer", "answer": {"answer": "blue"}},
            Answer(decision="answer", answer={"answer": "blue"}),
        ),
        (
            NUMBER,
            {"type": "respond", "message": " 2.5 "},
            Answer(decision="answer", answer={"answer": 2.5}),
        ),
        (
            EFFECT,
            {"type": "respond", "message": "Done"},
            Answer(decision="settle", answer={"state": "done"}),
        ),
        (EFFECT, {"type": "respond", "message": "retry"}, Answer(decision="retry")),
        (FAILURE, {"type": "respond", "message": "stop"}, Answer(decision="stop")),
    ],
)
def test_a_button_or_a_line_means_what_the_question_asks(asked, raw, meant):
    assert read_answer(raw, asked) == meant


@pytest.mark.parametrize(
    ("asked", "line"), [(NUMBER, "many"), (NUMBER, "nan"), (EFFECT, "ok"), (FAILURE, "done")]
)
def test_a_line_that_answers_nothing_is_a_reason(asked, line):
    assert isinstance(read_answer({"type": "respond", "message": line}, asked), str)


@given(
    st.recursive(
        st.none() | st.text(max_size=8) | st.integers() | st.floats() | st.binary(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["decision", "type", "steps", "x"]), inner, max_size=2
            )
        ),
        max_leaves=6,
    )
)
def test_nothing_but_the_known_forms_ever_approves(raw):
    got = read_answer(raw)

    assert isinstance(got, str) or got.decision != "approve" or _says_approve(raw)


def _says_approve(raw) -> bool:
    inner = raw[0] if isinstance(raw, list) and len(raw) == 1 else raw
    return isinstance(inner, Mapping) and (
        inner.get("decision") == "approve" or inner.get("type") in ("approve", "accept")
    )
