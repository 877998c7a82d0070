"""How many tokens a model step is sent: what its arguments hold, or where they will come from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from plangate.budget.calls import P95_FACTOR
from plangate.budget.size import CALL_LIMIT, TEXT_P50, size_of
from plangate.budget.tokens import Counted, count_text
from plangate.plan.contract import RESERVED
from plangate.plan.forecast import Range
from plangate.plan.value.frozen import thaw
from plangate.plan.value.refs import Ref, leaves

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plangate.plan.catalog import Catalog
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step

BLOCK_TOKENS = 40.0
"""Of the marks around the data in a prompt (`plangate.prompts.loader.marked`)."""

NAME_TOKENS = 8.0
"""Of the name of a value, with its marks."""

_TEXT = Range(p50=TEXT_P50, p95=4 * TEXT_P50)


class Sent(NamedTuple):
    """What a step is sent."""

    tokens: Range
    sources: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts texts for one model, each once."""

    model: str
    _known: dict[str, Counted] = field(default_factory=dict)

    def count(self, text: str) -> Counted:
        """Return the tokens of a text and what counted them."""
        if text not in self._known:
            self._known[text] = count_text(text, self.model)
        return self._known[text]


@dataclass(frozen=True)
class Inputs:
    """The values of one plan, as far as they are known before it runs."""

    plan: Plan
    catalog: Catalog

    @cached_property
    def stand_ins(self) -> frozenset[str]:
        """Steps that run only where another one fails: in the middle they do not."""
        routes = (route for step in self.plan.steps for route in step.routes)
        return frozenset(each.step for each in routes if each.action == "fallback" and each.step)

    def of(self, step: Step, counter: Counter) -> Sent:
        """Return what the arguments of a step come to."""
        around = BLOCK_TOKENS + NAME_TOKENS * len(step.args)
        tokens, sources, unknown = Range(p50=around, p95=around), list[str](), list[str]()
        for name, given in step.args.items():
            for _, value in leaves(given):
                ref = Ref.parse(value)
                if ref is None or ref.source == "user":
                    found = self._counted(value if ref is None else self._input(ref), counter)
                    tokens, sources = tokens + found[0], [*sources, found[1]]
                    continue
                size, source, gap = self._coming(ref, step)
                tokens, sources = tokens + size, [*sources, source]
                unknown += [f"{name}: {gap}"] if gap else []
        return Sent(tokens, tuple(dict.fromkeys(sources)), tuple(unknown))

    def items(self, step: Step) -> tuple[Range, str]:
        """Return how often a step runs, and what is not known of that."""
        if step.for_each is None:
            return Range(p50=0 if step.id in self.stand_ins else 1, p95=1), ""
        ref = Ref.parse(step.for_each)
        listed = self._input(ref) if ref is not None and ref.source == "user" else None
        most = step.max_items
        if isinstance(listed, (list, tuple)):
            count = float(len(listed) if most is None else min(len(listed), most))
            return Range(p50=count, p95=count), ""
        if most is None:
            return Range(p50=1, p95=1), "for_each has no max_items, so one element is counted"
        return Range(p50=float(-(-most // 2)), p95=float(most)), ""

    def _input(self, ref: Ref) -> Json:
        try:
            return ref.resolve({"inputs": self.plan.inputs})
        except KeyError:
            return None

    def _counted(self, value: Json, counter: Counter) -> tuple[Range, str]:
        text = value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)
        counted = counter.count(text)
        return Range(p50=counted.tokens, p95=counted.tokens), counted.source

    def _coming(self, ref: Ref, step: Step) -> tuple[Range, str, str]:
        """Return the size of what an earlier step will give, its source, and what is not known."""
        if ref.source == "item":
            each = Ref.parse(step.for_each or "")
            if each is None or each.step is None:
                return _TEXT, "default", "the size of an element is not known"
            return self._given(each.step, (*each.path, "0", *ref.path))
        if ref.step is None:
            return _TEXT, "default", f"the size of {ref} is not known"
        return self._given(ref.step, ref.path)

    def _given(self, producer: str, path: tuple[str, ...]) -> tuple[Range, str, str]:
        made = self.plan.by_id.get(producer)
        if made is None or made.kind in ("human", "milestone"):
            return _TEXT, "default", "" if made is not None else f"there is no step {producer}"
        if made.kind in RESERVED:
            size = size_of(_at(made.output, path), CALL_LIMIT)
            gap = f"{producer} sets no bound for {size.unbounded[0]}" if size.unbounded else ""
            return size.range, "schema", gap
        spec = self.catalog.tools.get(made.tool or "")
        if spec is None:
            return _TEXT, "default", f"the size of {producer} is not known"
        whole = Range(p50=spec.output_tokens, p95=spec.output_tokens * P95_FACTOR)
        part = size_of(_at(spec.output, path)) if path else None
        if part is None or part.unbounded:
            return whole, "contract", ""
        least = Range(
            p50=min(part.range.p50, whole.p50), p95=min(part.range.p95, max(whole.p95, 1))
        )
        return Range(p50=min(least.p50, least.p95), p95=least.p95), "schema", ""


def _at(schema: Mapping[str, Any] | None, path: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the schema of what a path leads to; what it does not describe may be anything."""
    if schema is None:
        return None
    root = schema
    try:
        here = _followed(schema, root)
        for part in path:
            is_item = part.isdecimal() and here.get("type") == "array"
            inner = here.get("items", {}) if is_item else here.get("properties", {}).get(part, {})
            here = _followed(inner, root)
        return {**here, "$defs": root.get("$defs", {})}
    except (AttributeError, TypeError):  # it is no schema at all
        return None


def _followed(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = root.get("$defs", {}).get(name, schema)
    return found
