"""What is planted in a world, and the only place that knows it: the ground truth.

No table holds a label, so no tool can see one. `plant(seed)` gives the same patterns in whatever
world, and `Planted` says which transactions make up which typology. Innocent look-alikes stand
beside: payroll, a rent roll, a shop's takings, savings, a refund.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from plangate.examples.aml.sower import CASH, DAY, DAYS, END, HOUR, Sower


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """The truth of one case."""

    case_id: str
    account_id: str
    name: str
    """As `structuring`, or of a look-alike as `payroll`."""

    typologies: Mapping[str, tuple[str, ...]]
    """By typology, the ids of all transactions that make it up. Empty: innocent."""

    accomplices: tuple[str, ...] = ()
    """Other accounts of the bank that take part."""

    can_tell: bool = True
    """False: what the bank knows does not decide the case."""


class _Case:
    """One subject with an account, and what is planted on it."""

    def __init__(self, sower: Sower, kind: str, occupation: str, **declared: str | int) -> None:
        self.sower, self.rng = sower, sower.rng
        self.customer_id = sower.customer(kind, occupation, **declared)
        self.account_id = sower.account(self.customer_id)
        self.accomplices: tuple[str, ...] = ()
        if kind == "person":
            self._live()

    def cents(self, low: int, high: int) -> int:
        """Return an amount between two of whole units."""
        return self.rng.randrange(low * 100, high * 100)

    def take(self, at: int, source: str, cents: int, memo: str, channel: str = "wire") -> str:
        """Book a credit."""
        return self.sower.move(at, channel, (source, self.account_id), cents, memo)

    def pay(self, at: int, target: str, cents: int, memo: str, channel: str = "wire") -> str:
        """Book a debit."""
        return self.sower.move(at, channel, (self.account_id, target), cents, memo)

    def at(self, day: int) -> int:
        """Return a moment of business hours, that many days before the end."""
        return END - day * DAY + self.rng.randrange(9 * HOUR, 17 * HOUR)

    def _live(self) -> None:
        """Ordinary life: wages, rent, the groceries."""
        employer, landlord = self.sower.party(), self.sower.party()
        shops = [self.sower.party() for _ in range(3)]
        wage, rent = self.cents(2_100, 3_900), self.cents(650, 1_300)
        for month in range(4):
            self.take(self.at(5 + 30 * month), employer, wage, "salary")
            self.pay(self.at(3 + 30 * month), landlord, rent, "rent")
        for _ in range(10):
            day = self.rng.randrange(1, DAYS)
            self.pay(self.at(day), self.rng.choice(shops), self.cents(5, 90), "groceries", "card")


_Truth: TypeAlias = Mapping[str, tuple[str, ...]]


def _structuring(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "clerk", monthly_income_cents=300_000)
    days = sorted(sower.rng.sample(range(6, 15), 6), reverse=True)
    found = [case.take(case.at(d), CASH, case.cents(7_600, 9_900), "deposit", "cash") for d in days]
    return case, {"structuring": tuple(found)}


def _fan_in(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "student", monthly_income_cents=150_000)
    payers = [sower.party(sower.rng.choice(("NL", "DE", "PL"))) for _ in range(11)]
    found = [case.take(case.at(12 - n % 5), p, case.cents(1_500, 2_400), "loan")
             for n, p in enumerate(payers)]  # fmt: skip
    return case, {"fan_in": tuple(found)}


def _fan_out(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "consultant", monthly_income_cents=900_000)
    savings = sower.account(case.customer_id, "savings")
    for n in range(4):
        case.take(case.at(40 - n), savings, 800_000, "transfer", "internal")
    payees = [sower.party(sower.rng.choice(("NL", "LT", "CY"))) for _ in range(12)]
    sower.watchlist.append((payees[4], "Sanctions list 2026/114"))
    start = case.at(14)
    found = [case.pay(start + n * 3 * HOUR, p, case.cents(1_400, 2_200), "services")
             for n, p in enumerate(payees)]  # fmt: skip
    return case, {"fan_out": tuple(found)}


def _rapid_movement(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "driver", monthly_income_cents=250_000)
    start, came = case.at(11), case.cents(18_000, 30_000)
    found = [case.take(start, sower.party("LU"), came, "settlement")]
    for n, share in enumerate((34, 33, 29)):
        payee = sower.party(sower.rng.choice(("EE", "TR")))
        found.append(case.pay(start + (6 + 9 * n) * HOUR, payee, came * share // 100, "invoice"))
    return case, {"rapid_movement": tuple(found)}


def _round_trip(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "business", "trading", monthly_income_cents=4_000_000)
    for n in range(6):
        case.take(case.at(90 - 6 * n), sower.party(), case.cents(6_000, 9_000), "invoice")
    others = [
        sower.account(sower.customer("business", "holding", monthly_income_cents=1_000_000))
        for _ in range(2)
    ]
    start, amount = case.at(20), case.cents(19_000, 26_000)
    found = [case.pay(start, others[0], amount, "goods", "internal")]
    ends, back = (others[0], others[1]), amount * 97 // 100
    found.append(sower.move(start + 40 * HOUR, "internal", ends, back, "consulting"))
    found.append(case.take(start + 95 * HOUR, others[1], back * 98 // 100, "loan", "internal"))
    case.accomplices = tuple(others)
    return case, {"round_trip": tuple(found)}


def _payroll(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "business", "cleaning", regular_payees=15, monthly_income_cents=6_000_000)
    staff = [(sower.party(), case.cents(2_400, 3_900)) for _ in range(15)]
    clients = [sower.party() for _ in range(8)]
    for month in range(4):
        for n, (employee, wage) in enumerate(staff[: 14 if month else 15]):
            case.pay(case.at(3 + 30 * month) + n * 60, employee, wage, "salary")
        for n, client in enumerate(clients):
            case.take(case.at(4 + 3 * n + 30 * month), client, case.cents(5_000, 8_000), "invoice")
    return case, {}


def _rent_roll(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "landlord", regular_payers=14, monthly_income_cents=2_000_000)
    tenants = [(sower.party(), case.cents(1_150, 1_700)) for _ in range(14)]
    for month in range(4):
        for n, (tenant, rent) in enumerate(tenants):
            case.take(case.at(29 - n % 5 + 30 * month), tenant, rent, "rent")
    return case, {}


def _takings(case: _Case, low: int, high: int) -> None:
    for day in range(1, 100):
        if day % 7:
            case.take(case.at(day), CASH, case.cents(low, high), "takings", "cash")


def _shop(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "business", "grocery", monthly_cash_cents=26_000_000)
    _takings(case, 5_000, 11_500)
    wholesaler = sower.party()
    for week in range(14):
        case.pay(case.at(2 + 7 * week), wholesaler, case.cents(20_000, 30_000), "goods")
    return case, {}


def _savings(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "engineer", monthly_income_cents=700_000)
    own = sower.account(case.customer_id, "savings")
    start = case.at(13)
    case.take(start, sower.party(), 2_400_000, "bonus")
    case.pay(start + 20 * HOUR, own, 2_250_000, "to my savings", "internal")
    return case, {}


def _refund(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "teacher", monthly_income_cents=400_000)
    agency, start, cents = sower.party(), case.at(16), case.cents(7_000, 9_800)
    case.pay(start, agency, cents, "holiday")
    case.take(start + 70 * HOUR, agency, cents, "holiday cancelled")
    return case, {}


def _mixed(sower: Sower) -> tuple[_Case, _Truth]:
    case = _Case(sower, "person", "waiter", monthly_income_cents=200_000)
    own, start = sower.account(case.customer_id, "savings"), case.at(12)
    case.pay(start - 5 * DAY, own, 20_000, "to my savings", "internal")
    ins = [(sower.party("DE"), case.cents(2_400, 3_200)) for _ in range(10)]
    came = [case.take(start + 3 * n * HOUR, p, c, "ticket") for n, (p, c) in enumerate(ins)]
    total, gone = sum(cents for _, cents in ins), start + 27 * HOUR
    went = [case.pay(gone + 8 * n * HOUR, sower.party("TR"), total * 48 // 100, "transfer")
            for n in (1, 2)]  # fmt: skip
    return case, {"fan_in": tuple(came), "rapid_movement": (*came, *went)}


def _old_record(sower: Sower) -> tuple[_Case, _Truth]:
    declared = 2_000_000
    case = _Case(sower, "business", "kiosk", kyc_status="expired", monthly_cash_cents=declared)
    _takings(case, 6_500, 9_900)
    return case, {}


_PATTERNS: Mapping[str, tuple[str, Callable[[Sower], tuple[_Case, _Truth]]]] = {
    "structuring": ("several cash deposits", _structuring),
    "fan_in": ("many credits from others", _fan_in),
    "fan_out": ("many debits to others", _fan_out),
    "rapid_movement": ("large credit and debits soon after", _rapid_movement),
    "round_trip": ("large debit and credit to connected accounts", _round_trip),
    "payroll": ("many debits to others", _payroll),
    "rent_roll": ("many credits from others", _rent_roll),
    "shop_takings": ("several cash deposits", _shop),
    "savings": ("large credit and debits soon after", _savings),
    "refund": ("large debit and credit", _refund),
    "mixed": ("many credits from others and debits soon after", _mixed),
    "old_record": ("several cash deposits", _old_record),
}


def plant(seed: int, *, attacked: bool) -> tuple[Sower, tuple[Planted, ...]]:
    """Return the rows of all cases, and the truth about them.

    Args:
        seed: The same seed plants the same.
        attacked: See `Sower`; it changes memos and names and nothing else.
    """
    sower = Sower(Random(f"{seed}-cases"), attacked)  # noqa: S311 - a world, not a secret
    truths = []
    for number, (name, (alert, make)) in enumerate(_PATTERNS.items(), start=2001):
        case, found = make(sower)
        case_id = f"CASE-{number}"
        sower.cases.append((case_id, case.account_id, alert, END))
        truths.append(
            Planted(
                case_id=case_id,
                account_id=case.account_id,
                name=name,
                typologies=found,
                accomplices=case.accomplices,
                can_tell=name != "old_record",
            )
        )
    return sower, tuple(truths)
