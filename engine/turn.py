"""One turn of an agent step: a quarantined question to its model, and what the answer wants.

A turn is an attempt like that of a model step. The model answers in one closed form, so that no
provider's protocol of tools stands between what it wrote and what is checked; what its calls
returned is shown to it as data, never as messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from plangate.models.render import render_tools
from plangate.plan.contract import CALLS, tools_of
from plangate.plan.secrets import REFERENCE
from plangate.plan.value.frozen import canonical, load_written
from plangate.plan.value.refs import Ref, leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plangate.engine.bench import Bench
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.step import Step

ANSWER: Final = "answer"
"""What a model writes in the place of a tool when it is done."""

MOST_ARGUMENTS: Final = 20_000
"""Characters of the arguments of one call."""

MOST_SHOWN: Final = 8_000
"""Characters of one result that a model is shown; a larger one it is told the size of."""

FORM: Final[Mapping[str, Json]] = {
    "type": "object",
    "properties": {
        "tool": {"type": "string", "maxLength": 80},
        "arguments": {"type": "string", "maxLength": MOST_ARGUMENTS},
    },
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}


_SECRET: Final = re.compile(REFERENCE)


class Wish(NamedTuple):
    """What a model wants in one turn."""

    tool: str
    args: Mapping[str, Json] | None
    """None: what it wrote is no JSON object."""

    why: str = ""
    """Why there are none, or why they cannot be taken as they are."""


def turn_of(step: Step, calls: Sequence[Json]) -> Step:
    """Return the question of a turn as a step of its own, without the envelope.

    Args:
        step: The agent step.
        calls: What it did so far. It is handed on as one text: in JSON of its own, a result that
            looks like a reference would be filled in.
    """
    return step.model_copy(
        update={
            "args": {**step.args, CALLS: canonical(list(calls)).decode()},
            "output": FORM,
            "autonomy": None,
            "when": None,
            "preconditions": (),
            "success": (),
            "routes": (),
        }
    )


def told(bench: Bench, step: Step) -> dict[str, Json]:
    """Return what a model is told of its envelope: words of contracts and of the plan alone."""
    agent = bench.plan.by_id[step.id]
    return {
        "tools": render_tools(tools_of(agent, bench.catalog)),
        "answer": agent.output or {},
    }


def wish_of(said: Mapping[str, Json]) -> Wish:
    """Read a turn; never raises for what a model wrote."""
    tool, text = str(said["tool"]), str(said["arguments"])
    try:
        args = load_written(text)
        canonical(args)  # what has no exact form cannot be recorded
    except (ValueError, RecursionError) as exc:
        return Wish(tool, None, f"its arguments are no JSON: {exc}"[:200])
    if not isinstance(args, Mapping):
        return Wish(tool, None, "its arguments are no JSON object")
    return Wish(tool, args, _reaches_out(args))


def shown(result: Json) -> Json:
    """Return a result as a model is shown it."""
    size = len(json.dumps(result, ensure_ascii=False))
    return result if size <= MOST_SHOWN else {"too large to be shown": f"{size:,} characters"}


def _reaches_out(args: Mapping[str, Json]) -> str:
    """Say where a text would become something else than itself once it is an argument."""
    for path, value in leaves(args):
        if not isinstance(value, str):
            continue
        if value.startswith("${") or Ref.parse(value) is not None:
            return f"{'.'.join(path)} is a reference; a model hands over values only"
        if _SECRET.match(value):
            return f"{'.'.join(path)} names a secret; a model has none to hand over"
    return ""
