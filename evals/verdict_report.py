"""What a verifier said of the labelled set, as data and as lines; and two versions side by side."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.table import Table

from plangate.cli.terminal import line, text
from plangate.cli.textfile import read_text
from plangate.evals.verdicts import SAYS, regressions
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from plangate.evals.verdicts import Judged


def report_of(found: Judged) -> dict[str, Any]:
    """Return a whole set as JSON data; it can be compared with a later one."""
    kinds = Counter(each.case.kind for each in found.said)
    right = Counter(each.case.kind for each in found.said if each.says == each.case.gold)
    prices = [each.usd for each in found.said]
    known = [each for each in prices if each is not None]
    return {
        "verifier": found.verifier,
        "cases": len(found.said),
        "false_pass_rate": found.false_pass_rate,
        "false_passes": [each.case.id for each in found.false_passes],
        "matrix": found.matrix(),
        "by_kind": {kind: {"right": right[kind], "of": of} for kind, of in kinds.items()},
        "to_people": sum(each.says == "unknown" for each in found.said),
        "to_repair": sum(each.says == "fail" for each in found.said),
        "usd": str(sum(known)) if len(known) == len(prices) else None,
        "tokens": sum(each.tokens for each in found.said),
        "seconds": round(sum(each.seconds for each in found.said), 3),
        "said": {each.case.id: each.says for each in found.said},
        "why": {each.case.id: each.why for each in found.said if each.why},
    }


def compared(old: Mapping[str, Any], new: Judged, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a new version differs from an old one.

    Args:
        old: From `report_of`, of the old version.
        new: The new version.
        report: Its own report.
    """
    said: Mapping[str, str] = old["said"]
    before, after = Counter(said.values()), Counter(report["said"].values())
    return {
        "verifier": old["verifier"],
        "matrix": old["matrix"],
        "false_pass_regressions": list(regressions(said, new)),
        "changed": {
            name: [said.get(name), says]
            for name, says in report["said"].items()
            if said.get(name) != says
        },
        "shift": {says: after[says] - before[says] for says in SAYS},
        "to_people": report["to_people"] - old["to_people"],
        "to_repair": report["to_repair"] - old["to_repair"],
        "seconds": round(report["seconds"] - old["seconds"], 3),
        "usd": [old["usd"], report["usd"]],
    }


def read_report(file: str) -> dict[str, Any]:
    """Read a report that was written before.

    Raises:
        ConfigError: It is none.
    """
    hint = "Write one with plangate eval verifier --out FILE."
    said = read_text(file, "report", hint=hint)
    try:
        found = json.loads(said)
        known = {"verifier", "matrix", "said", "to_people", "to_repair", "seconds", "usd"}
        if not known <= found.keys():
            raise ConfigError(f"report {file!r} lacks {', '.join(known - found.keys())}", hint=hint)
    except (ValueError, AttributeError) as exc:
        raise ConfigError(f"report {file!r} is none", hint=hint) from exc
    return dict(found)


def report_lines(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield a report for people; what is worst comes first."""
    rate, wrong = report["false_pass_rate"], report["false_passes"]
    style = "bold red" if wrong else "green"
    share = "none to tell" if rate is None else f"{rate:.1%}"
    yield line(("false passes", "bold"), (share, style), ", ".join(wrong))
    yield line(("verifier", "bold"), report["verifier"], f"{report['cases']} claims")
    yield _matrix(report["matrix"])
    for kind, each in report["by_kind"].items():
        yield line("  ", (kind, "dim"), f"{each['right']} of {each['of']} right")
    usd = "an unknown amount of" if report["usd"] is None else report["usd"]
    yield line(
        f"{report['to_people']} go to a person, {report['to_repair']} to repair;",
        f"{usd} USD, {report['tokens']} tokens, {report['seconds']:.1f} s",
    )
    if (against := report.get("against")) is not None:
        yield from _against(against)


def _matrix(matrix: Mapping[str, Mapping[str, int]]) -> Table:
    table = Table("is", *(f"said {says}" for says in SAYS), box=SIMPLE)
    for gold in SAYS:
        table.add_row(text(gold, "bold"), *(text(str(matrix[gold][says])) for says in SAYS))
    return table


def _against(against: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield line(("against", "bold"), against["verifier"])
    yield _matrix(against["matrix"])
    worse = against["false_pass_regressions"]
    yield line(
        ("new false passes", "bold"), (", ".join(worse) or "none", "bold red" if worse else "green")
    )
    shift = ", ".join(f"{says} {count:+d}" for says, count in against["shift"].items())
    yield line(f"shift: {shift}; to people {against['to_people']:+d},",
               f"to repair {against['to_repair']:+d}, {against['seconds']:+.1f} s")  # fmt: skip
