"""What a caller hands in, looked at before a run exists: a mistake must not leave a run behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from plangate.journal.artifacts import ref_of
from plangate.plan.errors import ConfigError, JournalError
from plangate.plan.facts import Rights
from plangate.plan.secrets import refuse_secrets
from plangate.plan.value.frozen import canonical, load_json, parse

if TYPE_CHECKING:
    from plangate.graph.state import State

LONGEST: Final = {"goal": 4000, "goal_id": 200}
"""Characters that a plan has room for."""

_LIKE = 'Invoke with {"goal": "...", "inputs": {...}}.'


def check_given(state: State) -> None:
    """Refuse a goal, names or inputs that no run could be made of.

    Raises:
        ConfigError: It says which of them, and what it should be.
    """
    given: Mapping[str, Any] = state
    for name in ("goal", "goal_id", "task", "run_id"):
        _check_text(name, given.get(name))
    if not str(given.get("goal") or "").strip():
        raise ConfigError("the goal is empty", hint=_LIKE)
    refuse_secrets("the run", {name: given.get(name) for name in ("goal", "goal_id", "task")})
    inputs = given.get("inputs")
    if inputs is None:
        return
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise ConfigError("the inputs are not named values", hint=_LIKE)
    refuse_secrets("the inputs", inputs)
    try:
        ref_of(inputs)
        canonical(load_json(canonical(inputs)))  # 1e20 comes back as a whole number, and too large
    except (JournalError, ValueError, RecursionError) as exc:
        raise ConfigError(
            "the inputs are not JSON data that every reader takes the same way",
            hint="Send whole numbers beyond 2**53 as text, no NaN or infinity, only valid Unicode.",
        ) from exc


def rights_of(context: object) -> Rights | None:
    """Read who acts from `context=`: a `Rights`, or a mapping of its fields.

    Returns:
        None where the context is absent or is a host's own object, which says nothing of rights.

    Raises:
        ConfigError: It was meant to say who acts, and does not.
    """
    hint = 'Pass context={"principal": "ann"}, or a plangate.plan.facts.Rights.'
    if isinstance(context, (str, bytes, int, float, list, tuple)):
        raise ConfigError(f"context= is of type {type(context).__name__}", hint=hint)
    if not isinstance(context, (Rights, Mapping)):
        return None
    try:
        return parse(Rights, context)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "context"
        raise ConfigError(f"context= names nobody: {where}: {fault['msg']}", hint=hint) from exc
    except (PydanticSerializationError, ValueError, TypeError) as exc:
        raise ConfigError("context= is no JSON data", hint=hint) from exc


def _check_text(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise ConfigError(f"{name} is of type {type(value).__name__}, not text", hint=_LIKE)
    most = LONGEST.get(name)
    if most is not None and len(value) > most:
        what = f"{name} has {len(value)} characters, and a plan has room for {most}"
        raise ConfigError(what, hint="Say it in fewer words; put the rest into the inputs.")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise ConfigError(f"{name} is not valid Unicode", hint="Clean the text first.") from exc
