"""A plan as a tree: what would be called, with which values from where, checked how, at what cost.

It shows what a person needs in order to approve: nothing that acts is folded away, and no value is
cut, since its end runs as well as its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rich.tree import Tree

from plangate.cli.terminal import line
from plangate.graph.arguments import elements, filled
from plangate.journal.progress import unit_of
from plangate.plan.contract import contract_of
from plangate.plan.value.frozen import thaw
from plangate.plan.value.refs import Ref, refs_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from rich.text import Text

    from plangate.plan.catalog import Catalog
    from plangate.plan.facts import PlanEstimate, StepEstimate
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Check, Step

_EFFECT_STYLE = {"none": "dim", "read": "green", "write": "yellow", "irreversible": "bold red"}
_TIER_STYLE = {"auto": "green", "selective": "yellow", "full": "bold red"}
_TIER_SAYS = {
    "auto": "runs without asking",
    "selective": "a person approves the marked steps",
    "full": "a person approves the whole plan",
}


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A plan with what is known about it; None or empty where nothing is."""

    plan: Plan
    catalog: Catalog | None = None
    tier: str = ""
    reasons: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    estimate: PlanEstimate | None = None
    outputs: Mapping[str, Json] = field(default_factory=dict)
    """Of steps that have ended: with them, arguments are known that were not before."""

    @cached_property
    def values(self) -> Mapping[str, Json]:
        """By head of a reference, what is known."""
        return {"inputs": self.plan.inputs, **self.outputs}

    @cached_property
    def _prices(self) -> Mapping[str, StepEstimate]:
        return {row.step: row for row in (self.estimate.steps if self.estimate else ())}

    def effect(self, step: Step) -> str:
        """Return the worst that a step can do, by its contract."""
        spec = contract_of(step, self.catalog)
        return spec.effect.value if spec else ""

    def priced(self, step: Step) -> StepEstimate | None:
        """Return what a step will probably take."""
        return self._prices.get(step.id)


def plan_tree(sheet: Sheet) -> Tree:
    """Return the whole plan."""
    plan = sheet.plan
    title = line(
        (plan.goal, "bold"),
        (f"plan v{plan.version} by {plan.author.kind} {plan.author.name}", "dim"),
        (plan.content_hash[:12], "dim"),
    )
    tree = Tree(title, guide_style="dim")
    for row in _head(sheet):
        tree.add(row)
    for step in plan.steps:
        _add_step(tree, step, sheet)
    for check in plan.success_criteria:
        tree.add(line(("goal is reached if", "bold"), _check(check)))
    return tree


def usd(amount: Decimal | None) -> str:
    """Return an amount of money; an unknown one says so."""
    return "unknown USD" if amount is None else f"{amount:f} USD"


def value(given: Json) -> str:
    """Return a JSON value on one line, all of it."""
    return json.dumps(thaw(given), ensure_ascii=False)


def _head(sheet: Sheet) -> Iterator[Text]:
    plan = sheet.plan
    if plan.inputs:
        given = ", ".join(f"{name} = {value(plan.inputs[name])}" for name in plan.inputs)
        yield line(("inputs", "bold"), given)
    if sheet.tier:
        style = _TIER_STYLE.get(sheet.tier, "")
        yield line(("tier", "bold"), (sheet.tier, style), _TIER_SAYS.get(sheet.tier, ""))
        yield from (line("  because", reason) for reason in sheet.reasons)
    if sheet.estimate is not None:
        yield line(("estimate", "bold"), _total(sheet.estimate))
    for each in plan.constraints:
        yield line(("must hold", "bold"), each.text, (f"[{each.source}]", "dim"))


def _total(priced: PlanEstimate) -> str:
    return (
        f"{priced.seconds.p50:.1f} s (95 % under {priced.seconds.p95:.1f} s), "
        f"{usd(priced.usd_p50)} (95 % under {usd(priced.usd_p95)}), "
        f"{priced.tokens.p50:.0f} tokens, {priced.calls.p50:.0f} calls"
    )


def _add_step(tree: Tree, step: Step, sheet: Sheet) -> None:
    effect = sheet.effect(step)
    mark = ("[needs your approval]", "bold yellow") if step.id in sheet.confirm else ""
    node = tree.add(
        line(
            (step.id, "bold"),
            (step.capability, "cyan"),
            (f"[{effect}]" if effect else "", _EFFECT_STYLE.get(effect, "")),
            mark,
            step.objective,
        )
    )
    for row in (*_loop(step, sheet.values), *_step_rows(step, sheet)):
        node.add(row)


def _step_rows(step: Step, sheet: Sheet) -> Iterator[Text]:
    for name, given in step.args.items():
        yield _argument(name, given, sheet.values)
    yield from _asked(step, sheet)
    yield from _envelope(step)
    if step.after:
        yield line(("after", "dim"), ", ".join(step.after))
    for rule in (*((step.when,) if step.when else ()), *step.preconditions):
        yield line(("only if", "dim"), rule)
    yield from (line(("check", "dim"), _check(each)) for each in step.success)
    for route in step.routes:
        yield line((f"on {route.on}", "dim"), route.action, route.step or "")
    priced = sheet.priced(step)
    if priced is not None and step.kind != "human":
        yield line(("cost", "dim"), f"{priced.seconds.p50:.2f} s, {usd(priced.usd_p50)}")


def _envelope(step: Step) -> Iterator[Text]:
    """What a model may do in an agent step."""
    if (said := step.autonomy) is None:
        return
    yield line(("may call", "dim"), f"{', '.join(said.tools)} (effect {said.ceiling} at most)")
    money = "" if said.max_usd is None else f", {usd(said.max_usd)}"
    yield line(("at most", "dim"), f"{said.max_steps} turns, {said.max_seconds} s{money}")


def _asked(step: Step, sheet: Sheet) -> Iterator[Text]:
    """What a person, or a model, is asked for."""
    if step.output is not None:
        yield line(("answers", "bold"), value(step.output))
    if step.question is not None:
        yield line(("asks", "bold"), step.question.audience + ":", step.question.text)
        for name, given in step.question.details.items():
            yield _argument(name, given, sheet.values)


def _loop(step: Step, values: Mapping[str, Json]) -> Iterator[Text]:
    if step.for_each is None:
        return
    yield line(("for each", "bold"), step.for_each, f"at most {step.max_items}")
    for number, given in enumerate(elements(step, values) or (), 1):
        yield line((f"  {unit_of(step.id, number)}", "dim"), value(given.args))


def _check(check: Check) -> str:
    looks = f", looks again with {check.tool}" if check.tool else ""
    return f"{check.level} {check.claim}{looks}"


def _argument(name: str, given: Json, values: Mapping[str, Json]) -> Text:
    ref, known = Ref.parse(given), filled(given, values)
    if ref is None:
        inside = sorted({str(each) for each in refs_in(given)})
        source = f"from {', '.join(inside)}" if inside else "constant"
        return line(f"{name} =", value(known), (f"({source})", "dim"))
    shown = str(ref) if known is given else value(known)
    place = f"output of {ref.step}" if ref.step else ref.source
    if ref.source == "user":
        return line(f"{name} =", shown, (f"(user: {ref})", "dim"))
    return line(
        f"{name} =", shown, (f"({place})" if known is given else f"({place}: {ref})", "dim")
    )
