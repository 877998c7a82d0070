"""Conditions in CEL: compiled against shapes before anything runs, and unknown where data is missing.

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

from plangate.plan.shape.scope import RuleFault, RuleScope
from plangate.plan.shape.shape import ANY, Missing, Shape
from plangate.plan.shape.tokens import BANNED, MACROS, Chain, Tokens, Use, plain_string, rewrite

if TYPE_CHECKING:
    from plangate.plan.value.frozen import Json

MAX_LENGTH = 500
MAX_MACROS = 2
MAX_NODES = 20_000
"""Values inside one list or object; a larger one is not looked at, and the rule is unknown."""

MAX_TEXT = 100_000
"""Characters; the same."""

_STEP = re.compile(r"""\bsteps\s*(?:\.\s*([A-Za-z]\w*)|\[\s*["']([A-Za-z]\w*)["']\s*\])""")
_AT = re.compile(r"<input>:\d+:(\d+): (.*)")
_TIGHT = frozenset({"!", "-", "+", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "in", "."})
_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class _Slot:
    variable: str
    path: tuple[str, ...]
    use: Use
    kind: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule that is ready to be judged; safe to share between threads."""

    rule: str
    names: tuple[str, ...]
    """Dotted names that occur, in order."""

    unchecked: tuple[str, ...]
    """Names of unknown type: a comparison of such a name is not checked before it runs."""

    _slots: tuple[_Slot, ...]
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
    """Compile a rule against the names of a scope; all that is wrong with it is returned at once."""
    if len(rule) > MAX_LENGTH:
        return (RuleFault(f"has {len(rule)} characters, more than {MAX_LENGTH}", "Split it."),)
    reader = _Reader(rule, scope)
    reader.read()
    if reader.faults:
        return tuple(reader.faults)
    program = _program(rewrite(rule, reader.spans), tuple(reader.types))
    if isinstance(program, str):
        return (_explained(program, rule),)
    slots = tuple(reader.slots)
    names = tuple(dict.fromkeys(".".join(slot.path) for slot in slots))
    return Compiled(rule, names, tuple(reader.unchecked), slots, program)


def steps_in(rule: str) -> frozenset[str]:
    """Return the ids of the steps that a rule speaks of, be it right or wrong."""
    return frozenset(one or two for one, two in _STEP.findall(rule))


class _Reader:
    """Finds our names in one rule and what each must be."""

    def __init__(self, rule: str, scope: RuleScope) -> None:
        self.tokens = Tokens(rule)
        self.scope = scope
        self.faults: list[RuleFault] = []
        self.slots: list[_Slot] = []
        self.types: list[str] = []
        self.spans: list[tuple[int, int, str]] = []
        self.unchecked: list[str] = []
        self.bound: dict[str, Shape] = {}

    def read(self) -> None:
        """Go through the rule once, left to right."""
        self._guard()
        at = 0
        while at < len(self.tokens):
            at = self._null_first(at) or self._has(at) or self._name(at) or self._macro(at)

    def _guard(self) -> None:
        words = range(len(self.tokens))
        calls = [self.tokens.text(at) for at in words if self.tokens.text(at + 1) == "("]
        if any(word in BANNED for word in calls):
            self.faults.append(
                RuleFault("uses map(), which may grow without bound", "Use exists().")
            )
        if sum(word in MACROS for word in calls) > MAX_MACROS:
            says = f"has more than {MAX_MACROS} of all(), exists(), exists_one(), filter()"
            self.faults.append(RuleFault(says, "Split the rule."))

    def _macro(self, at: int) -> int:
        variable = self.tokens.macro_at(at)
        if variable is not None:
            self._bind(variable, ANY)
        return at + 1

    def _bind(self, variable: str, shape: Shape) -> None:
        if variable == "steps" or variable in self.scope.heads:
            says = f"{variable!r} is a name of ours and cannot be a variable"
            self.faults.append(RuleFault(says, "Use another letter."))
        self.bound[variable] = shape

    def _has(self, at: int) -> int:
        if self.tokens.text(at) != "has" or self.tokens.text(at + 1) != "(":
            return 0
        chain = self.tokens.chain_at(at + 2)
        if chain is None or chain.parts[0] in self.bound or self.tokens.text(chain.last) != ")":
            return 0
        return self._take(chain, "present", at, chain.last + 1)

    def _null_first(self, at: int) -> int:
        sign = self.tokens.text(at + 1)
        if self.tokens.text(at) != "null" or sign not in ("==", "!="):
            return 0
        chain = self.tokens.chain_at(at + 2)
        if chain is None or chain.parts[0] in self.bound or self._tight(at - 1, chain.last):
            return 0
        return self._take(chain, "null" if sign == "==" else "not_null", at, chain.last)

    def _name(self, at: int) -> int:
        chain = self.tokens.chain_at(at)
        if chain is None:
            return 0
        if chain.parts[0] in self.bound:
            return self._element(chain)
        sign, end = self.tokens.text(chain.last), chain.last + 2
        is_null = sign in ("==", "!=") and self.tokens.text(chain.last + 1) == "null"
        if is_null and not self._tight(at - 1, end):
            return self._take(chain, "null" if sign == "==" else "not_null", at, end)
        return self._take(chain, "value", at, chain.last)

    def _tight(self, before: int, after: int) -> bool:
        return self.tokens.text(before) in _TIGHT or self.tokens.text(after) in _TIGHT

    def _element(self, chain: Chain) -> int:
        found = self.bound[chain.parts[0]].at(chain.parts[1:])
        if isinstance(found, Missing):
            where = ".".join((chain.parts[0], *filter(None, [found.where])))
            known = ", ".join(found.known) or "none"
            says = f"{chain.dotted!r}: {where} has no {found.part!r}"
            self.faults.append(RuleFault(says, f"Fields of {where}: {known}."))
        else:
            self._iterates(chain, found)
        return chain.last

    def _take(self, chain: Chain, use: Use, first: int, last: int) -> int:
        shape = self.scope.find(chain.parts)
        if isinstance(shape, RuleFault):
            self.faults.append(shape)
            return last
        if use in ("null", "not_null") and not (shape.nullable or shape.kind == "any"):
            says, hint = (
                f"{chain.dotted!r} is never null",
                f"Write has({chain.dotted}) or leave it.",
            )
            self.faults.append(RuleFault(says, hint))
        if use == "value":
            self._compares(chain, shape)
            self._iterates(chain, shape)
        self._slot(chain, use, shape, (self.tokens[first].start, self.tokens[last - 1].end))
        return last

    def _slot(self, chain: Chain, use: Use, shape: Shape, span: tuple[int, int]) -> None:
        variable = f"v{len(self.slots)}"
        kind = _type(shape) if use == "value" else "bool"
        if kind == "dyn" and chain.parts[0] != "facts":
            self.unchecked.append(chain.dotted)
        self.slots.append(_Slot(variable, chain.parts, use, kind))
        self.types.append(kind)
        self.spans.append((*span, variable))

    def _iterates(self, chain: Chain, shape: Shape) -> None:
        variable = self.tokens.macro_at(chain.last + 1)
        if variable is not None:
            self._bind(variable, (shape.items or ANY) if shape.kind == "array" else ANY)

    def _compares(self, chain: Chain, shape: Shape) -> None:
        if not shape.enum:
            return
        after = self.tokens.text(chain.last)
        said = []
        if after in ("==", "!="):
            said = [self.tokens[chain.last + 1]]
        elif after == "in" and self.tokens.text(chain.last + 1) == "[":
            end = chain.last + 2
            while self.tokens[end].kind == "string" or self.tokens.text(end) == ",":
                said.append(self.tokens[end])
                end += 1
        elif self.tokens.text(chain.first - 1) in ("==", "!="):
            said = [self.tokens[chain.first - 2]]
        for text in filter(None, map(plain_string, said)):
            if text not in shape.enum:
                says = f"{chain.dotted!r} is never {text!r}"
                self.faults.append(RuleFault(says, f"It is one of {shape}."))


def _type(shape: Shape) -> str:
    if shape.kind == "array":
        inside = shape.items or ANY
        return f"list({'dyn' if inside.nullable else _SCALARS.get(inside.kind, 'dyn')})"
    return "map(string, dyn)" if shape.kind == "object" else _SCALARS.get(shape.kind, "dyn")


@lru_cache(maxsize=8192)
def _program(text: str, types: tuple[str, ...]) -> Any:
    try:
        program = _environment(types).compile(text)
    except RuntimeError as exc:
        return str(exc)
    kind = program.return_type().name().lower()
    return program if kind == "bool" else f"gives {kind}, not true or false"


@lru_cache(maxsize=1024)
def _environment(types: tuple[str, ...]) -> Any:
    from cel_expr_python import cel  # noqa: PLC0415  50 MB of native code, for who has a rule only

    return cel.NewEnv(variables={f"v{at}": cel.Type(kind) for at, kind in enumerate(types)})


def _explained(error: str, rule: str) -> RuleFault:
    match = _AT.search(error)
    if match is None:
        says = error if error.startswith("gives") else error.splitlines()[0]
        return RuleFault(says, "Write a comparison, as result.ok == true.")
    text = match[2].split(" (in container")[0].removesuffix(" [INVALID_ARGUMENT]")
    place = f"at column {match[1]} of {rule!r}: "
    if match_types := re.search(r"for '(\S+)' applied to '\((.*)\)'", text):
        sign, types = match_types[1].strip("_"), match_types[2]
        return RuleFault(f"{place}{sign!r} does not take ({types})", _type_hint(types))
    return RuleFault(place + text, "Correct the rule; it is CEL.")


def _type_hint(types: str) -> str:
    if set(types.split(", ")) == {"int", "double"}:
        return "Write 1.0 for a number that is not whole, or convert with double(...) or int(...)."
    return "Compare values of one type."


def _look_up(values: Mapping[str, Json], slot: _Slot) -> Any:
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
    return _converted(here, slot.kind)


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
