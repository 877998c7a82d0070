"""Whether a new version still waits for what the old one waited for, before and after an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plangate.plan.schedule import ancestors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plangate.plan.schedule import AncestorSet
    from plangate.plan.value.plan import Plan
    from plangate.plan.value.step import Step


class Precedence:
    """The order of two versions, compared at the steps that act.

    Args:
        old: The version before.
        new: The version after.
        pairs: Ids of the acting steps that both have: the old id and the new id of each.
    """

    def __init__(self, old: Plan, new: Plan, pairs: Mapping[str, str]) -> None:
        self._old, self._new, self._pairs = old, new, pairs
        self._before_old = ancestors(old)
        self._before_new = ancestors(new)
        same = {step.id: step.id for step in new.steps if _is_in(step, old)}
        self._now = {**same, **pairs}
        kept = set(self._now.values())
        self._added = frozenset(step.id for step in new.steps if step.id not in kept)
        self._consumers: dict[str, list[str]] = {}
        for step in old.steps:
            for need in step.needs:
                self._consumers.setdefault(need, []).append(step.id)

    def losses(self) -> Iterator[str]:
        """Yield each wait that is gone, in words."""
        for was, now in self._pairs.items():
            old, new = self._before_old[was], self._before_new[now]
            if len(old) and not self._waits_for_all(old, new):
                yield from self._moved_earlier(was, now)
        yield from self._moved_before_effects()

    def _waits_for_all(self, old: AncestorSet, new: AncestorSet) -> bool:
        now = self._now
        return all((at := now.get(step)) is not None and at in new for step in old)

    def _moved_earlier(self, was: str, now: str) -> Iterator[str]:
        new = self._before_new[now]
        for step in self._before_old[was]:
            at = self._now.get(step)
            if at is not None and at not in new:
                kind = "may run beside" if now not in self._before_new[at] else "now runs before"
                yield f"{now} {kind} {at}, which it waited for"
            elif at is None and not self._is_replaced(step):
                name = self._old.by_id[step].capability
                yield f"{now} no longer waits for {name} ({step}); nothing stands in its place"

    def _moved_before_effects(self) -> Iterator[str]:
        for step in self._old.steps:
            at = self._now.get(step.id)
            if step.id in self._pairs:
                continue  # between two effects the loss is named above
            for was, now in self._pairs.items():
                if was not in self._before_old[step.id]:
                    continue
                if at is not None and now not in self._before_new[at]:
                    yield f"{at} no longer waits for {now}"
                elif at is None and not self._has_added_after(now):
                    yield f"{step.capability} ({step.id}), which came after {now}, is gone"

    def _has_added_after(self, effect: str) -> bool:
        return any(effect in self._before_new[step] for step in self._added)

    def _is_replaced(self, step: str) -> bool:
        if self._old.by_id[step].question is not None:
            return False  # nothing replaces a person's word
        left = [self._now[each] for each in self._consumers.get(step, ()) if each in self._now]
        return bool(left) and all(self._new.by_id[each].needs & self._added for each in left)


def _is_in(step: Step, plan: Plan) -> bool:
    found = plan.by_id.get(step.id)
    return found is not None and found.capability == step.capability
