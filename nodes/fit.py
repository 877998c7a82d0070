"""Whether the content of an answer fits its question; what does not is refused before it counts.

An ill-typed answer must not become a failed step later, nor an unclear one a half approval.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from plangate.graph.payload import Answer
from plangate.nodes.case import Case
from plangate.nodes.edit import Edited, judged
from plangate.nodes.info import reads_of
from plangate.nodes.raised import raised
from plangate.plan.errors import Unreadable
from plangate.plan.facts import Facts
from plangate.plan.layers.spend import over_budget
from plangate.plan.shape.scope import output_shape
from plangate.plan.value.frozen import Json, thaw
from plangate.plan.value.step import Question

LARGEST_TEXT: Final = 10_000
"""Characters of one answer, at most."""

_ROLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}")


class Fitted(NamedTuple):
    """The part of a decision that its content makes."""

    answer: Mapping[str, Json] = {}
    steps: tuple[str, ...] = ()
    """Approved steps; empty: all."""


def fitted(answer: Answer, case: Case) -> Fitted | str:
    """Read the content of an answer; a text says why it does not fit.

    Args:
        answer: Of a kind that the question allows.
        case: The question, and the run, which is looked at only where the content asks for it.
    """
    word = answer.decision
    if answer.steps and word != "approve":
        return f"{word} takes no single steps; approve with steps, or reject"
    if answer.edits and word != "edit":
        return f"{word} takes no edits; an edit is a decision of its own"
    if word in ("answer", "settle", "escalate") and not isinstance(answer.answer, Mapping):
        return "it holds no answer object"
    if word == "approve" and (why := _over_budget(case)):
        return why
    judge = None if word == "approve" and not answer.steps else _JUDGES.get(word)
    return Fitted() if judge is None else judge(answer, case)


def _over_budget(case: Case) -> str:
    """Say why a plan cannot be approved any more, and what to do; empty if it is in budget.

    It was in budget when it was checked; since then time has passed and money was spent. The
    estimate is the recorded one, so that nothing but the run itself moves it.
    """
    view = case.view
    checked = view.validated.get(case.question.plan_version)
    try:
        plan = case.plan
    except Unreadable:
        return ""  # it is made anew, and asked about
    if checked is None:
        return ""
    facts = Facts(
        catalog=case.catalog,
        rights=case.kit.rights(case),
        policy=case.kit.policy,
        budget=case.kit.budget,
        raised=raised(view.raised),
        estimate=checked.estimate.after_planning(view.spent_usd, view.tokens),
        now=case.kit.now(),
    )
    over = over_budget(plan, facts)
    said = "; ".join(f"{each.code}: {each.says}" for each in over)
    hints = " ".join(dict.fromkeys(each.hint for each in over if each.hint))
    return f"the plan is over budget and cannot be approved: {said}. {hints}" if over else ""


def _steps(answer: Answer, case: Case) -> Fitted | str:
    denied = [step for step, word in answer.steps.items() if word == "deny"]
    gone = case.fallout.reasons(dict.fromkeys(denied, answer.by.strip() or "unknown"))
    return _steps_fault(answer, case, gone) or Fitted(
        {"steps": dict(answer.steps), "dropped": gone} if gone else {},
        tuple(step.id for step in case.plan.steps if step.id not in gone) if gone else (),
    )


def _steps_fault(answer: Answer, case: Case, gone: Mapping[str, str]) -> str:
    """Say why a review of single steps does not fit; empty if it does."""
    said, confirm = answer.steps, case.question.confirm
    first = next((step for step, word in said.items() if word == "approve" and step in gone), "")
    unknown = [step for step in said if step not in case.plan.by_id]
    left = [step for step in confirm if step not in said]
    ended = [step for step, word in said.items() if word == "deny" and step in case.settled]
    faults = (
        (unknown, f"there is no step {', '.join(unknown)} in this plan"),
        (left, f"each step to confirm needs an answer; missing: {', '.join(left)}"),
        (ended, f"{', '.join(ended)} has ended and can no longer be denied"),
        (first, f"{first} cannot be approved: {gone.get(first)}; deny it too"),
        (
            gone and not [step for step in confirm if step not in gone],
            "every step to confirm would be denied; to deny all of it, reject",
        ),
    )
    return next((says for wrong, says in faults if wrong), "")


def _edit(answer: Answer, case: Case) -> Fitted | str:
    got = judged(case, answer.edits, answer.by.strip() or "unknown")
    if not isinstance(got, Edited):
        return got
    if got.inputs is not None:
        return Fitted({"inputs": dict(got.inputs)})
    return Fitted({"edits": [thaw(each) for each in answer.edits]})


def _answer(answer: Answer, case: Case) -> Fitted | str:
    """Hold an answer against the type of its question, as the executor will."""
    said = answer.answer
    step = case.plan.by_id.get(case.question.step or "")
    if step is None or step.question is None or not isinstance(said, Mapping):
        return "it answers no question of this plan"
    for misfit in output_shape(step, case.catalog).accepts({**said, "by": answer.by}):
        where = misfit.path or "the answer"
        return f"{where} {misfit.says}; the question is {_form(step.question)}"
    value = said.get("answer")
    if step.question.type == "choice" and value not in step.question.options:
        return f"{str(value)[:80]!r} is not one of {', '.join(step.question.options)}"
    if isinstance(value, str) and not 0 < len(value.strip()) <= LARGEST_TEXT:
        return f"a text has 1 to {LARGEST_TEXT} characters"
    return Fitted(dict(said))


def _settle(answer: Answer, _: Case) -> Fitted | str:
    said = answer.answer if isinstance(answer.answer, Mapping) else {}
    if said.get("state") not in ("done", "failed"):
        return 'an effect is settled as {"state": "done"} or {"state": "failed"}'
    return Fitted(dict(said))


def _judge(answer: Answer, _: Case) -> Fitted | str:
    said = answer.answer if isinstance(answer.answer, Mapping) else {}
    evidence = str(said.get("evidence") or answer.comment).strip()
    if said.get("says") not in ("pass", "fail"):
        return 'a check is decided as {"says": "pass"} or {"says": "fail"}'
    if not evidence:
        return "it does not say what it rests on: give evidence, or a comment"
    return Fitted({"says": said["says"], "evidence": evidence[:LARGEST_TEXT]})


def _escalate(answer: Answer, case: Case) -> Fitted | str:
    said = answer.answer if isinstance(answer.answer, Mapping) else {}
    to = said.get("to")
    if not isinstance(to, str) or _ROLE.fullmatch(to) is None:
        return 'a question is handed on as {"to": "finance"}, which names a role'
    if case.question.roles == (to,):
        return f"it is for {to} already"
    return Fitted({"to": to})


def _more_info(answer: Answer, case: Case) -> Fitted | str:
    reads = reads_of(case, answer.answer)
    return reads if isinstance(reads, str) else Fitted({"reads": [each.said() for each in reads]})


def _form(question: Question) -> str:
    forms = {
        "confirm": 'answered as {"confirmed": true} or {"confirmed": false}',
        "choice": f'answered as {{"answer": one of {", ".join(question.options)}}}',
        "number": 'answered as {"answer": 2.5}',
        "text": 'answered as {"answer": "words"}',
    }
    return forms[question.type]


_JUDGES: Final[Mapping[str, Callable[[Answer, Case], Fitted | str]]] = {
    "approve": _steps,
    "edit": _edit,
    "answer": _answer,
    "settle": _settle,
    "judge": _judge,
    "escalate": _escalate,
    "request_more_info": _more_info,
}
