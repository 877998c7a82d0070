"""The moving place in a record: which time it is there, whose turn it is, and where a life was cut.

A replay may be faster than the run was, and its parallel steps could end in another order. So each
recorded answer waits for those that came before it, and the clock shows the recorded time of the
newest event that both have. Where an owner was killed, the replay's owner ends at the same place.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Final, NoReturn

from plangate.replay.substance import SILENT, facts_of, key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plangate.journal.events import Event
    from plangate.journal.questions import StopAsked
    from plangate.replay.record import Item, Record
    from plangate.replay.substance import Key

PATIENCE_S: Final = 0.5
"""How long the first answer waits for another that never comes; then order is given up."""

_LOOK_S: Final = 0.001


class Cut(BaseException):
    """The recorded owner was gone at this point, so the replay's owner goes as well.

    No `Exception`: like a kill, it must not be taken for an answer of a tool.
    """


class _Line:
    """Items in the order of the record, of which some have been said."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._said: set[Item] = set()
        self._first = 0

    def put(self, item: Item) -> None:
        self._items.append(item)

    def say(self, item: Item) -> None:
        self._said.add(item)

    @property
    def first(self) -> Item | None:
        """The first that was not said; None: all were."""
        while self._first < len(self._items) and self._items[self._first] in self._said:
            self._first += 1
        return self._items[self._first] if self._first < len(self._items) else None


def _answers(item: Item) -> bool:
    """True for an event with which a call ended."""
    event = item.entry.event
    if event.type == "outside_asked":
        return event.how != "rights"
    return event.type == "attempt_ended" and facts_of(event) is not None


class Tape:
    """Where a replay is in its record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.life = 0
        self.place = 0
        """Number of the newest recorded event that the replay has come to."""

        self.unrecorded: list[str] = []
        """What the replay asked for and nobody ever answered."""

        self.stop: Callable[[StopAsked], None] = lambda _: None
        """Tells the present owner that the run was cancelled, where the record says so."""

        self._cancels: dict[int, StopAsked] = {}
        self._starts = Counter[int]()

        self._now = record.items[0].entry.at
        self._skipped_s = 0.0
        self._in_order = True
        self._by_key: dict[Key, deque[Item]] = defaultdict(deque)
        self._left = [_Line() for _ in range(record.lives)]
        self._answers = [_Line() for _ in range(record.lives)]
        for item in record.items:
            self._by_key[item.key].append(item)
            if not item.repeat:
                self._left[item.life].put(item)
                self._starts[item.life] += item.key[0] == "attempt_started"
                if item.entry.event.type == "stop_asked":
                    self._cancels[item.life] = item.entry.event
            if _answers(item):
                self._answers[item.life].put(item)

    def written_at(self) -> datetime:
        """Return the recorded time of the newest event that the replay has come to."""
        return self._now

    def now(self) -> datetime:
        """Return when the next recorded event was decided; what is judged now, was judged then."""
        following = self._left[self.life].first
        return self._now if following is None else max(self._now, following.entry.at)

    def monotonic(self) -> float:
        """Return the same in seconds."""
        return self.now().timestamp() + self._skipped_s

    def skip(self, seconds: float) -> None:
        """Let time pass for whoever waits for something that the record says never came."""
        self._skipped_s += seconds

    def resume(self) -> bool:
        """Go on with the next owner of the record who said anything new; False if there is none."""
        while self.life + 1 < self.record.lives:
            self.life += 1
            if self.next_type:
                return True
        return False

    def emitting(self, event: Event) -> None:
        """Take an event of the replay: move to its place, or end the owner where its life was cut.

        Raises:
            Cut: Everything that this owner left on the record has been said.
        """
        if event.type in SILENT - {"outside_asked"}:
            return
        waiting = self._by_key[key_of(event)]
        item = waiting[0] if waiting else None
        if self._is_over and (item is None or item.life > self.life):
            raise Cut
        if item is None:
            return
        waiting.popleft()
        self._now = max(self._now, item.entry.at)
        self.place = max(self.place, item.entry.seq)
        self._starts[item.life] -= item.key[0] == "attempt_started" and not item.repeat
        self._answers[item.life].say(item)
        self._left[item.life].say(item)
        if self.next_type == "stop_asked":
            self.stop(self._cancels[self.life])

    async def turn(self, item: Item) -> None:
        """Wait until each answer that came before this one in its life was given.

        Raises:
            Cut: The answer is one that a later owner got, and the present one was gone by then.
        """
        if item.life > self.life and await self.ends():
            raise Cut
        until = time.monotonic() + PATIENCE_S
        while self._in_order and self._is_before(item):
            if time.monotonic() > until:
                self._in_order = False
            await asyncio.sleep(_LOOK_S)

    def has_come_to(self, item: Item) -> bool:
        """True if all that the record has before an item was said."""
        first = self._left[self.life].first
        return item.life <= self.life and (first is None or first.entry.seq > item.entry.seq)

    async def ends(self) -> bool:
        """Wait while the present owner may still have something to say; True if its life was cut.

        False where it was not, or where the replay does not come to what the record says.
        """
        until = time.monotonic() + PATIENCE_S
        while self._was_cut and not self._is_over and self._in_order:
            if time.monotonic() > until:
                self._in_order = False
            await asyncio.sleep(_LOOK_S)
        return self._is_over

    async def end(self) -> NoReturn:
        """Never answer: the recorded owner was gone before an answer came.

        Raises:
            Cut: As soon as all else that this owner left on the record was said.
        """
        if (asked := self._cancels.get(self.life)) is not None:
            until = time.monotonic() + PATIENCE_S
            while self._starts[self.life]:  # what began before the cancel begins before it
                await asyncio.sleep(_LOOK_S)
                if time.monotonic() > until:
                    break
            self.stop(asked)
            await asyncio.sleep(PATIENCE_S)  # in which the cancel comes
        await self.ends()
        raise Cut

    @property
    def left(self) -> bool:
        """True if the record goes on after what the replay has said."""
        return any(line.first is not None for line in self._left)

    @property
    def next_type(self) -> str:
        """Type of what the present owner left next on the record; empty if it left no more."""
        following = self._left[self.life].first
        return "" if following is None else following.entry.event.type

    @property
    def _was_cut(self) -> bool:
        """True if the record of the present owner may lack what it did last."""
        return self.life + 1 < self.record.lives or self.record.is_open

    @property
    def _is_over(self) -> bool:
        return self._was_cut and not self.next_type

    def _is_before(self, item: Item) -> bool:
        first = self._answers[item.life].first
        return first is not None and first.entry.seq < item.entry.seq
