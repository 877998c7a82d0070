"""The parts of what a person is asked: plain data about steps and plans, and the same in Markdown.

Everything that comes from a model, a tool or a user passes the lens once, on its way in; the
Markdown is written from what came out, so that the two never differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from plangate.graph.arguments import elements, resolved
from plangate.graph.fallout import Loss
from plangate.graph.lens import Lens, block, in_markdown
from plangate.plan.catalog import Catalog
from plangate.plan.contract import contract_of
from plangate.plan.forecast import Forecast, PlanEstimate, Range
from plangate.plan.preview import Preview, StepPreview
from plangate.plan.value.frozen import Json, digest
from plangate.plan.value.plan import Condition, Plan
from plangate.plan.value.step import Check, Step

Shown: TypeAlias = dict[str, Any]
"""JSON data that has passed the lens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known beside the plan when it is shown.

    Args:
        catalog: The contracts.
        values: By head of a reference, `inputs` and the outputs of steps that have ended.
        previewed: What each step would do and take.
    """

    catalog: Catalog
    values: Mapping[str, Json]
    previewed: Mapping[str, StepPreview]


def step_card(step: Step, known: Known, loss: Loss, lens: Lens) -> Shown:
    """Return a step as it will run, and what else would not if it were denied."""
    spec = contract_of(step, known.catalog)
    shown = known.previewed.get(step.id)
    priced = None if shown is None else shown.estimate
    before = lens.escaped
    given = resolved(step, known.values)
    args = lens.value(given.args)
    loop = None if step.for_each is None else _loop_card(step, known, lens)
    return {
        "id": step.id,
        "objective": lens.text(step.objective),
        "capability": step.capability,
        "tool_version": lens.text(step.tool_version or (spec.version if spec else "")),
        "tool_summary": lens.text(spec.summary) if spec and step.tool else None,
        "effect": spec.effect.value if spec else None,
        "external": spec.external if spec else None,
        "undo": spec.undo.tool if spec and spec.undo else None,
        "args": args,
        "args_sha256": digest(given.args),
        "args_known": given.known if loop is None else loop["elements"] is not None,
        "for_each": loop,
        "autonomy": _envelope_card(step, known.catalog, lens),
        "sources": {
            lens.text(path): lens.text(given.sources[path]) for path in lens.first(given.sources)
        },
        "denying": _loss_card(loss, lens),
        "args_escaped": lens.escaped > before,
        "after": lens.first(sorted(step.needs)),
        "when": None if step.when is None else lens.text(step.when),
        "preconditions": [lens.text(rule) for rule in lens.first(step.preconditions)],
        "checks": [check_card(check, lens) for check in lens.first(step.success)],
        "routes": [
            {"on": lens.text(route.on), "action": route.action, "step": route.step}
            for route in lens.first(step.routes)
        ],
        "question": None
        if step.question is None
        else lens.value(step.question.model_dump(mode="json")),
        "output": None if step.output is None else lens.value(step.output),
        "estimate": None if priced is None else {**_amounts(priced), "source": priced.source},
        "evidence": None if shown is None else evidence_card(shown, lens),
    }


def _envelope_card(step: Step, catalog: Catalog, lens: Lens) -> Shown | None:
    """Return what a model may do in a step: each tool, with its effect, and the bounds."""
    if step.autonomy is None:
        return None
    known = catalog.tools
    bounds: Any = lens.value(step.autonomy.model_dump(mode="json", exclude={"tools"}))
    tools = [
        {
            "tool": lens.text(name),
            "effect": known[name].effect.value if name in known else None,
            "external": known[name].external if name in known else None,
            "summary": lens.text(known[name].summary) if name in known else None,
        }
        for name in step.autonomy.tools
    ]
    return {"tools": tools, **bounds}


def _loop_card(step: Step, known: Known, lens: Lens) -> Shown:
    """Return what a step runs over: its bound, and each element where the list is known."""
    each = elements(step, known.values)
    exact = each is not None and all(given.known for given in each)
    return {
        "over": lens.text(step.for_each or ""),
        "max_items": step.max_items,
        "count": None if each is None else len(each),
        "elements": [
            {"args": lens.value(given.args), "args_sha256": digest(given.args)}
            for given in lens.first(each)
        ]
        if exact and each is not None
        else None,
    }


def check_card(check: Check, lens: Lens) -> Shown:
    """Return how something is verified."""
    return {
        "id": check.id,
        "level": check.level,
        "claim": lens.text(check.claim),
        "rule": None if check.rule is None else lens.text(check.rule),
        "conflict": None if check.conflict is None else lens.text(check.conflict),
        "tool": check.tool,
    }


def plan_card(plan: Plan, lens: Lens, assumed: Mapping[str, str]) -> Shown:
    """Return what a plan promises beside its steps.

    Args:
        plan: The plan.
        lens: How text is shown.
        assumed: By assumption what the run found out about it.
    """
    return {
        "goal": lens.text(plan.goal),
        "criteria": [check_card(check, lens) for check in lens.first(plan.success_criteria)],
        "abort_conditions": _conditions(plan.abort_conditions, lens),
        "replan_conditions": _conditions(plan.replan_conditions, lens),
        "assumptions": [
            {
                "id": each.id,
                "statement": lens.text(each.statement),
                "status": assumed.get(each.id, each.status),
                "source": each.source,
            }
            for each in lens.first(plan.assumptions)
        ],
        "constraints": [
            {"id": each.id, "text": lens.text(each.text), "source": each.source}
            for each in lens.first(plan.constraints)
        ],
        "budget": plan.budget.model_dump(mode="json", exclude_none=True),
    }


def estimate_card(estimate: PlanEstimate) -> Shown:
    """Return what a plan will probably take; USD as text, null where a price is unknown."""
    as_of = estimate.price_as_of
    return {
        **_amounts(estimate),
        "tokens": _range(estimate.tokens),
        "model_calls": _range(estimate.model_calls),
        "overhead": [{"role": each.role, **_amounts(each)} for each in estimate.overhead],
        "spent_usd": _usd(estimate.spent_usd),
        "spent_tokens": estimate.spent_tokens,
        "price_table": estimate.price_table,
        "price_as_of": None if as_of is None else as_of.isoformat(),
        "price_is_old": estimate.price_is_old,
        "token_source": estimate.token_source,
    }


def preview_card(preview: Preview, lens: Lens) -> Shown:
    """Return what a preview says beside the steps: the three questions, and what to do."""
    return {
        "approvable": preview.approvable,
        "fits": [
            {"asks": each.asks, "says": each.says, "why": [lens.text(why) for why in each.why]}
            for each in preview.fits
        ],
        "cuts": [lens.text(each) for each in preview.cuts],
        "alternatives": [
            {
                "step": each.step,
                "says": lens.text(each.says),
                "calls": _range(each.calls),
                "usd": {"p50": _usd(each.usd_p50), "p95": _usd(each.usd_p95)},
                "seconds": _range(each.seconds),
            }
            for each in lens.first(preview.alternatives)
        ],
        "notes": [lens.text(each) for each in preview.notes],
    }


def evidence_card(step: StepPreview, lens: Lens) -> Shown:
    """Return which evidence a step is expected to show."""
    return {
        "refs": [lens.text(ref) for ref in lens.first(step.evidence.refs)],
        "source": step.evidence.source,
        "unknown": lens.text(step.evidence.unknown),
    }


def describe_plan(card: Mapping[str, Any]) -> str:
    """Write an approval card as Markdown."""
    usd = card["estimate"]["usd"]
    price = f"{usd['p50'] or 'unknown'} to {usd['p95'] or 'unknown'} USD"
    seconds = card["estimate"]["seconds"]
    lines = [
        f"**Approve plan version {card['plan_version']}?** {in_markdown(card['goal'])}",
        f"Tier *{card['tier']}*: {in_markdown('; '.join(card['reasons']) or 'no reason given')}",
        f"Estimate: {price}, {seconds['p50']:.0f} to {seconds['p95']:.0f} s.",
        *_listed("Within the budget", (_fit(each) for each in card["preview"]["fits"])),
        *_listed("Over budget; what to do", card["preview"]["cuts"]),
        f"Expires: {card['expires_at'] or 'never'}. Hash: `{card['plan_hash']}`.",
        *(_describe_step(step) for step in card["steps"]),
        *_listed("Other steps", (f"{each['id']} {each['capability']}" for each in card["other"])),
        *_listed("Reached when", (each["claim"] for each in card["criteria"])),
        *_listed("Stops when", (each["text"] for each in card["abort_conditions"])),
        *_listed("Planned again when", (each["text"] for each in card["replan_conditions"])),
        *_listed(
            "Assumed", (f"{each['statement']} ({each['status']})" for each in card["assumptions"])
        ),
        *_listed("Must hold", (each["text"] for each in card["constraints"])),
    ]
    lines[1:1] = [
        *_listed("Take note", card["warnings"]),
        *_listed("Changed since it was approved", (_move(each) for each in card["moved"])),
    ]
    if card["quorum"] > 1:
        lines.append(f"It takes {card['quorum']} different people to approve this.")
    lines += [_read_on_request(each) for each in card["info"]]
    if card["diff"] is not None:
        lines.append("Changes against the version before:\n\n" + block(card["diff"]))
    return "\n\n".join([*lines, *_missing(card)])


def describe_question(card: Mapping[str, Any]) -> str:
    """Write a question card as Markdown."""
    lines = [f"**{in_markdown(card['text'])}**", *_listed("Options", card["options"])]
    if card["details"]:
        lines.append(block(card["details"]))
    lines += [_read_on_request(each) for each in card["info"]]
    lines.append(f"For {card['audience']}. Expires: {card['expires_at'] or 'never'}.")
    return "\n\n".join([*lines, *_missing(card)])


def _describe_step(step: Mapping[str, Any]) -> str:
    traits = [step["effect"] or "asks a person"]
    traits += ["leaves this organisation"] if step["external"] else []
    traits += [f"undone by {step['undo']}"] if step["undo"] else []
    title = f"**{step['id']} {in_markdown(step['capability'])}** ({', '.join(traits)})"
    lines = [
        f"{title}: {in_markdown(step['objective'])}",
        block(step["args"] if step["question"] is None else step["question"]),
        *_describe_loop(step["for_each"]),
        *_describe_envelope(step["autonomy"]),
        *_listed("Only if", [step["when"]] if step["when"] else []),
        *_listed("Checked", (f"{each['level']} {each['claim']}" for each in step["checks"])),
        *_listed("If it fails", (_route(route) for route in step["routes"])),
        *_denying(step["id"], step["denying"]),
    ]
    return "\n\n".join(lines)


def _describe_loop(loop: Mapping[str, Any] | None) -> Iterator[str]:
    if loop is None:
        return
    bound = f"For each element of {in_markdown(loop['over'])}, at most {loop['max_items']}"
    if loop["elements"] is None:
        yield f"{bound}; which ones is not known yet, and any of them would run."
        return
    yield f"{bound}; there are {loop['count']}, and no others would run:"
    yield block(loop["elements"])


def _describe_envelope(envelope: Mapping[str, Any] | None) -> Iterator[str]:
    if envelope is None:
        return
    money = "" if envelope["max_usd"] is None else f", {envelope['max_usd']} USD"
    yield (
        f"A model chooses what to call: at most {envelope['max_steps']} turns, "
        f"{envelope['max_seconds']} s{money}; nothing above effect {envelope['ceiling']}."
    )
    tools = (
        f"{each['tool']} ({each['effect'] or 'unknown'}"
        + (", leaves this organisation)" if each["external"] else ")")
        for each in envelope["tools"]
    )
    yield from _listed("It may call", tools)
    yield from _listed("It may read data labelled", envelope["labels"])


def _denying(step: str, loss: Mapping[str, Any]) -> Iterator[str]:
    parts = []
    if loss["drops"]:
        more = f" and {loss['more']} more" if loss["more"] else ""
        parts.append(f"also drops {', '.join(loss['drops'])}{more}")
    if loss["cannot_pass"]:
        parts.append(f"makes it impossible to pass: {', '.join(loss['cannot_pass'])}")
    if loss["may_not_pass"]:
        parts.append(f"may fail: {', '.join(loss['may_not_pass'])}")
    if parts:
        yield f"Denying {step} {in_markdown('; '.join(parts))}."


def _fit(fit: Mapping[str, Any]) -> str:
    return f"{fit['asks']}: {fit['says']} ({'; '.join(fit['why'])})"


def _read_on_request(info: Mapping[str, Any]) -> str:
    return f"Read on request, {in_markdown(str(info['tool']))}:\n\n{block(info)}"


def _move(moved: Mapping[str, Any]) -> str:
    now = "cannot be read now" if moved["now"] is None else f"is {moved['now']} now"
    return f"{moved['object']} was {moved['was']}, {now}"


def _loss_card(loss: Loss, lens: Lens) -> Shown:
    return {
        "drops": list(loss.steps),
        "more": loss.more,
        "cannot_pass": lens.first(loss.cannot_pass),
        "may_not_pass": lens.first(loss.may_not_pass),
    }


def _route(route: Mapping[str, Any]) -> str:
    return f"{route['on']}: {route['action']} {route['step'] or ''}".strip()


def _listed(title: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"- {in_markdown(item)}" for item in items]
    if lines:
        yield f"{title}:\n\n" + "\n".join(lines)


def _missing(card: Mapping[str, Any]) -> Iterator[str]:
    if card["overflow"] is not None:
        yield f"**Not all is shown.** {in_markdown(card['overflow']['says'])}"


def _conditions(given: tuple[Condition, ...], lens: Lens) -> list[Shown]:
    return [
        {"id": each.id, "text": lens.text(each.text), "rule": lens.text(each.rule)}
        for each in lens.first(given)
    ]


def _amounts(given: Forecast | PlanEstimate) -> Shown:
    return {
        "seconds": _range(given.seconds),
        "tokens_in": _range(given.tokens_in),
        "tokens_out": _range(given.tokens_out),
        "usd": {"p50": _usd(given.usd_p50), "p95": _usd(given.usd_p95)},
        "calls": _range(given.calls),
    }


def _range(given: Range) -> Shown:
    return {"p50": given.p50, "p95": given.p95}


def _usd(given: object) -> str | None:
    return None if given is None else str(given)
