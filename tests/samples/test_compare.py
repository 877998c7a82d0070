from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.budget.prices import PriceBook
from plangate.engine.dataflow import run_plan
from plangate.journal.clock import utc_now
from plangate.journal.events import TriggerFired
from plangate.journal.journal import Journal
from plangate.journal.session import Session
from plangate.nodes.kit import Kit, LazyWorld
from plangate.nodes.reflector import reflector
from plangate.nodes.replanner import replanner
from plangate.nodes.validator import validator
from plangate.plan.repair import load_repairs
from plangate.plan.revise.patch import apply
from plangate.plan.value.plan import Author, Budget
from plangate.tools.answers import ToolFailed
from plangate.tools.registry import Registry
from plangate.tools.tool import tool
from tests.engine.conftest import POLICY, Lab
from tests.samples.test_foreign import FOLDER, compared, data, with_checks

BOOK = {"a.pdf": ["heat", "dust"], "b.pdf": ["heat", "cold"]}


class Read(TypedDict):
    conditions: list[str]


class Compared(TypedDict):
    same: list[str]
    differs: list[str]


@tool(effect="read", errors={"unreadable": "permanent"})
async def read_document(document: str) -> Read:
    """Read the conditions in a document."""
    if document == "b.pdf":
        raise ToolFailed("unreadable")
    return {"conditions": BOOK[document]}


@tool(effect="read")
async def read_scan(document: str) -> Read:
    """Read the conditions in the picture of a document."""
    return {"conditions": BOOK[document]}


@tool(effect="read")
async def compare_evidence(a: list[str], b: list[str]) -> Compared:
    """Compare two lists of conditions."""
    return {"same": sorted({*a} & {*b}), "differs": sorted({*a} ^ {*b})}


TOOLS = [read_document, read_scan, compare_evidence]
CATALOG = Registry(TOOLS).catalog()
REPAIRS = load_repairs((FOLDER / "repairs.yaml").read_text("utf-8"))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    journal = Journal.open(f"sqlite:///{tmp_path}/journal.db")
    yield Lab(journal)
    journal.close()


def kit() -> Kit:
    return Kit(
        registry=Registry(TOOLS),
        policy=POLICY,
        templates=(),
        repairs=REPAIRS,
        world=LazyWorld(lambda: None),
        book=PriceBook({}),
        budget=Budget(),
        now=utc_now,
    )


async def test_b_cannot_be_read_so_a_is_frozen_and_only_b_and_the_comparison_are_planned_anew(lab):
    plan = with_checks(compared(data("compare")))

    halt, session = await lab.run(plan, TOOLS)

    assert (halt.reason, halt.step, halt.code) == ("trigger", "extract_b", "unreadable")
    assert await repaired(session, halt.kind, halt.step, halt.code) == ["replanner", "validator"]

    second = session.view.plans[2]
    assert second.carried == ("extract_a",)
    diff: Any = session.load(second.diff)
    assert diff["kept"] == ["extract_a", "compare"]
    assert diff["invalidated"] == ["extract_b"]
    assert diff["replaced"] == {"extract_b": ["extract_b_scan"]}
    assert list(diff["updated"]) == ["compare"]

    assert (await validator({}, session, kit()))["go"] == "critic"
    halt = await run_plan(lab.bench(session, kit().plan(session), TOOLS))

    assert halt.reason == "done"
    assert session.load(session.view.steps["compare"].output) == {
        "same": ["heat"],
        "differs": ["cold", "dust"],
    }
    tried = [each.started.step for each in session.view.attempts.values()]
    assert tried == ["extract_a", "extract_b", "extract_b_scan", "compare"]
    session.close()


def test_reading_b_in_another_way_is_inside_of_what_was_approved():
    plan, author = with_checks(compared(data("compare"))), Author(kind="replanner")
    patch = REPAIRS[0].patch_for(plan, "extract_b")

    patched = apply(plan, patch, author, done=frozenset({"extract_a"}), catalog=CATALOG)

    assert patched.diff.boundary == ()


async def repaired(session: Session, kind: str, step: str, code: str) -> list[str]:
    """Say what went wrong as the executor does, then reflect and replan."""
    session.emit(TriggerFired(kind=kind, step=step, code=code))
    first = await reflector({}, session, kit())
    second = await replanner({}, session, kit())
    return [first["go"], second["go"]]
