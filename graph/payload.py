"""What an interrupt carries: one payload that native clients, chat UIs and inboxes can all show.

It holds what has to be confirmed, exactly as it will run, and names the plan by hash; the rest of
the plan is in the journal. The same facts give the same payload, so its digest can bind an answer.
It goes into a checkpoint, hence at most 64 kB; where that is too little, it says what is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from plangate.graph.answer import Answer, read_answer
from plangate.graph.card import (
    Known,
    Shown,
    describe_plan,
    describe_question,
    estimate_card,
    plan_card,
    preview_card,
    step_card,
)
from plangate.graph.fallout import NAMED, Fallout
from plangate.graph.lens import Lens, in_markdown
from plangate.plan.catalog import Catalog
from plangate.plan.preview import Preview
from plangate.plan.value.frozen import Frozen, Json, thaw
from plangate.plan.value.plan import Plan
from plangate.plan.value.step import Step

__all__ = [
    "Answer",
    "ApprovalCard",
    "QuestionCard",
    "approval_payload",
    "asked_again",
    "question_payload",
    "read_answer",
]

LARGEST: Final = 64 * 1024
"""Bytes of a payload as JSON text, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalCard:
    """What there is to know for whoever approves a plan version."""

    question_id: str
    run_id: str
    plan: Plan
    plan_ref: str
    """Where the whole plan is in the journal."""

    catalog: Catalog
    policy_hash: str
    tier: str
    reasons: tuple[str, ...]
    confirm: tuple[str, ...]
    """Ids of the steps that are shown in full."""

    preview: Preview
    """What the plan would do and take, as every other door shows it."""

    diff: Frozen | None = None
    """Against the version before (`plan.revise.diff.PlanDiff`)."""

    expires_at: datetime | None = None
    audience: str = "operator"
    allowed: tuple[str, ...] = ("approve", "reject", "edit", "changes")
    """Decisions that count."""

    roles: tuple[str, ...] = ()
    """Consent counts only from one of these; empty: from anyone."""

    quorum: int = 1
    """How many different people must approve."""

    outputs: Mapping[str, Json] = field(default_factory=dict)
    """Of steps that have ended: with them, arguments are known that were not before."""

    settled: frozenset[str] = frozenset()
    """Steps that have ended, which nobody can deny any more."""

    warnings: tuple[str, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)
    """By assumption what the run found out about it."""

    moved: tuple[Mapping[str, Json], ...] = ()
    """What changed outside since an approval: `object`, `was`, `now`."""

    info: tuple[Mapping[str, Json], ...] = ()
    """What was read because somebody asked for more."""

    @property
    def to_confirm(self) -> tuple[str, ...]:
        """Steps that a review of single steps must answer."""
        return tuple(s for s in self.confirm if s in self.plan.by_id and s not in self.settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCard:
    """What there is to know for whoever answers a question that is not about a whole plan."""

    question_id: str
    run_id: str
    kind: Literal["step", "effect", "escalation", "verdict"]
    text: str
    audience: str = "operator"
    answer_type: Literal["confirm", "choice", "text", "number"] = "text"
    """Of a `step` question."""

    options: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)
    """Values that the question is about, with references already replaced; for an effect: tool,
    arguments, keys and what is known of the attempt."""

    step: str | None = None
    plan_version: int
    plan_hash: str
    plan_ref: str
    expires_at: datetime | None = None
    roles: tuple[str, ...] = ()
    info: tuple[Mapping[str, Json], ...] = ()


SPARE: Final = 4 * 1024
"""Bytes of these that are kept for what became of an answer."""

SURELY_TOO_MANY: Final = LARGEST // 400
"""Steps that never fit together, as the shortest card of one is longer than 400 bytes."""


class _Room(NamedTuple):
    """How much is shown."""

    text: int | None = None
    most: int | None = None
    steps: int | None = None
    copies: bool = True
    """Whether arguments and description are repeated in the keys that only some clients read."""


_ROOMS: Final = (
    _Room(),
    _Room(copies=False),
    _Room(2_000, 200, copies=False),
    _Room(500, 50, 50, copies=False),
    _Room(200, 20, 20, copies=False),
    _Room(80, 5, 5, copies=False),
    _Room(80, 5, 0, copies=False),
)
"""Tried in turn; the last one always fits."""

