"""Estimates, previews and the cost of runs, as tables for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table

from plangate.cli.render_issues import issue_lines
from plangate.cli.render_plan import value
from plangate.cli.terminal import line, text
from plangate.nodes.cost import estimated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from decimal import Decimal

    from rich.console import RenderableType
    from rich.text import Text

    from plangate.plan.forecast import Forecast, PlanEstimate
    from plangate.plan.preview import Evidence, Preview

_STYLE = {"yes": "green", "no": "bold red", "unknown": "yellow"}
_SHOWN = ("seconds", "tokens_in", "tokens_out", "usd", "calls")


def estimate_json(preview: Preview) -> dict[str, Any]:
    """Return the estimate of a plan as JSON data: totals, each step, each part of the overhead."""
    priced = preview.estimate
    return {
        "kind": "estimate",
        "content_hash": preview.content_hash,
        "total": estimated(priced),
        "spent": {"usd": _usd(priced.spent_usd), "tokens": priced.spent_tokens},
        "steps": [{"step": each.step, **_row(each)} for each in priced.steps],
        "overhead": [{"role": each.role, **_row(each)} for each in priced.overhead],
        "fits": [each.model_dump(mode="json") for each in preview.fits],
        "approvable": preview.approvable,
        "cuts": list(preview.cuts),
        "alternatives": [each.model_dump(mode="json") for each in preview.alternatives],
        "price_table": priced.price_table,
        "price_as_of": priced.price_as_of.isoformat() if priced.price_as_of else None,
        "price_is_old": priced.price_is_old,
        "token_source": priced.token_source,
        "unknown": list(priced.unknown),
        "notes": list(preview.notes),
    }


def estimate_lines(preview: Preview, *, explain: bool) -> Iterator[RenderableType]:
    """Yield the estimate: the total, or every part of it with where its figures are from."""
    priced = preview.estimate
    table = _table("estimate, p50 to p95", "part", *_SHOWN, *(("source",) if explain else ()))
    if explain:
        for name, each in _parts(priced):
            source = "; ".join(filter(None, (each.source, each.token_source)))
            table.add_row(text(name), *_cells(each), text(source))
    table.add_row(text("in all", "bold"), *_cells(priced))
    yield table
    if priced.spent_tokens or priced.spent_usd is None or priced.spent_usd:
        usd = _usd(priced.spent_usd) or "unknown"
        yield line(("spent so far", "bold"), f"{usd} USD, {priced.spent_tokens} tokens")
    yield from _about(preview)
    if explain:
        yield from (line(("not known", "yellow"), each) for each in priced.unknown)


def preview_lines(preview: Preview) -> Iterator[RenderableType]:
    """Yield what a plan would do, step by step, then what it would take."""
    yield line((preview.goal, "bold"), (preview.content_hash[:12], "dim"))
    yield line(("tier", "bold"), preview.tier, "; ".join(preview.reasons))
    for step in preview.steps:
        mark = ("[needs your approval]", "bold yellow") if step.id in preview.confirm else ""
        effect = f"[{step.effect}]" if step.effect else ""
        yield line((step.id, "bold"), (step.capability, "cyan"), effect, mark, step.objective)
        for name, given in step.args.items():
            yield line("   ", f"{name} =", value(given))
        for how, keys in (("reads", step.reads), ("writes", step.writes)):
            if keys:
                yield line("   ", (how, "dim"), ", ".join(keys))
        yield line("   ", ("takes", "dim"), *_words(step.estimate))
        for ref in step.evidence.refs:
            yield line("   ", (f"will show ({step.evidence.source})", "dim"), ref)
        if not step.evidence.refs:
            yield line("   ", *_no_evidence(step.evidence))
        for check in step.checks:
            yield line("   ", ("checked", "dim"), check)
    yield from estimate_lines(preview, explain=False)
    yield from issue_lines(preview.issues)


def cost_lines(cost: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield estimate against actual of a run, per step and in all.

    Args:
        cost: From `plangate.nodes.cost`.
    """
    table = _table("estimate (p50 to p95) against actual", "part", *_SHOWN, "source")
    for name, row in _cost_parts(cost):
        table.add_row(text(name), *_against(row["estimate"], row["actual"]), text(row["source"]))
    whole = {"estimate": cost["estimate"], "actual": cost["actual"]}
    table.add_row(text("in all", "bold"), *_against(whole["estimate"], whole["actual"]), text(""))
    yield table
    yield line(("prices", "bold"), cost["price_table"] or "none")
    yield line(("tokens", "bold"), f"counted by {cost['token_source'] or 'nobody: none expected'}")


def _about(preview: Preview) -> Iterator[Text]:
    for fit in preview.fits:
        yield line((fit.asks, "bold"), (fit.says, _STYLE[fit.says]), "; ".join(fit.why))
    if preview.cuts:
        yield line(("cannot be approved", "bold red"), "it is over its budget")
    yield from (line("  ", each) for each in preview.cuts)
    for other in preview.alternatives:
        usd = _pair({"p50": _usd(other.usd_p50), "p95": _usd(other.usd_p95)})
        yield line(
            (f"{other.step} {other.says}", "dim"),
            f"{_pair(other.calls.model_dump())} calls, {usd} USD",
        )
    yield from (line((each, "dim")) for each in preview.notes)


def _parts(priced: PlanEstimate) -> Iterator[tuple[str, Forecast]]:
    yield from ((each.step, each) for each in priced.steps)
    yield from ((each.role, each) for each in priced.overhead)


def _cost_parts(cost: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((row["step"], row) for row in cost["steps"])
    yield from ((row["role"], row) for row in cost["roles"])


def _row(each: Forecast) -> dict[str, Any]:
    return {
        **estimated(each),
        "source": each.source,
        "token_source": each.token_source,
        "unknown": list(each.unknown),
    }


def _cells(each: Forecast | PlanEstimate) -> list[Text]:
    said: Mapping[str, Any] = estimated(each)
    return [text(_pair(said[metric])) for metric in _SHOWN]


def _against(said: Mapping[str, Any] | None, actual: Mapping[str, Any] | None) -> list[Text]:
    cells = []
    for metric in _SHOWN:
        was = "" if actual is None else _figure(actual[metric])
        expected = "none" if said is None else _pair(said[metric])
        cells.append(text(f"{expected} | {was}" if was else expected))
    return cells


def _no_evidence(evidence: Evidence) -> tuple[tuple[str, str], str]:
    if evidence.nothing:
        return ("no evidence is expected", "dim"), evidence.nothing
    return ("evidence not known", "dim"), evidence.unknown


def _words(each: Forecast) -> Iterable[str]:
    said: Mapping[str, Any] = estimated(each)
    yield f"{_pair(said['seconds'])} s, {_pair(said['usd'])} USD, {_pair(said['tokens'])} tokens"
    yield f"({each.source})"


def _pair(given: Mapping[str, Any]) -> str:
    low, high = _figure(given["p50"]), _figure(given["p95"])
    return low if low == high else f"{low} to {high}"


def _figure(given: object) -> str:
    if given is None:
        return "unknown"
    if isinstance(given, float):
        return f"{given:.0f}" if given.is_integer() else f"{given:.2f}"
    return str(given)


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}"


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE)
    for name in names:
        table.add_column(name, justify="left" if name in ("part", "source") else "right")
    return table
