"""Which trials there are: read off the code, and off runs that nobody killed."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash.outside import KINDS
from tests.crash.trial import AFTER_THE_EFFECT, Kill, Place, forked, killed, record, try_once

ROOT = Path(__file__).parent.parent.parent
_ROOMS = ("journal", "engine", "graph", "nodes", "plangate")
_BETWEEN_NODES = "checkpoint.writing"
"""Tried each time: every one of them is another moment, between two other nodes."""

_POINT = re.compile(r'\breached\("([a-z_.]+)"\)')


def named_points(rooms: Sequence[str] = _ROOMS) -> list[str]:
    """Read the names of all points off the code."""
    files = [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]
    return sorted(name for file in files for name in _POINT.findall(file.read_text()))


@dataclass(frozen=True)
class Trial:
    kind: str
    database: str
    kill: Kill

    def run(self, place: Place, out: Path) -> int:
        """Do it in a process of its own; return that process's exit code."""
        return forked(lambda: try_once(place, self.database, self.kill, out))


@dataclass(frozen=True)
class Ground:
    """Where trials have their files and journals."""

    folder: Path
    postgres: str | None = None

    @property
    def databases(self) -> tuple[str, ...]:
        return ("sqlite", "postgres") if self.postgres else ("sqlite",)

    def place(self, name: str, kind: str, database: str = "sqlite") -> Place:
        folder = self.folder / name
        folder.mkdir()
        sqlite = f"sqlite:///{folder}/journal.db"
        url = self.postgres if database == "postgres" and self.postgres else sqlite
        return Place(folder, url, f"run_{name}", kind)

    def hits(self, kind: str, *, recovering: bool) -> Counter[str]:
        """Count how often a run of this kind comes to each point."""
        place = self.place(f"{kind}_{'again' if recovering else 'first'}", kind)
        if recovering and not killed(place, Kill(*AFTER_THE_EFFECT)):
            return Counter()  # it has no effect
        out = place.folder / "hits.json"
        assert forked(lambda: record(place, out)) == 0, f"a run of kind {kind} does not end well"
        return Counter(json.loads(out.read_text()))


def all_trials(ground: Ground) -> Iterator[Trial]:
    """Every point that a run of a kind comes to: the first time, half way, and the last time."""
    for kind in KINDS:
        for recovering in (False, True):
            for point, count in sorted(ground.hits(kind, recovering=recovering).items()):
                often = {1, (count + 1) // 2, count}
                for nth in range(1, count + 1) if point == _BETWEEN_NODES else sorted(often):
                    for database in ground.databases:
                        yield Trial(kind, database, Kill(point, nth, recovering))


def few_trials(ground: Ground, trials: Sequence[Trial]) -> list[Trial]:
    """One trial of each point, all between two nodes; the journal's own in each database.

    The databases take turns, and of the kinds that come to a point the one least tried so far.
    """
    twice = named_points(["journal"])
    by_point: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for each in trials:
        by_point[each.kill.point, each.database].append(each)
    turns: Counter[str] = Counter()
    chosen = []
    for number, point in enumerate(sorted({point for point, _ in by_point})):
        turn = number % len(ground.databases)
        for database in ground.databases if point in twice else (ground.databases[turn],):
            fit = by_point[point, database]
            kind = min({each.kind for each in fit}, key=lambda kind: (turns[kind], kind))
            turns[kind] += 1
            of_kind = [each for each in fit if each.kind == kind]
            chosen.append(of_kind[len(of_kind) // 2])
    between = [
        each
        for each in by_point[_BETWEEN_NODES, "sqlite"]
        if each.kind == "once" and not each.kill.recovering
    ]
    return [*chosen, *between]