_TOLD: Final = 300
"""Characters of what is said of an answer."""

_ANSWERS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "approval": ((), ("approve", "reject")),
    "confirm": (("answer",), ("approve", "reject")),
    "step": (("answer",), ("edit", "respond")),
    "effect": (
        ("settle", "retry", "stop", "escalate", "request_more_info"),
        ("edit", "respond"),
    ),
    "escalation": (("retry", "stop", "escalate", "request_more_info"), ("edit", "respond")),
    "verdict": (
        ("judge", "retry", "stop", "escalate", "request_more_info"),
        ("edit", "respond"),
    ),
}
"""By kind of question: the decisions that count, and the buttons that stand for them."""


def approval_payload(card: ApprovalCard) -> Shown:
    """Return the payload that asks for the approval of a plan version."""
    fallout = Fallout(card.plan, card.catalog, card.settled)
    return _fitting(lambda room: _approval(card, fallout, room), steps=len(card.to_confirm))


def question_payload(card: QuestionCard) -> Shown:
    """Return the payload that asks anything else."""
    return _fitting(lambda room: _question(card, room))


def asked_again(payload: Shown, says: str, *, counts: bool) -> Shown:
    """Return a payload that is shown once more, with what became of the answer to it.

    All that is asked stays as it was: it is what the question's digest binds.

    Args:
        payload: As it was asked.
        says: Why the answer decides nothing.
        counts: True: it counts, and others have to answer too.
    """
    told = Lens(_TOLD).text(says)
    line = f"**The last answer {'counts' if counts else 'was refused'}:** {in_markdown(told)}"
    return {
        **_below(line, payload),
        "last_answer": {"counts": counts, "says": told},
        "action_requests": [_below(line, each) for each in payload["action_requests"]],
    }


def _below(line: str, shown: Shown) -> Shown:
    return {**shown, "description": f"{line}\n\n{shown['description']}"}


def _fitting(build: Callable[[_Room], Shown], steps: int = 0) -> Shown:
    payload: Shown = {}
    for room in _ROOMS:
        if room.steps is None and steps > SURELY_TOO_MANY:
            continue
        payload = build(room)
        if len(json.dumps(payload, ensure_ascii=False).encode()) <= LARGEST - SPARE:
            break
    return payload


def _approval(card: ApprovalCard, fallout: Fallout, room: _Room) -> Shown:
    plan, lens = card.plan, Lens(room.text, room.most)
    confirm = card.to_confirm
    steps = [plan.by_id[each] for each in confirm]
    shown, left = steps[: room.steps], steps[len(steps[: room.steps]) :]
    asked = frozenset(confirm)
    others = [each for each in plan.steps if each.id not in asked]
    known = Known(
        catalog=card.catalog,
        values={"inputs": plan.inputs, **card.outputs},
        previewed={each.id: each for each in card.preview.steps},
    )
    native: Shown = {
        **_head("plan_approval", "approval", card, plan.version, plan.content_hash),
        **plan_card(plan, lens, card.assumed),
        "audience": card.audience,
        "roles": list(card.roles),
        "quorum": card.quorum,
        "parent_hash": plan.parent_hash,
        "author": {"kind": plan.author.kind, "name": lens.text(plan.author.name)},
        "catalog_hash": card.catalog.content_hash,
        "policy_hash": card.policy_hash,
        "tier": card.tier,
        "reasons": [lens.text(reason) for reason in lens.first(card.reasons)],
        "warnings": [lens.text(each) for each in lens.first(card.warnings)],
        "moved": [lens.value(each) for each in lens.first(card.moved)],
        "info": [lens.value(each) for each in lens.first(card.info)],
        "confirm": lens.first(confirm),
        "steps": [step_card(s, known, fallout.of([s.id], NAMED), lens) for s in shown],
        "left_out": [step.id for step in lens.first(left)],
        "other": [_other(step, card.settled) for step in lens.first(others)],
        "diff": None if card.diff is None else lens.value(thaw(card.diff.model_dump(mode="json"))),
        "estimate": estimate_card(card.preview.estimate),
        "preview": preview_card(card.preview, lens),
    }
    native["overflow"] = _overflow(lens, len(left), card.run_id, card.plan_ref)
    native["description"] = describe_plan(native)
    steps_as_args = {step["id"]: {step["capability"]: step["args"]} for step in native["steps"]}
    args = {"steps": steps_as_args} if room.copies else {}
    return _for_clients(native, f"approve_plan_v{plan.version}", args, copies=room.copies)


