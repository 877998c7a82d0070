"""Ordinary life around the cases: households, employers, shops, and their payments."""

from __future__ import annotations

from random import Random

from plangate.examples.aml.sower import CASH, DAY, DAYS, END, Row, Sower, txn_id_of

_ROWS_A_HOUSEHOLD = 50
_A_SHOP_IN = 25
_FIRST = 5_001
"""Of the numbers of rows that are not planted."""

_GOODS = ("groceries", "coffee", "fuel", "books", "train ticket", "pharmacy", "lunch", "clothes")


def live(seed: int, count: int) -> tuple[Sower, list[Row]]:
    """Return the rows of other customers, with exactly `count` transactions.

    Args:
        seed: The same seed gives the same lives.
        count: How many transactions.
    """
    rng = Random(f"{seed}-life")  # noqa: S311 - a world, not a secret
    sower = Sower(rng, first=_FIRST)
    shops = [sower.party() for _ in range(60)]
    accounts = []
    for number in range(max(4, count // _ROWS_A_HOUSEHOLD)):
        is_shop = number % _A_SHOP_IN == 1
        account = _shop(sower) if is_shop else _household(sower)
        accounts.append(account)
    fixed = sower.transactions[:count]
    return sower, fixed + _purchases(rng, accounts, shops, len(fixed), count - len(fixed))


def _household(sower: Sower) -> str:
    rng = sower.rng
    wage = rng.randrange(180_000, 520_000)
    account = sower.account(sower.customer("person", "employee", monthly_income_cents=wage))
    employer, landlord = sower.party(), sower.party()
    for month in range(4):
        start = END - (6 + 30 * month) * DAY + rng.randrange(DAY)
        sower.move(start, "wire", (employer, account), wage, "salary")
        sower.move(start + DAY, "wire", (account, landlord), wage * 3 // 10, "rent")
    return account


def _shop(sower: Sower) -> str:
    rng = sower.rng
    known = {"monthly_cash_cents": 9_000_000, "regular_payers": 6}
    account = sower.account(sower.customer("business", "retail", **known))
    clients = [sower.party() for _ in range(6)]
    for week in range(17):
        start = END - (7 * week + 1) * DAY - rng.randrange(DAY)
        sower.move(start, "cash", (CASH, account), rng.randrange(150_000, 900_000), "takings")
        client = clients[week % len(clients)]
        sower.move(start, "wire", (client, account), rng.randrange(20_000, 200_000), "invoice")
    return account


def _purchases(
    rng: Random, accounts: list[str], shops: list[str], begun: int, count: int
) -> list[Row]:
    chance, span = rng.random, DAYS * DAY
    here, there, kinds = len(accounts), len(shops), len(_GOODS)
    first = _FIRST + begun
    return [
        (
            txn_id_of(first + n),
            END - int(chance() * span),
            "card",
            accounts[int(chance() * here)],
            shops[int(chance() * there)],
            200 + int(chance() * 14_800),
            _GOODS[int(chance() * kinds)],
        )
        for n in range(count)
    ]
