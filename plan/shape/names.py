"""What a rule says about our names: each one found, typed, and replaced by a variable for CEL."""

from __future__ import annotations

from dataclasses import dataclass

from plangate.plan.shape.scope import RuleFault, RuleScope
from plangate.plan.shape.tokens import BANNED, MACROS, Chain, Use, plain_string, tokens_of
from plangate.plan.shape.value import ANY, Missing, Shape

MAX_MACROS = 2
_TIGHT = frozenset({"!", "-", "+", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "in", "."})
"""Words that bind as tightly as a comparison with null, or tighter."""

_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable of the compiled rule, and where its value comes from."""

    variable: str
    path: tuple[str, ...]
    use: Use
    type: str
    """CEL type: a scalar, `list <scalar>`, `map` or `dyn`."""


class Reader:
    """Finds our names in one rule and what each must be."""

    def __init__(self, rule: str, scope: RuleScope) -> None:
        self.tokens = tokens_of(rule)
        self.scope = scope
        self.faults: list[RuleFault] = []
        self.slots: list[Slot] = []
        self.types: list[str] = []
        self.spans: list[tuple[int, int, str]] = []
        self.unchecked: list[str] = []
        self.bound: dict[str, Shape] = {}
        self.bound_at: set[int] = set()

    def read(self) -> None:
        """Go through the rule once, left to right."""
        self._guard()
        at = self.tokens.size if self.faults else 0
        while at < self.tokens.size:
            is_name = self.tokens.all[at].kind == "name"
            at = (is_name and self._named(at)) or at + 1

    def _named(self, at: int) -> int:
        return self._null_first(at) or self._has(at) or self._name(at) or self._macro(at)

    def _guard(self) -> None:
        words = range(self.tokens.size)
        calls = [self.tokens.words[at] for at in words if self.tokens.words[at + 1] == "("]
        if any(word in BANNED for word in calls):
            self.faults.append(
                RuleFault("uses map(), which may grow without bound", "Use exists().")
            )
        if sum(word in MACROS for word in calls) > MAX_MACROS:
            says = f"has more than {MAX_MACROS} of all(), exists(), exists_one(), filter()"
            self.faults.append(RuleFault(says, "Split the rule."))

    def _macro(self, at: int) -> int:
        variable = self.tokens.macro_at(at)
        if variable is not None and at not in self.bound_at:
            self._bind(variable, ANY)
        return at + 1

    def _bind(self, variable: str, shape: Shape) -> None:
        if variable == "steps" or variable in self.scope.heads:
            says = f"{variable!r} is a name of ours and cannot be a variable"
            self.faults.append(RuleFault(says, "Use another letter."))
        self.bound[variable] = shape

    def _has(self, at: int) -> int:
        if self.tokens.words[at] != "has" or self.tokens.words[at + 1] != "(":
            return 0
        chain = self.tokens.chain_at(at + 2)
        if chain is None or chain.parts[0] in self.bound or self.tokens.words[chain.last] != ")":
            return 0
        return self._take(chain, "present", at, chain.last + 1)

    def _null_first(self, at: int) -> int:
        if self.tokens.words[at] != "null":
            return 0
        sign = self.tokens.words[at + 1]
        if sign not in ("==", "!="):
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
        sign, end = self.tokens.words[chain.last], chain.last + 2
        is_null = sign in ("==", "!=") and self.tokens.words[chain.last + 1] == "null"
        if is_null and not self._tight(at - 1, end):
            return self._take(chain, "null" if sign == "==" else "not_null", at, end)
        return self._take(chain, "value", at, chain.last)

    def _tight(self, before: int, after: int) -> bool:
        return self.tokens.words[before] in _TIGHT or self.tokens.words[after] in _TIGHT

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
        self._slot(chain, use, shape, (self.tokens.all[first].start, self.tokens.all[last - 1].end))
        return last

    def _slot(self, chain: Chain, use: Use, shape: Shape, span: tuple[int, int]) -> None:
        variable = f"v{len(self.slots)}"
        kind = _type(shape) if use == "value" else "bool"
        if kind == "dyn" and chain.parts[0] != "facts":
            self.unchecked.append(chain.dotted)
        self.slots.append(Slot(variable, chain.parts, use, kind))
        self.types.append(kind)
        self.spans.append((*span, variable))

    def _iterates(self, chain: Chain, shape: Shape) -> None:
        variable = self.tokens.macro_at(chain.last + 1)
        if variable is not None:
            self.bound_at.add(chain.last + 1)
            self._bind(variable, (shape.items or ANY) if shape.kind == "array" else ANY)

    def _compares(self, chain: Chain, shape: Shape) -> None:
        if not shape.enum:
            return
        after = self.tokens.words[chain.last]
        said = []
        if after in ("==", "!="):
            said = [self.tokens.all[chain.last + 1]]
        elif after == "in" and self.tokens.words[chain.last + 1] == "[":
            end = chain.last + 2
            while self.tokens.all[end].kind == "string" or self.tokens.words[end] == ",":
                said.append(self.tokens.all[end])
                end += 1
        elif self.tokens.words[chain.first - 1] in ("==", "!="):
            said = [self.tokens.all[chain.first - 2]]
        for text in filter(None, map(plain_string, said)):
            if text not in shape.enum:
                says = f"{chain.dotted!r} is never {text!r}"
                self.faults.append(RuleFault(says, f"It is one of {shape}."))


def _type(shape: Shape) -> str:
    if shape.kind == "array":
        inside = shape.items or ANY
        return f"list {'dyn' if inside.nullable else _SCALARS.get(inside.kind, 'dyn')}"
    return "map" if shape.kind == "object" else _SCALARS.get(shape.kind, "dyn")