def _other(step: Step, settled: frozenset[str]) -> Shown:
    ended = {"ended": True} if step.id in settled else {}
    return {"id": step.id, "capability": step.capability, **ended}


def _question(card: QuestionCard, room: _Room) -> Shown:
    lens = Lens(room.text, room.most)
    hidden = room.steps == 0 and bool(card.details or card.info)
    native: Shown = {
        **_head("question", card.kind, card, card.plan_version, card.plan_hash),
        "audience": card.audience,
        "roles": list(card.roles),
        "step": card.step,
        "text": lens.text(card.text),
        "answer_type": card.answer_type if card.kind == "step" else None,
        "options": [lens.text(option) for option in lens.first(card.options)],
        "details": {} if hidden else lens.value(thaw(card.details)),
        "info": [] if hidden else [lens.value(each) for each in lens.first(card.info)],
    }
    native["overflow"] = _overflow(lens, int(hidden), card.run_id, card.plan_ref)
    native["description"] = describe_question(native)
    args = {"answer": "", **({"about": native["details"]} if room.copies else {})}
    return _for_clients(native, f"answer_{card.question_id}", args, copies=room.copies)


def _head(
    form: str, kind: str, card: ApprovalCard | QuestionCard, version: int, content_hash: str
) -> Shown:
    confirm = isinstance(card, QuestionCard) and (card.kind, card.answer_type) == (
        "step",
        "confirm",
    )
    decisions, buttons = _ANSWERS["confirm" if confirm else kind]
    if isinstance(card, ApprovalCard):
        decisions = card.allowed
        buttons = tuple(each for each in buttons if each in decisions)
    expires = None if card.expires_at is None else card.expires_at.isoformat()
    return {
        "type": form,
        "schema": f"plangate/{form}/1",
        "kind": kind,
        "question_id": card.question_id,
        "run_id": card.run_id,
        "plan_version": version,
        "plan_hash": content_hash,
        "plan": card.plan_ref,
        "answer_type": None,
        "expires_at": expires,
        "allowed_decisions": list(decisions),
        "answer_form": {
            "decision": " | ".join(decisions),
            "question_id": card.question_id,
            "plan_hash": content_hash,
            "by": "who",
            "comment": "",
            **({"steps": {}, "edits": []} if kind == "approval" else {}),
        },
        "buttons": list(buttons),
    }


def _overflow(lens: Lens, left_out: int, run_id: str, plan_ref: str) -> Shown | None:
    if not (lens.cut or left_out):
        return None
    says = f"{lens.cut} values are cut where it says so, and {left_out} parts are left out."
    return {
        "says": f"{says} All of it: `plangate run show {run_id} --json`.",
        "cut": lens.cut,
        "left_out": left_out,
        "see": plan_ref,
    }


def _for_clients(native: Shown, name: str, args: Shown, *, copies: bool) -> Shown:
    """Add the keys that LangChain's clients, agent-chat-ui and Agent Inbox look for.

    Agent Inbox reads `arguments` where LangChain writes `args`, and takes "reject" for its text
    field; agent-chat-ui finds the review configuration by the action's name.
    """
    buttons: list[str] = native.pop("buttons")
    about = {"plan_version": native["plan_version"], "plan_hash": native["plan_hash"], **args}
    text = native["description"]
    action: dict[str, Any] = {"name": name, "args": about, "arguments": about, "description": text}
    return {
        **native,
        "description": text if copies else text.partition("\n\n")[0],
        "action_requests": [action],
        "review_configs": [{"action_name": name, "allowed_decisions": buttons}],
        "action_request": {"action": name, "args": about},
        "config": {
            "allow_accept": "approve" in buttons,
            "allow_edit": "edit" in buttons,
            "allow_respond": native["answer_type"] != "confirm"
            and (native["kind"] != "approval" or "changes" in native["allowed_decisions"]),
            "allow_ignore": False,
        },
    }
