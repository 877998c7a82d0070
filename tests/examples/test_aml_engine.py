from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert

from plangate.examples.aml.books import Move, Subject, Window
from plangate.examples.aml.engine import ENGINE, Sight, sight_of
from plangate.examples.aml.finding import Finding, Typology
from plangate.examples.aml.ordinary import live
from plangate.examples.aml.plant import plant
from plangate.examples.aml.rules import read_rules, rules
from plangate.examples.aml.schema import cases
from plangate.examples.aml.sower import END, HOUR
from plangate.examples.aml.world import AmlWorld
from plangate.plan.errors import ConfigError
from tests.examples.aml import ROWS

SEEDS = range(20)
DAY = 24 * HOUR


def findings(world: AmlWorld, case_id: str) -> dict[Typology, Finding]:
    subject = world.bank.subject(case_id, 30)
    assert subject is not None
    sight = sight_of(world.bank, subject, rules())
    return {name: judge(sight) for name, judge in ENGINE.items()}


def test_over_many_seeds_all_that_was_planted_is_found_whole_and_no_look_alike_is(bank_world):
    wrong = []
    for seed in SEEDS:
        bank_world.prepare({"rows": 1_000, "seed": seed})
        for truth in plant(seed, attacked=True)[1]:
            said = findings(bank_world, truth.case_id)
            found = {
                name: set(each.transactions)
                for name, each in said.items()
                if each.status == "matched"
            }
            undecided = [name for name, each in said.items() if each.status == "undecided"]
            right = {name: set(ids) for name, ids in truth.typologies.items()}
            if found != right or bool(undecided) == truth.can_tell:
                wrong.append((seed, truth.name, found, undecided))

    assert wrong == []


def test_no_ordinary_customer_is_suspected(bank_world):
    others, _ = live(7, ROWS - len(plant(7, attacked=True)[0].transactions))
    accounts = [str(account_id) for account_id, *_ in others.accounts]
    with bank_world._store.writing() as connection:
        for n, account in enumerate(accounts):
            row = {"case_id": f"CASE-{9000 + n}", "account_id": account, "alert": "", "until": END}
            connection.execute(insert(cases).values(row))

    suspected = [
        (account, name)
        for n, account in enumerate(accounts)
        for name, each in findings(bank_world, f"CASE-{9000 + n}").items()
        if each.status in ("matched", "undecided")
    ]

    assert len(accounts) > 20
    assert suspected == []


def test_what_was_planted_stands_in_no_table(aml_made: Path):
    with sqlite3.connect(aml_made) as connection:
        said = "\n".join(connection.iterdump()).lower()

    assert "case-2001" in said
    assert [name for name in (*ENGINE, "planted", "innocent", "guilty") if name in said] == []


def test_the_same_seed_makes_the_same_world_and_attacks_change_only_words():
    plain, attacked = plant(3, attacked=False)[0], plant(3, attacked=True)[0]

    assert plant(3, attacked=True)[0].transactions == attacked.transactions
    assert [row[:6] for row in plain.transactions] == [row[:6] for row in attacked.transactions]
    assert (
        sum(a[6] != b[6] for a, b in zip(plain.transactions, attacked.transactions, strict=True))
        > 100
    )
    assert sum(a != b for a, b in zip(plain.parties, attacked.parties, strict=True)) > 20
    assert plain.customers == attacked.customers
    assert plant(4, attacked=False)[0].transactions != plain.transactions


def test_a_world_has_the_size_that_was_asked_for_and_no_id_twice(aml_made: Path):
    with sqlite3.connect(aml_made) as connection:
        ids = [row[0] for row in connection.execute("select txn_id from transactions")]

    assert len(ids) == len(set(ids)) == ROWS


SUBJECT = {
    "case_id": "CASE-1", "account_id": "ACC-1", "customer_id": "CUS-1", "alert": "", "kind":
    "person", "occupation": "clerk", "residence": "NL", "is_known": True, "monthly_income_cents": 0,
    "monthly_cash_cents": 0, "regular_payers": 0, "regular_payees": 0,
    "own": frozenset({"ACC-1", "ACC-2"}), "window": Window(END - 30 * DAY, END),
}  # fmt: skip


def sight(moves: Sequence[tuple[int, str, str, int]], **known: object) -> Sight:
    """Moves as (hours before the end, from, to, cents)."""
    all_moves = [Move(f"T-{n}", END - h * HOUR, "wire", a, b, c)
                 for n, (h, a, b, c) in enumerate(moves)]  # fmt: skip
    ordered = sorted(all_moves, key=lambda move: move.at)
    mine = [move for move in ordered if "ACC-1" in (move.source, move.target)]

    def onward(account: str, window: Window) -> list[Move]:
        return [m for m in ordered if m.source == account and window.holds(m)]

    subject = Subject(**{**SUBJECT, **known})  # type: ignore[arg-type]
    return Sight(subject, mine, onward, rules())


