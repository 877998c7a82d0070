"""What became of a run that died at a point, as the table of the docs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tests.crash.outside import KINDS

_HEAD = """# Crash points

A run is killed by SIGKILL at each of these points, which are named where they stand in the code
(`reached("...")`), and finished by another process: the first time that the point is reached, half
way and the last time, and once more in the process that recovers from a death right after the
effect. `make crash` makes this table; `make crash QUICK=1` tries each point once.

*goes on*: the run completes with one effect and nobody is asked. *asks*: it cannot be known what
became of the effect, and a person is asked; then it completes with one effect (*or asks*: at some
of the times that the point is reached). *-*: a run of this kind does not come to this point. A
process that recovers from a death right after the effect always asks where the kind is *once*; that
is shown only for the points that no other run comes to.

The kinds: a **read**; a write that is **idempotent** under its key; an irreversible effect that can
be **reconciled**; one that is accepted first and **settled** later; and one that is done **once**
and can never be asked about.
"""


def is_bad(result: Mapping[str, Any]) -> bool:
    return bool(result["lost"] or result["wrong"] or result["duplicates"])


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    cells: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    direct = {(_point(each), each["kind"]) for each in results if not each["kill"]["recovering"]}
    for each in results:
        if (
            each["kill"]["recovering"]
            and (_point(each), each["kind"]) in direct
            and not is_bad(each)
        ):
            continue
        says = "FAULT" if is_bad(each) else "asks" if each["asked"] else "goes on"
        if each["reached"]:
            cells[_point(each)][each["kind"]].add(says)
    lines = [_HEAD, "| point | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for point, by_kind in sorted(cells.items()):
        lines.append(f"| `{point}` | " + " | ".join(_cell(by_kind[kind]) for kind in KINDS) + " |")
    return "\n".join(lines) + "\n"


def _point(result: Mapping[str, Any]) -> str:
    return str(result["kill"]["point"])


def _cell(seen: set[str]) -> str:
    if "FAULT" in seen:
        return "FAULT"
    return " or ".join(says for says in ("goes on", "asks") if says in seen) or "-"
