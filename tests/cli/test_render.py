from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from plangate.cli.contracts import Contracts
from plangate.cli.make import filled
from plangate.cli.render_diff import diff_lines
from plangate.cli.render_events import event_line
from plangate.cli.render_plan import plan_tree
from plangate.cli.render_run import bill
from plangate.cli.terminal import line, visible
from plangate.graph.lens import is_blank
from plangate.journal.clock import utc_now
from plangate.journal.events import Entry
from plangate.journal.questions import (
    AnswerRefused,
)


def printed(what, width):
    console = Console(file=io.StringIO(), width=width, markup=False)
    console.print(what)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def sheet():
    contracts = Contracts.of("refund", utc_now())
    inputs = {"order_id": "ORD-A1B2C3D4", "line": 1, "amount_cents": 8900}
    return contracts.sheet(filled(contracts, "Refund it", inputs, task=""))


@pytest.mark.parametrize("width", [60, 160])
def test_a_plan_fits_narrow_and_wide_terminals(sheet, width):
    shown = printed(plan_tree(sheet), width)

    assert max(len(row) for row in shown.splitlines()) <= width
    for step in sheet.plan.steps:
        assert f"{step.id} {step.capability}" in shown


@pytest.mark.parametrize("width", [60, 160])
def test_a_bill_fits_narrow_and_wide_terminals(width):
    estimate = {
        "seconds": {"p50": 0.1 + 0.2, "p95": 3.0},
        "usd": {"p50": "0.25", "p95": "unknown"},
        "tokens": {"p50": 0, "p95": 0},
        "calls": 3,
    }

    shown = printed(bill(estimate, {"seconds": 1.0, "usd": "0.2", "tokens": 0, "calls": 2}), width)

    assert max(len(row) for row in shown.splitlines()) <= width
    assert "0.30 " in shown


def test_a_diff_names_what_is_kept_replaced_and_allowed_more():
    diff = {
        "from_version": 1,
        "to_version": 2,
        "kept": ["S1"],
        "replaced": {"S2": ["S2a", "S2b"]},
        "updated": {"S3": ["args"]},
        "boundary": ["S9 is a new effect"],
    }

    shown = "\n".join(each.plain for each in diff_lines(diff))

    assert "v1 → v2" in shown
    assert "kept S1" in shown
    assert "replaced S2 by S2a, S2b" in shown
    assert "updated S3 (args)" in shown
    assert "may do more S9 is a new effect" in shown


def test_text_is_never_read_as_markup():
    assert line("[red]no[/red]", ("[b]", "bold")).plain == "[red]no[/red] [b]"


@given(st.text())
def test_visible_text_is_one_printable_line(said):
    shown = visible(said)

    assert shown.isprintable()
    if said.isprintable() and not any(is_blank(char) for char in said):
        assert shown == said


def test_half_a_surrogate_pair_is_made_visible():
    assert visible("a\ud800b") == "a\\ud800b"


def test_a_refused_answer_is_shown_with_its_reason():
    event = AnswerRefused(question_id="r-q1", why="it came after noon")
    entry = Entry(run_id="r", seq=1, at=utc_now(), epoch=1, event=event)

    assert event_line(entry).plain.endswith("answer refused it came after noon")