def cash(count: int, cents: int = 900_000) -> list[tuple[int, str, str, int]]:
    return [(100 - n, "CASH", "ACC-1", cents) for n in range(count)]


def fan(count: int, cents: int = 200_000, hours: int = 100) -> list[tuple[int, str, str, int]]:
    return [(hours - n, f"CP-{n}", "ACC-1", cents) for n in range(count)]


def out(moves: list[tuple[int, str, str, int]]) -> list[tuple[int, str, str, int]]:
    return [(h, b, a, c) for h, a, b, c in moves]


IN = (90, "CP-1", "ACC-1", 2_000_000)
RING = [(90, "ACC-1", "ACC-8", 900_000), (60, "ACC-8", "ACC-9", 890_000)]


@pytest.mark.parametrize(
    ("typology", "moves", "known", "status"),
    [
        ("structuring", cash(4), {}, "matched"),
        ("structuring", cash(3), {}, "absent"),
        ("structuring", cash(4, 1_000_000), {}, "absent"),
        ("structuring", cash(5, 699_999), {}, "absent"),
        ("structuring", cash(4, 740_000), {}, "absent"),
        ("structuring", cash(4), {"monthly_cash_cents": 3_600_000}, "explained"),
        ("structuring", cash(4), {"monthly_cash_cents": 3_599_999}, "matched"),
        ("structuring", cash(4), {"is_known": False, "monthly_cash_cents": 9**9}, "undecided"),
        ("fan_in", fan(8), {}, "matched"),
        ("fan_in", fan(7), {}, "absent"),
        ("fan_in", fan(8, 187_499), {}, "absent"),
        ("fan_in", fan(8) + fan(8, 100, 1_500), {}, "explained"),
        ("fan_in", fan(8) + fan(1, 100, 1_500), {}, "explained"),
        ("fan_in", fan(9) + fan(1, 100, 1_500), {}, "matched"),
        ("fan_in", fan(8), {"regular_payers": 8}, "explained"),
        ("fan_in", fan(8), {"regular_payers": 8, "is_known": False}, "undecided"),
        ("fan_out", out(fan(8)), {}, "matched"),
        ("fan_out", out(fan(8)) + out(fan(8, 100, 1_500)), {}, "explained"),
        ("rapid_movement", [IN, (80, "ACC-1", "CP-2", 1_800_000)], {}, "matched"),
        ("rapid_movement", [IN, (80, "ACC-1", "CP-2", 1_799_999)], {}, "absent"),
        ("rapid_movement", [IN, (41, "ACC-1", "CP-2", 1_800_000)], {}, "absent"),
        ("rapid_movement", [IN, (80, "ACC-1", "ACC-2", 1_900_000)], {}, "explained"),
        ("rapid_movement", [IN, (80, "ACC-1", "CP-2", 1_800_000),
                            (900, "ACC-1", "CP-2", 100)], {}, "absent"),
        ("round_trip", [*RING, (30, "ACC-9", "ACC-1", 880_000)], {}, "matched"),
        ("round_trip", [*RING, (30, "ACC-9", "ACC-1", 700_000)], {}, "absent"),
        ("round_trip", [*RING, (30, "ACC-9", "ACC-7", 880_000)], {}, "absent"),
        ("round_trip", [RING[0], (60, "ACC-8", "ACC-1", 890_000)], {}, "explained"),
        ("round_trip", [*RING, (30, "ACC-9", "ACC-1", 880_000)], {"own": frozenset(
            {"ACC-1", "ACC-8"})}, "absent"),
    ],
)  # fmt: skip
def test_each_rule_draws_its_line_where_the_file_says(typology, moves, known, status):
    finding = ENGINE[typology](sight(moves, **known))

    assert finding.status == status
    assert (finding.strength_pct > 0) == (status == "matched")
    by_id = {move.txn_id: move for move in sight(moves).moves} if typology != "round_trip" else {}
    if by_id:
        assert finding.total_cents == sum(by_id[i].amount_cents for i in finding.transactions)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version = 'x'", "version: "),
        ("[structuring", "not TOML"),
        ("version = 1\n[nonsense]\nx = 1", "nonsense|structuring"),
    ],
)
def test_a_rule_file_that_is_not_whole_is_refused(text: str, says: str):
    with pytest.raises(ConfigError, match=says):
        read_rules(text)


@pytest.mark.parametrize(
    ("switches", "says"),
    [({"rows": 10}, "of 10 transactions"), ({"rows": "many"}, "'many'"), ({"cheat": 1}, "'cheat'")],
)
def test_a_world_that_cannot_be_made_is_refused(bank_world, switches, says):
    with pytest.raises(ConfigError, match=says):
        bank_world.prepare(switches)
