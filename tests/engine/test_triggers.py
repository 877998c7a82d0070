from __future__ import annotations

import pytest

from plangate.engine.ended import Ended
from plangate.engine.triggers import halt_of

DONE = Ended(step="a", status="done")
FAILED = Ended(step="b", status="failed", outcome="permanent", code="gone")
REFUSED = Ended(step="c", status="failed", outcome="business_rejection", code="no")
UNKNOWN = Ended(step="d", status="unknown", outcome="unknown", code="timeout")
UNSURE = Ended(step="e", status="unknown", outcome="unknown", code="check_unknown:x")
WRONG = Ended(step="f", status="failed", outcome="unexpected_state", code="check_failed:x")
ASKS = Ended(step="g", status="waiting", code="question")
BARRED = Ended(step="h", status="waiting", code="approval_missing")
DENIED = Ended(step="i", status="failed", outcome="denied", code="policy_denied")
ABORTS = Ended(step="j", status="failed", outcome="permanent", code="gone", action="abort")


@pytest.mark.parametrize(
    ("ends", "left", "reason", "kind", "step"),
    [
        ([DONE], [], "done", "", ""),
        ([DONE, ASKS], [], "question", "person", "g"),
        ([DONE, BARRED], [], "approval", "person", "h"),
        ([FAILED, ASKS], ["z"], "trigger", "step_failed", "b"),
        ([FAILED, UNKNOWN], [], "trigger", "effect_unknown", "d"),
        ([UNSURE, FAILED], [], "trigger", "verdict_unknown", "e"),
        ([WRONG], [], "trigger", "verdict_fail", "f"),
        ([DENIED], [], "trigger", "tool_gone", "i"),
        ([REFUSED, DONE], ["z"], "declined", "declined", "c"),
        ([ABORTS], ["z"], "abort", "step_failed", "j"),
        ([], ["z"], "stranded", "", "z"),
        ([], [], "done", "", ""),
    ],
)
def test_what_a_person_must_know_first_comes_first(ends, left, reason, kind, step):
    halt = halt_of(ends, left)

    assert (halt.reason, halt.kind, halt.step) == (reason, kind, step)
