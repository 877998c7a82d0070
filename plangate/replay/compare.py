"""Two logs of one run laid side by side: where today's behaviour is another, and what may be why.

Pure. Events are matched by what they are about and not by their place, since the order in which
parallel steps end is nobody's decision; the order of steps that rely on each other is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plangate.plan.contract import MODEL
from plangate.replay.substance import facts_of, key_of

if TYPE_CHECKING:
    from plangate.journal.events import Event
    from plangate.plan.fingerprint import Change
    from plangate.replay.substance import Facts, Key

_NOTHING: Final = "nothing"
_SHORT: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place at which today's code would not do what was done."""

    kind: str
    """plan, issues, tier, question, decision, release, attempt, effect, verdict, step, trigger,
    repair, model, budget, goal, end, call, run."""

    about: str
    """Which one: `v1`, `S6`, `S6-A1`, `q2`, ..."""

    was: str
    would: str
    why: tuple[str, ...] = ()
    """Parts of the fingerprint that changed and can be the reason; empty: none that is known."""

    @property
    def line(self) -> str:
        """In words, on one line."""
        because = f" ({'; '.join(self.why)})" if self.why else ""
        return f"{self.kind} {self.about}: was {self.was}, would be {self.would}{because}"


def differences(
    was: Sequence[Event], would: Sequence[Event], changes: Sequence[Change]
) -> Iterator[Difference]:
    """Yield what differs, in the order of the log.

    Args:
        was: The events of the record.
        would: Those of the replay.
        changes: What the run is made of today and was not then.
    """
    return _gathered(_each(was, would, changes))


def _each(
    was: Sequence[Event], would: Sequence[Event], changes: Sequence[Change]
) -> Iterator[Difference]:
    before, after = _laid_out(was), _laid_out(would)
    tools = _tools_of([*was, *would])
    for key in dict.fromkeys([*before, *after]):
        why = _reasons(key, changes, tools)
        for kind, field, old, new in _pairs(key, before.get(key, []), after.get(key, [])):
            about = " ".join(filter(None, (_about(key), field)))
            yield Difference(kind=kind, about=about, was=old, would=new, why=why)


def _gathered(found: Iterator[Difference]) -> Iterator[Difference]:
    """Say once of each kind what would not happen any more: after an early end, that is a lot."""
    gone: dict[str, list[Difference]] = {}
    for each in found:
        if each.would == _NOTHING and each.kind in _MANY:
            gone.setdefault(each.kind, []).append(each)
        else:
            yield each
    for kind, many in gone.items():
        names = list(dict.fromkeys(each.about.partition(" of v")[0] for each in many))
        was = many[0].was if len(many) == 1 else str(len(names))
        yield Difference(
            kind=kind, about=", ".join(names), was=was, would=_NOTHING, why=many[0].why
        )


def _laid_out(events: Sequence[Event]) -> dict[Key, list[Facts]]:
    """Gather what is said about each thing, without saying it twice in a row."""
    found: dict[Key, list[Facts]] = {}
    states: dict[Key, str] = {}
    for event in events:
        key, facts = key_of(event), facts_of(event)
        if facts is None:
            continue
        if event.type == "effect_moved":
            states[key[:-1]] = event.state  # on the way it may be asked more or less often
            continue
        said = found.setdefault(key, [])
        if not said or said[-1] != facts:
            said.append(facts)
    return found | {key: [{"state": state}] for key, state in states.items()}


def _pairs(
    key: Key, old: Sequence[Facts], new: Sequence[Facts]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield kind, field, and what it was and would be."""
    kind = _KINDS.get(key[0], key[0])
    for number in range(max(len(old), len(new))):
        a = old[number] if number < len(old) else None
        b = new[number] if number < len(new) else None
        if a is None or b is None:
            yield kind, "", _whole(a), _whole(b)
            continue
        for name in dict.fromkeys([*a, *b]):
            x, y = a.get(name), b.get(name)
            if x != y:
                yield (name, "", _text(x), _text(y)) if name in _OWN else (
                    kind, name.replace("_", " "), _text(x), _text(y)
                )  # fmt: skip


def _whole(facts: Facts | None) -> str:
    if facts is None:
        return _NOTHING
    shown = [_text(value) for value in list(facts.values())[:2] if value not in (None, "", [], {})]
    return " ".join(shown) or "there"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items()) or "none"
    if value is None or value == "":
        return "none"
    said = ("no", "yes")[value] if isinstance(value, bool) else str(value)
    said = said.removeprefix("sha256:")[:12] if _is_hash(said) else said
    return said if len(said) <= _SHORT else said[: _SHORT - 1] + "…"


def _is_hash(said: str) -> bool:
    bare = said.removeprefix("sha256:")
    return len(bare) == 64 and all(c in "0123456789abcdef" for c in bare)  # noqa: PLR2004


def _about(key: Key) -> str:
    kind, *names = key
    if kind.startswith("plan_"):
        return f"v{names[0]}"
    if kind in ("step_released", "step_ended"):
        return f"{names[1]} of v{names[0]}"
    if kind in ("question_asked", "decision_taken", "info_read"):
        return names[0].rpartition("-")[2]
    if kind == "effect_moved":
        return names[0]
    return " ".join(filter(None, names))


def _tools_of(events: Sequence[Event]) -> dict[str, str]:
    """Return, by step and by attempt, the tool that it calls."""
    found: dict[str, str] = {}
    for event in events:
        if event.type == "attempt_started":
            name = MODEL if event.asks else event.capability.partition("@")[0]
            found[event.step] = found[event.attempt_id] = name
    return found


def _reasons(key: Key, changes: Sequence[Change], tools: Mapping[str, str]) -> tuple[str, ...]:
    """Return the changes that can be behind a difference: the nearest that there are."""
    near = _NEAR.get(key[0], ())
    named = [tools[name] for name in key[1:] if name in tools]
    own = [each for each in changes if each.part in [f"tool:{name}" for name in named]]
    kin = [each for each in changes if each.part.partition(":")[0] in near]
    return tuple(each.says for each in own or kin or changes)


_MANY: Final = frozenset({"release", "attempt", "verdict", "step"})
_OWN: Final = frozenset({"tier", "issues"})
"""Fields that a reader looks for by their own name."""

_KINDS: Final[Mapping[str, str]] = {
    "plan_proposed": "plan",
    "plan_validated": "plan",
    "plan_criticized": "critic",
    "draft_refused": "draft",
    "question_asked": "question",
    "decision_taken": "decision",
    "step_released": "release",
    "attempt_started": "attempt",
    "attempt_ended": "attempt",
    "effect_moved": "effect",
    "verdict_reached": "verdict",
    "step_ended": "step",
    "trigger_fired": "trigger",
    "reflected": "repair",
    "model_called": "model",
    "budget_stopped": "budget",
    "goal_verified": "goal",
    "run_ended": "end",
    "run_started": "run",
    "info_read": "read",
    "world_moved": "world",
}

_CHECKED: Final = ("policy", "tool", "plan_schema")
_NEAR: Final[Mapping[str, tuple[str, ...]]] = {
    "model_called": ("prompt",),
    "plan_proposed": ("template", "prompt", "repairs", "plan_schema"),
    "draft_refused": ("prompt", "tool"),
    "plan_validated": _CHECKED,
    "question_asked": _CHECKED,
    "decision_taken": _CHECKED,
    "step_released": _CHECKED,
    "attempt_started": ("tool", "template"),
    "attempt_ended": ("tool",),
    "reflected": ("repairs",),
    "trigger_fired": ("tool", "policy"),
}
