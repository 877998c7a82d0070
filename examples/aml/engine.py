"""The rule engine: five typologies as pure functions over the transactions of one account.

No memo and no name goes in. What looks like a typology is first held against innocent explanations:
those who pay or are paid every month, what the customer declared, own accounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plangate.examples.aml.books import Move, Subject, Window
from plangate.examples.aml.finding import Finding, Typology, euros, found, strength
from plangate.examples.aml.sower import CASH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from plangate.examples.aml.bank import Bank
    from plangate.examples.aml.rules import Fan, Rules

_HOUR = 3_600
_DAYS_A_MONTH = 30


class Sight(NamedTuple):
    """All that the engine looks at."""

    subject: Subject
    moves: Sequence[Move]
    """Of the window and of the history before it, oldest first."""

    onward: Callable[[str, Window], Sequence[Move]]
    """What another account of the bank paid on."""

    rules: Rules

    @property
    def now(self) -> tuple[Move, ...]:
        """The transactions of the window."""
        return tuple(move for move in self.moves if self.subject.window.holds(move))


def structuring(sight: Sight) -> Finding:
    """Several cash deposits within days, each just below the threshold."""
    rule, subject = sight.rules.structuring, sight.subject
    name = f"AML-S1/v{sight.rules.version}"
    cash = [move for move in sight.now if _is_in(move, subject) and move.source == CASH]
    near = [move for move in cash if rule.near_cents <= move.amount_cents < rule.threshold_cents]
    group = max(_groups(near, rule.span_hours), key=len, default=())
    total = sum(move.amount_cents for move in group)
    if len(group) < rule.least_count or total < rule.least_total_cents:
        return found("structuring", "absent", name, f"{len(near)} cash deposits near the threshold")
    if not subject.is_known:
        says = "the customer's record has expired, so its declared cash turnover proves nothing"
        return found("structuring", "undecided", name, says, group)
    paid_in = sum(move.amount_cents for move in cash)
    declared = subject.monthly_cash_cents * _days(subject.window) // _DAYS_A_MONTH
    if paid_in <= declared:
        says = f"cash of {euros(paid_in)} is within the declared turnover of {euros(declared)}"
        return found("structuring", "explained", name, says, group)
    says = (
        f"{len(group)} cash deposits below {euros(rule.threshold_cents)} within"
        f" {rule.span_hours // 24} days; declared cash turnover {euros(declared)}"
    )
    sure = strength(len(group), rule.least_count)
    return found("structuring", "matched", name, says, group, parties=1, strength_pct=sure)


def fan_in(sight: Sight) -> Finding:
    """Many new payers within days."""
    subject = sight.subject
    credits_ = [move for move in sight.moves if _is_in(move, subject) and move.source != CASH]
    others = [move for move in credits_ if move.source not in subject.own]
    fan = _Fan("fan_in", "AML-F1", sight.rules.fan_in, subject.regular_payers, "payers")
    return fan.judge(sight, others, lambda move: move.source)


def fan_out(sight: Sight) -> Finding:
    """Many new payees within days."""
    subject = sight.subject
    debits = [move for move in sight.moves if _is_sent(move, subject)]
    others = [move for move in debits if move.target not in subject.own and move.target != CASH]
    fan = _Fan("fan_out", "AML-F2", sight.rules.fan_out, subject.regular_payees, "payees")
    return fan.judge(sight, others, lambda move: move.target)


class _Fan(NamedTuple):
    """Many parties at once, in one direction."""

    typology: Typology
    rule: str
    limits: Fan
    declared: int
    word: str

    def judge(self, sight: Sight, moves: Sequence[Move], other: Callable[[Move], str]) -> Finding:
        """Decide on the transactions of one direction."""
        name = f"{self.rule}/v{sight.rules.version}"
        first = _first_seen(moves, other)
        now = [move for move in moves if sight.subject.window.holds(move)]
        groups = [each for each in _groups(now, self.limits.span_hours) if self._wide(each, other)]
        if not groups:
            return found(self.typology, "absent", name, f"never many {self.word} within days")
        new = [
            fresh
            for group in groups
            if self._wide(fresh := [m for m in group if first[other(m)] >= group[0].at], other)
        ]
        group = max(new or groups, key=lambda each: len({other(move) for move in each}))
        many = len({other(move) for move in group})
        if not new:
            says = f"{many} {self.word}, and most of them were {self.word} in earlier months"
            return found(self.typology, "explained", name, says, group, parties=many)
        if not sight.subject.is_known and self.declared:
            says = f"the customer's record has expired, so its number of {self.word} proves nothing"
            return found(self.typology, "undecided", name, says, group, parties=many)
        if many <= self.declared:
            says = f"{many} {self.word}; the customer declared {self.declared}"
            return found(self.typology, "explained", name, says, group, parties=many)
        says = f"{many} new {self.word} within {self.limits.span_hours} hours"
        sure = strength(many, self.limits.least_parties)
        return found(self.typology, "matched", name, says, group, parties=many, strength_pct=sure)

    def _wide(self, moves: Sequence[Move], other: Callable[[Move], str]) -> bool:
        is_many = len({other(move) for move in moves}) >= self.limits.least_parties
        total = sum(move.amount_cents for move in moves)
        return is_many and total >= self.limits.least_total_cents


def rapid_movement(sight: Sight) -> Finding:
    """A large sum that leaves again almost completely, to new payees."""
    rule, subject = sight.rules.rapid_movement, sight.subject
    name = f"AML-R1/v{sight.rules.version}"
    credits_ = [move for move in sight.now if _is_in(move, subject)]
    first = _first_seen(
        [move for move in sight.moves if move.source == subject.account_id], lambda m: m.target
    )
    kept: tuple[Move, ...] = ()
    for came in _gathered(credits_, subject, rule.gather_hours):
        total = sum(move.amount_cents for move in came)
        if total < rule.least_in_cents:
            continue
        span = Window(came[0].at + 1, came[-1].at + rule.onward_hours * _HOUR)
        went = _left(sight, span, first)
        away = tuple(move for move in went if move.target not in subject.own)
        share = sum(move.amount_cents for move in away) * 100 // total
        if share >= rule.least_share_pct:
            says = (
                f"{share} % of {euros(total)} left within {rule.onward_hours} hours, to new payees"
            )
            group, sure = (*came, *away), strength(share, rule.least_share_pct)
            many = len({move.target for move in away})
            return found(
                "rapid_movement", "matched", name, says, group, parties=many, strength_pct=sure
            )
        if sum(move.amount_cents for move in went) * 100 >= total * rule.least_share_pct:
            kept = (*came, *went)
    if kept:
        says = "what came in went to the customer's own account"
        return found("rapid_movement", "explained", name, says, kept)
    return found("rapid_movement", "absent", name, "no large credit that left within days")


def round_trip(sight: Sight) -> Finding:
    """Money that comes back by way of other accounts."""
    rule, subject = sight.rules.round_trip, sight.subject
    name = f"AML-T1/v{sight.rules.version}"
    for start in sight.now:
        if start.source != subject.account_id or start.amount_cents < rule.least_cents:
            continue
        for way in _ways(sight, (start,)):
            between = len({move.target for move in way[:-1]})
            back = way[-1].amount_cents * 100 // start.amount_cents
            says = f"{back} % of {euros(start.amount_cents)} came back by way of {between} accounts"
            sure = strength(between + 1, rule.least_between)
            return found(
                "round_trip", "matched", name, says, way, parties=between, strength_pct=sure
            )
    returned = _returned(sight)
    if returned:
        says = "it came back from the very party that was paid: a refund"
        return found("round_trip", "explained", name, says, returned)
    return found("round_trip", "absent", name, "nothing came back by way of others")


ENGINE: Mapping[Typology, Callable[[Sight], Finding]] = {
    "structuring": structuring,
    "fan_in": fan_in,
    "fan_out": fan_out,
    "rapid_movement": rapid_movement,
    "round_trip": round_trip,
}
"""Each typology and what decides on it."""


def sight_of(bank: Bank, subject: Subject, rules: Rules) -> Sight:
    """Read what the engine looks at."""
    return Sight(subject, bank.moves(subject), bank.onward, rules)


def _is_in(move: Move, subject: Subject) -> bool:
    return move.target == subject.account_id


def _is_sent(move: Move, subject: Subject) -> bool:
    """True for a debit that moves money on; a purchase by card uses it up."""
    return move.source == subject.account_id and move.channel != "card"


def _days(window: Window) -> int:
    return (window.end - window.start) // (24 * _HOUR)


def _groups(moves: Sequence[Move], hours: int) -> Iterator[Sequence[Move]]:
    """Yield, for each transaction, those that follow within a span, itself first."""
    end = 0
    for start, move in enumerate(moves):
        end = max(end, start)
        while end < len(moves) and moves[end].at <= move.at + hours * _HOUR:
            end += 1
        yield moves[start:end]


def _gathered(moves: Sequence[Move], subject: Subject, hours: int) -> Iterator[Sequence[Move]]:
    """Yield credits that came together; money from own accounts is no credit."""
    others = [move for move in moves if move.source not in subject.own]
    yield from sorted(_groups(others, hours), key=len, reverse=True)


def _first_seen(moves: Sequence[Move], other: Callable[[Move], str]) -> Mapping[str, int]:
    seen: dict[str, int] = {}
    for move in moves:
        seen.setdefault(other(move), move.at)
    return seen


def _left(sight: Sight, span: Window, first: Mapping[str, int]) -> tuple[Move, ...]:
    """Return what was sent to payees who were never paid before, or to own accounts."""
    mine = sight.subject
    return tuple(
        move
        for move in sight.now
        if _is_sent(move, mine)
        and span.holds(move)
        and (move.target in mine.own or first[move.target] >= span.start)
    )


def _ways(sight: Sight, way: tuple[Move, ...]) -> Iterator[tuple[Move, ...]]:
    """Yield each way from the account through others and back to it, depth first."""
    rule, home, last = sight.rules.round_trip, sight.subject, way[-1]
    if len(way) >= rule.most_hops or last.target in home.own:
        return
    span = Window(last.at + 1, min(last.at + rule.hop_hours * _HOUR, home.window.end))
    for move in sight.onward(last.target, span):
        share = move.amount_cents * 100 // last.amount_cents
        if not rule.least_share_pct <= share <= 100:  # noqa: PLR2004 - percent
            continue
        if move.target == home.account_id:
            if len(way) >= rule.least_between:
                yield (*way, move)
        elif move.target not in {each.source for each in way}:
            yield from _ways(sight, (*way, move))


def _returned(sight: Sight) -> tuple[Move, ...]:
    """Return a payment and its way back from the same party."""
    rule, home = sight.rules.round_trip, sight.subject
    for out in sight.now:
        if out.source != home.account_id or out.amount_cents < rule.least_cents:
            continue
        span = Window(out.at + 1, out.at + rule.hop_hours * _HOUR)
        for back in sight.now:
            is_back = back.source == out.target and back.target == home.account_id
            if is_back and span.holds(back) and back.amount_cents <= out.amount_cents:
                return (out, back)
    return ()
