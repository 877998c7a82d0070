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

*goes on*: the run completes with one effect and nobody is asked. *asks*: in some of the trials it
cannot be known what became of the effect, and a person is asked; then it completes with one effect.
*-*: a run of this kind does not come to this point.

The kinds: a **read**; a write that is **idempotent** under its key; an irreversible effect that can
be **reconciled**; one that is accepted first and **settled** later; and one that is done **once**
and can never be asked about.
"""


def is_bad(result: Mapping[str, Any]) -> bool:
    return bool(result["lost"] or result["wrong"] or result["duplicates"])


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    cells: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in results:
        says = "FAULT" if is_bad(each) else "asks" if each["asked"] else "goes on"
        if each["reached"]:
            cells[each["kill"]["point"]][each["kind"]].add(says)
    lines = [_HEAD, "| point | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for point, by_kind in sorted(cells.items()):
        lines.append(f"| `{point}` | " + " | ".join(_cell(by_kind[kind]) for kind in KINDS) + " |")
    return "\n".join(lines) + "\n"


def _cell(seen: set[str]) -> str:
    for says in ("FAULT", "asks", "goes on"):
        if says in seen:
            return says
    return "-"
