from __future__ import annotations

import pytest
from typing_extensions import TypedDict

from plangate import tool
from plangate.engine.classify import classify
from plangate.journal.attempts import AttemptEnded
from plangate.replay.outside import _failing
from plangate.tools.answers import NotSent, Refused, ToolFailed


class Named(TypedDict):
    name: str


@tool(effect="read", errors={"not_there": "business_rejection", "slow": "transient"})
def look(name: str) -> Named:
    """Look."""
    return {"name": name}


@tool(effect="write", key="put:{name}", scope="goal", errors={"full": "business_rejection"})
def put(name: str) -> Named:
    """Put."""
    return {"name": name}


RAISED = (
    ToolFailed("not_there", "no such thing"),
    ToolFailed("full", "full: no place"),
    ToolFailed("slow", "slow: try again"),
    ToolFailed("undeclared", "undeclared: so it is"),
    NotSent("busy", "busy: no line"),
    NotSent("busy", "no line"),
    NotSent("slow", "no line"),
    Refused("no_credential", "none was given"),
    TimeoutError("too long"),
    ConnectionResetError("gone"),
    OSError("no file"),
    ValueError("a defect"),
)


@pytest.mark.parametrize("contract", [look.spec, put.spec], ids=["read", "write"])
@pytest.mark.parametrize("raised", RAISED, ids=repr)
def test_a_recorded_failure_fails_again_in_the_same_class_and_words(contract, raised):
    was = classify(contract, raised)
    ended = AttemptEnded(
        attempt_id="S1-A1",
        step="S1",
        status="failed_terminal",
        outcome=was.outcome,
        error_code=was.code,
        error=was.says,
    )

    try:
        _failing(contract, ended)
    except Exception as exc:  # noqa: BLE001 - whatever a body may raise
        again = classify(contract, exc)
    else:
        pytest.fail("it did not fail")

    assert (again.outcome, again.code, again.says) == (was.outcome, was.code, was.says)
