"""What a person said: every form that a resume can bring, read into one.

There is a native form, and the forms of the clients that exist: LangChain's `decisions`, Agent
Inbox's list of one response, a bare decision, true and false. Whatever is none of these, or says
more than we understand, is a reason not to act. It is never consent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, JsonValue, ValidationError

from plangate.plan.value.frozen import F, Frozen, FrozenMap, parse

Choice: TypeAlias = Literal[
    "approve",
    "reject",
    "edit",
    "changes",
    "answer",
    "settle",
    "judge",
    "retry",
    "stop",
    "escalate",
    "request_more_info",
]
"""What one can decide.

`approve`, `reject`, `edit` and `changes` (the comment says which) are about a plan; `answer` is for
human steps; `settle` says what became of an effect, `judge` whether a check that nobody could
decide is passed; `retry` and `stop` are about a failure.
`escalate` hands the question to another role, `request_more_info` asks for reads first; neither is
consent.
"""

Said: TypeAlias = Annotated[str, Field(max_length=10_000)]


class Answer(Frozen):
    """One decision, as it was meant; also the native form in which it is sent."""

    decision: Choice
    plan_hash: Said = ""
    """Content hash of the plan that the person saw; empty if the client does not say."""

    question_id: Said = ""
    """The question that is meant; empty if the client does not say."""

    steps: FrozenMap[Literal["approve", "deny"]] = Field(
        default_factory=dict, validate_default=True
    )
    edits: tuple[JsonValue, ...] = ()
    """For `edit`: JSON Patch operations, `{"step": "S6", "args": {...}}`, `{"inputs": {...}}`; see
    `plangate.nodes.edit`."""

    comment: Said = ""
    by: Said = ""
    role: Said = ""
    """In which role the person decides, where a question asks for one."""

    answer: JsonValue = None
    """For `answer`: as `{"confirmed": true}` or `{"answer": "blue"}`. For `settle`: as
    `{"state": "done"}`. For `judge`: `{"says": "pass", "evidence": "..."}`. For `escalate`:
    `{"to": "finance"}`. For `request_more_info`: `{"tool": "query_order", "args": {...}}`, or a
    list of these."""


class _Click(Frozen):
    """A decision as LangChain's clients and Agent Inbox send it."""

    type: Literal["approve", "accept", "reject", "respond", "response", "edit"]
    message: Said | None = None
    args: JsonValue = None
    edited_action: JsonValue = None
    plan_hash: Said = ""
    question_id: Said = ""
    by: Said = ""
    role: Said = ""


_DECISIONS: Final[Mapping[str, Choice]] = {
    "approve": "approve",
    "accept": "approve",
    "reject": "reject",
    "respond": "changes",
    "response": "changes",
    "edit": "edit",
}


def read_answer(raw: object, asked: Mapping[str, Any] | None = None) -> Answer | str:
    """Read what came back from an interrupt, or from the CLI or a console.

    Args:
        raw: Anything.
        asked: The payload that was shown; it says what a button or a line of text means. None: a
            plan was shown.

    Returns:
        The answer, or why there is none.
    """
    said = _unpacked(raw)
    if isinstance(said, bool):
        got: Answer | str = Answer(decision="approve" if said else "reject")
    elif isinstance(said, str):
        got = said
    elif "decision" in said:
        got = _read(Answer, said)
    else:
        click = _read(_Click, said)
        got = click if isinstance(click, str) else _clicked(click)
        if isinstance(got, Answer) and got.decision == "edit" and _about_a_plan(asked):
            return _TEXTS
    return got if isinstance(got, str) else _meant(got, asked or {})


_TEXTS: Final = (
    "edited fields of this client come back as text, whatever they were, so nothing of them is "
    'taken; send {"decision": "edit", "edits": [{"step": "S6", "args": {...}}]} with typed values'
)


def _about_a_plan(asked: Mapping[str, Any] | None) -> bool:
    is_plan: bool = asked is None or asked.get("kind", "approval") == "approval"
    return is_plan


