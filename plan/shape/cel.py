"""Conditions in CEL: compiled against shapes before anything runs; without its data, unknown.

One wrapper around Google's CEL. A rule is typed: an unknown field, a step that is no ancestor or a
comparison of text with a number is a fault before approval. At run time a name without a value
makes the rule unknown (None), never false, unless the rest decides it: `true || missing` is true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from plangate.plan.shape.names import Reader, Slot
from plangate.plan.shape.scope import RuleFault, RuleScope
from plangate.plan.shape.tokens import rewrite

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

MAX_LENGTH = 500
MAX_NODES = 20_000
"""Values inside one list or object; a larger one is not looked at, and the rule is unknown."""

MAX_TEXT = 100_000
"""Characters; the same."""

_AT = re.compile(r"<input>:\d+:(\d+): (.*)")
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule that is ready to be judged; safe to share between threads."""

    rule: str
    names: tuple[str, ...]
    """Dotted names that occur, in order."""

    unchecked: tuple[str, ...]
    """Names of unknown type: a comparison of such a name is not checked before it runs."""

    _slots: tuple[Slot, ...]
    _program: Any

    def evaluate(self, values: Mapping[str, Json]) -> bool | None:
        """Judge the rule.

        Args:
            values: By head: `inputs`, `result`, `observed`, `run`, `facts`, and `steps` by id, each
                with `output` and `status`. What is left out is missing.

        Returns:
            None where it cannot be decided: a value is missing, null or too large, or an operation
            on it fails. It never raises.
        """
        data = {}
        for slot in self._slots:
            value = _look_up(values, slot)
            if value is not _ABSENT:
                data[slot.variable] = value
        try:
            result = self._program.eval(data=data).value()
        except (RuntimeError, ValueError, TypeError, OverflowError, MemoryError):
            return None  # the engine's own limits, or text that is not Unicode
        return result if isinstance(result, bool) else None


def compile_rule(rule: str, scope: RuleScope) -> Compiled | tuple[RuleFault, ...]:
    """Compile a rule against the names of a scope, or return all that is wrong with it."""
    if len(rule) > MAX_LENGTH:
        return (RuleFault(f"has {len(rule)} characters, more than {MAX_LENGTH}", "Split it."),)
    reader = Reader(rule, scope)
    reader.read()
    if reader.faults:
        return tuple(reader.faults)
    program = _program(rewrite(rule, reader.spans), tuple(reader.types))
    if isinstance(program, str):
        return (_explained(program, rule),)
    slots = tuple(reader.slots)
    names = tuple(dict.fromkeys(".".join(slot.path) for slot in slots))
    return Compiled(rule, names, tuple(reader.unchecked), slots, program)


@lru_cache(maxsize=8192)
def _program(text: str, types: tuple[str, ...]) -> Any:
    try:
        program = _environment(types).compile(text)
    except (RuntimeError, ValueError, TypeError) as exc:  # ill-formed text is a ValueError
        return str(exc)
    kind = program.return_type().name().lower()
    return program if kind == "bool" else f"gives {kind}, not true or false"


@lru_cache(maxsize=1024)
def _environment(types: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415  50 MB of native code, for who has a rule only

    known = {
        "string": cel.Type.STRING,
        "int": cel.Type.INT,
        "double": cel.Type.DOUBLE,
        "bool": cel.Type.BOOL,
        "dyn": cel.Type.DYN,
        "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    }
    known |= {f"list {name}": cel.Type.List(kind) for name, kind in known.items() if name != "map"}
    return cel.NewEnv(variables={f"v{at}": known[kind] for at, kind in enumerate(types)})


def _explained(error: str, rule: str) -> RuleFault:
    match = _AT.search(error)
    if match is None:
        says = error if error.startswith("gives") else error.splitlines()[0]
        return RuleFault(says, "Write a comparison, as result.ok == true.")
    text = re.split(r" \(in container| expecting | \[INVALID_ARGUMENT", match[2])[0]
    place = f"at column {match[1]} of {rule!r}: "
    if match_types := re.search(r"for '(\S+)' applied to '\((.*)\)'", text):
        sign, types = match_types[1].strip("_"), match_types[2]
        return RuleFault(f"{place}{sign!r} does not take ({types})", _type_hint(types))
    return RuleFault(place + text, "Correct the rule; it is CEL.")


def _type_hint(types: str) -> str:
    if set(types.split(", ")) == {"int", "double"}:
        return "Write 1.0 for a number that is not whole, or convert with double(...) or int(...)."
    return "Compare values of one type."


def _look_up(values: Mapping[str, Json], slot: Slot) -> Any:
    here: Any = values
    path = slot.path if slot.use != "present" else slot.path[:-1]
    for part in path:
        here = _below(here, part)
    if here is _ABSENT:
        return _ABSENT
    if slot.use == "present":
        is_container = isinstance(here, (Mapping, Sequence)) and not isinstance(here, str)
        return _below(here, slot.path[-1]) is not _ABSENT if is_container else _ABSENT
    if slot.use != "value":
        return (here is None) == (slot.use == "null")
    return _converted(here, slot.type)


def _below(here: Any, part: str) -> Any:
    if isinstance(here, Mapping):
        return here.get(part, _ABSENT)
    if isinstance(here, str) or not isinstance(here, Sequence) or not part.isdecimal():
        return _ABSENT
    return here[int(part)] if int(part) < len(here) else _ABSENT


def _converted(value: Any, kind: str) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else _ABSENT
    if kind == "int" and isinstance(value, float):
        return int(value) if value.is_integer() else _ABSENT
    if isinstance(value, (Mapping, Sequence)):
        left = [MAX_NODES]
        plain = _plain(value, left)
        return plain if left[0] > 0 else _ABSENT
    return value


def _plain(value: Any, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] <= 0:
        return None
    if isinstance(value, Mapping):
        return {str(name): _plain(item, left) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item, left) for item in value]
    return value
