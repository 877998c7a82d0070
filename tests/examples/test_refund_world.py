from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select

from plangate.examples.refund import provider as payment
from plangate.examples.refund.provider import Operation, Refused
from plangate.examples.refund.schema import orders, policies, provider_operations
from plangate.examples.refund.world import RefundWorld, connect
from plangate.plan.errors import ConfigError

NAMED = "ORD-A1B2C3D4"


def settled(world: RefundWorld, operation_id: str) -> Operation:
    for _ in range(200):
        operation = world.provider.operation(operation_id)
        assert operation is not None
        if operation.state != "accepted":
            return operation
        time.sleep(0.01)
    raise AssertionError(operation_id)


def test_a_new_world_is_seeded_and_an_old_one_is_left_as_it_is(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/deep/er/world.db"
    first = connect(url)
    first.prepare({"delay_s": 0})
    first.provider.refund("k", NAMED, 1, 8900)
    first.close()

    again = connect(url)

    found = again.shop.order(NAMED)
    assert found is not None
    assert (found.order.status, found.order.version) == ("refunded", 9)
    with again._store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(orders)) == 12
        assert sorted(set(connection.scalars(select(policies.c.version)))) == [17, 18]
    again.close()


def test_two_processes_may_open_a_new_world_at_the_same_moment(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/world.db"
    code = (
        "import sys; from plangate.examples.refund.world import connect; "
        "world = connect(sys.argv[1]); print(len(world.shop.rules('refund'))); world.close()"
    )

    both = [
        subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    assert [each.communicate()[0].strip() for each in both] == ["6", "6"]
    world = connect(url)
    assert len(world.shop.rules("refund", 17)) == 6
    world.close()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "postgresql://me:secret@db/x", "not a url"]
)
def test_a_world_that_is_no_file_is_refused_without_showing_a_password(url: str):
    with pytest.raises(ConfigError, match="world") as refused:
        connect(url)

    assert "secret" not in str(refused.value)


def test_a_refund_is_accepted_first_and_paid_a_little_later(world: RefundWorld):
    accepted = world.provider.refund("k", NAMED, 1, 8900)

    before = world.shop.order(NAMED)
    done = settled(world, accepted.operation_id)
    after = world.shop.order(NAMED)

    assert (accepted.operation_id, accepted.state, accepted.refund_id) == (
        "OP-88",
        "accepted",
        None,
    )
    assert (done.state, done.refund_id) == ("completed", "RF-77")
    assert before is not None
    assert after is not None
    assert [(each.order.status, each.order.version) for each in (before, after)] == [
        ("placed", 8),
        ("refunded", 9),
    ]
    assert after.lines[0].refunded_cents == 8900


def test_ten_threads_with_one_key_make_one_operation_and_one_payment(world: RefundWorld):
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: world.provider.refund("k", NAMED, 1, 8900), range(10)))
        states = list(pool.map(lambda _: settled(world, "OP-88").refund_id, range(10)))

    assert {answer.operation_id for answer in answers} == {"OP-88"}
    assert set(states) == {"RF-77"}
    assert [each["amount_cents"] for each in world.payments()] == [8900]


def test_ten_threads_with_ten_keys_never_pay_more_than_was_paid(world: RefundWorld):
    def ask(number: int) -> str:
        try:
            return world.provider.refund(f"k{number}", NAMED, 1, 3000).operation_id
        except Refused as exc:
            return exc.code

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(ask, range(10)))

    assert answers.count("amount_exceeds_payment") == 8
    assert len({answer for answer in answers if answer.startswith("OP-")}) == 2


def test_a_key_that_comes_back_with_another_request_is_refused(world: RefundWorld):
    world.provider.refund("k", NAMED, 1, 8900)

    with pytest.raises(Refused, match="OP-88 has this key") as refused:
        world.provider.refund("k", NAMED, 1, 8800)

    assert refused.value.code == "idempotency_key_reused"


def test_a_part_of_an_order_leaves_its_status_and_moves_its_version(world: RefundWorld):
    world.prepare({"delay_s": 0})
    world.provider.refund("k1", "ORD-G9S4U7Y2", 2, 4800)

    part = world.shop.order("ORD-G9S4U7Y2")
    world.provider.refund("k2", "ORD-G9S4U7Y2", 1, 3200)
    whole = world.shop.order("ORD-G9S4U7Y2")

    assert part is not None
    assert whole is not None
    assert (part.order.status, part.order.version) == ("delivered", 10)
    assert (whole.order.status, whole.order.version) == ("refunded", 11)


def test_the_provider_can_be_down_a_number_of_times(world: RefundWorld):
    world.prepare({"provider_down_times": 2})

    for _ in range(2):
        with pytest.raises(ConnectionError, match="refused"):
            world.provider.refund("k", NAMED, 1, 8900)
        assert world.provider.by_key("k") is None

    assert world.provider.refund("k", NAMED, 1, 8900).operation_id == "OP-88"


def test_the_provider_can_accept_and_go_silent(world: RefundWorld, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(payment, "SILENT_S", 0.01)
    world.prepare({"accept_then_timeout": True})

    with pytest.raises(ConnectionError, match="reset"):
        world.provider.refund("k", NAMED, 1, 8900)

    known = world.provider.by_key("k")
    assert known is not None
    assert world.provider.refund("k", NAMED, 1, 8900).operation_id == known.operation_id


def test_the_provider_can_fail_what_it_accepted_and_pays_nothing(world: RefundWorld):
    world.prepare({"provider_fails": "card_closed", "delay_s": 0})

    accepted = world.provider.refund("k", NAMED, 1, 8900)

    assert settled(world, accepted.operation_id).failure_code == "card_closed"
    assert world.payments() == []
    assert world.provider.refund("k2", NAMED, 1, 8900).operation_id == "OP-89"


def test_switches_are_set_as_a_whole_and_unknown_ones_refused(world: RefundWorld):
    world.prepare({"provider_fails": "card_closed"})
    world.prepare({"delay_s": 0})

    world.provider.refund("k", NAMED, 1, 8900)

    assert len(world.payments()) == 1
    with pytest.raises(ConfigError, match="no switch 'rain'"):
        world.prepare({"rain": True})


def test_reset_brings_the_first_state_back(world: RefundWorld):
    world.prepare({"delay_s": 0})
    world.provider.refund("k", NAMED, 1, 8900)
    assert len(world.payments()) == 1

    world.reset()

    found = world.shop.order(NAMED)
    assert found is not None
    assert (found.order.version, world.payments()) == (8, [])
    assert world.provider.refund("k", NAMED, 1, 8900).state == "accepted"


def test_an_operation_is_found_by_another_connection(world: RefundWorld, world_url: str):
    world.provider.refund("k", NAMED, 1, 8900)

    engine = create_engine(world_url)
    with engine.connect() as connection:
        key = connection.scalar(select(provider_operations.c.idempotency_key))
    engine.dispose()

    assert key == "k"