def _unpacked(raw: object) -> Mapping[str, Any] | bool | str:
    """Take the one decision out of the lists that clients send; a text says why there is none."""
    if isinstance(raw, Mapping) and set(raw) == {"decisions"}:
        raw = raw["decisions"]
    if isinstance(raw, (list, tuple)):
        if len(raw) != 1:
            return f"one decision is expected, and {len(raw)} came"
        raw = raw[0]
    if isinstance(raw, (bool, Mapping)):
        return raw
    return f'{type(raw).__name__} is not an answer; send {{"decision": "approve"}} or the like'


def _read(kind: type[F], said: Mapping[str, Any]) -> F | str:
    try:
        return parse(kind, said)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        return f"the answer is not understood, so nothing of it counts: {where}: {first['msg']}"
    except (ValueError, RecursionError):
        return "the answer is not JSON data"


def _clicked(click: _Click) -> Answer:
    decision = _DECISIONS[click.type]
    typed = click.args if decision == "changes" and isinstance(click.args, str) else ""
    # Edited arguments come back as texts, whatever they were: nothing here takes them as typed.
    edited = click.edited_action if click.edited_action is not None else click.args
    return Answer(
        decision=decision,
        comment=click.message or typed,
        edits=(edited,) if decision == "edit" else (),
        plan_hash=click.plan_hash,
        question_id=click.question_id,
        by=click.by,
        role=click.role,
    )


def _meant(got: Answer, asked: Mapping[str, Any]) -> Answer | str:
    """Turn a button or a line of text into the decision that the question asks for."""
    kind = asked.get("kind", "approval")
    if kind == "approval":
        return got
    if kind == "step" and asked.get("answer_type") == "confirm":
        return _confirmed(got)
    line = _line(got)
    if line is None:
        bare = got.decision == "answer" and isinstance(got.answer, (str, int, float))
        return _with(got, "answer", {"answer": got.answer}) if bare else got
    return _typed(got, line, asked) if kind == "step" else _word(got, line, kind)


def _confirmed(got: Answer) -> Answer:
    if got.decision in ("approve", "reject"):
        return _with(got, "answer", {"confirmed": got.decision == "approve"})
    bare = got.decision == "answer" and isinstance(got.answer, bool)
    return _with(got, "answer", {"confirmed": got.answer}) if bare else got


def _line(got: Answer) -> str | None:
    """Return the text that was typed into a client's response or argument field."""
    if got.decision == "changes":
        return got.comment
    edited = got.edits[0] if got.decision == "edit" and got.edits else None
    inner = edited.get("args", edited) if isinstance(edited, dict) else None
    line = inner.get("answer") if isinstance(inner, dict) else None
    return line if isinstance(line, str) else None


def _typed(got: Answer, line: str, asked: Mapping[str, Any]) -> Answer | str:
    if asked.get("answer_type") != "number":
        return _with(got, "answer", {"answer": line})
    try:
        number = float(line)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        return f"{line[:80]!r} is not a number"
    return _with(got, "answer", {"answer": number})


def _word(got: Answer, line: str, kind: str) -> Answer | str:
    said, _, rest = line.strip().partition(":")
    word = said.strip().lower()
    if kind == "effect" and word in ("done", "failed"):
        return _with(got, "settle", {"state": word})
    if kind == "verdict" and word in ("pass", "fail"):
        return _with(got, "judge", {"says": word, "evidence": rest.strip()})
    if word in ("retry", "stop"):
        return _with(got, "retry" if word == "retry" else "stop", None)
    return f"{line[:80]!r} is none of the words that answer this question"


def _with(got: Answer, decision: Choice, answer: JsonValue) -> Answer:
    return Answer(
        decision=decision,
        answer=answer,
        plan_hash=got.plan_hash,
        question_id=got.question_id,
        by=got.by,
        role=got.role,
    )
