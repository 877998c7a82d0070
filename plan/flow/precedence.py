"""Whether a new version still waits for what the old one waited for, before and after an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.schedule import ancestor_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.value.plan import Plan


class Precedence:
    """The order of two versions, compared at the steps that act.

    Ancestors are compared as bits over the steps that both versions have, so the cost is that of
    the ancestor sets and not of all pairs of steps.

    Args:
        old: The version before.
        new: The version after.
        kept: Ids of the steps that both have: the old id and the new id of each.
        effects: New ids of those among them that act.
    """

    def __init__(
        self, old: Plan, new: Plan, kept: Mapping[str, str], effects: frozenset[str]
    ) -> None:
        self._old, self._new, self._kept, self._effects = old, new, kept, effects
        self._names = tuple(kept.values())
        self._gone = tuple(step.id for step in old.steps if step.id not in kept)
        self._added = frozenset(new.by_id) - set(self._names)
        self._before_old = ancestor_bits(old, {step: at for at, step in enumerate(kept)})
        self._before_new = ancestor_bits(new, {step: at for at, step in enumerate(self._names)})
        self._mask = sum(1 << at for at, now in enumerate(self._names) if now in effects)

    def losses(self) -> Iterator[str]:
        """Yield each wait that is gone, in words."""
        if not self._effects:
            return
        for was, now in self._kept.items():
            lost = self._before_old[was] & ~self._before_new[now]
            for other in self._named(lost if now in self._effects else lost & self._mask):
                yield f"{now} no longer waits for {other}"
        yield from self._gone_before()
        yield from self._gone_after()

    def _gone_before(self) -> Iterator[str]:
        lost = [step for step in self._gone if not self._is_replaced(step)]
        before = ancestor_bits(self._old, {step: at for at, step in enumerate(lost)})
        for was, now in self._kept.items():
            if now in self._effects:
                for step in _picked(before[was], lost):
                    name = self._old.by_id[step].capability
                    yield f"{now} no longer waits for {name} ({step}); nothing took its place"

    def _gone_after(self) -> Iterator[str]:
        added_after = 0
        for step in self._added:
            added_after |= self._before_new[step]
        for step in self._gone:
            for effect in self._named(self._before_old[step] & self._mask & ~added_after):
                name = self._old.by_id[step].capability
                yield f"{name} ({step}), which came after {effect}, is gone"

    def _is_replaced(self, step: str) -> bool:
        if self._old.by_id[step].question is not None:
            return False  # nothing replaces a person's word
        readers = [now for was, now in self._kept.items() if step in self._old.by_id[was].needs]
        return bool(readers) and all(self._new.by_id[each].needs & self._added for each in readers)

    def _named(self, bits: int) -> Iterator[str]:
        return _picked(bits, self._names)


def _picked(bits: int, names: tuple[str, ...] | list[str]) -> Iterator[str]:
    while bits:
        lowest = bits & -bits
        yield names[lowest.bit_length() - 1]
        bits ^= lowest
