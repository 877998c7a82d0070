from __future__ import annotations

import ast
from pathlib import Path

import pytest

from plangate.plan.codes import CODES, issue
from plangate.plan.layers.run import read_plan, validate
from tests.plan.faults import FAULTS
from tests.plan.workshop import facts, read, sound

ROOT = Path(__file__).parent.parent.parent
UNREADABLE = {
    "unparsable": "",
    "missing_field": '{"steps": [{"id": "S1"}]}',
    "unknown_field": '{"steps": [{"id": "S1", "tol": "query_order"}]}',
}
"""What is no plan yet, by the code that says so."""

ELSEWHERE = {"semantic", "repair_does_not_fit", "no_undo"} | {
    name for name in CODES if name.startswith(("patch_", "undo_"))
}
"""Not about one plan alone: the critic's, what a patch can do wrong, and what cannot be undone."""


def words_of(*folders: str) -> set[str]:
    return {
        node.value
        for folder in folders
        for file in (ROOT / folder).glob("*.py")
        if not file.name.startswith("codes_of_")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_is_emitted_somewhere():
    plan = ("plan", "plan/flow", "plan/layers", "plan/revise", "plan/shape", "plan/value")
    rooms = (*plan, "nodes", "plangate")

    assert CODES.keys() <= words_of(*rooms)


def test_every_code_has_a_plan_that_provokes_it():
    assert {fault.code for fault in FAULTS} | UNREADABLE.keys() | ELSEWHERE == set(CODES)


def test_every_code_is_explained_for_a_newcomer():
    for name, code in CODES.items():
        assert 1 <= code.layer <= 8, name
        assert code.severity in ("error", "warning"), name
        assert all(text.endswith((".", "?")) for text in code[1:4]), name
        assert code.example, name


@pytest.mark.parametrize("name", sorted(CODES.keys() - UNREADABLE.keys() - ELSEWHERE))
def test_the_example_of_a_code_is_what_a_faulty_plan_gets_to_hear(name):
    said: list[str] = []
    for fault in FAULTS:
        if fault.code == name:
            data = sound()
            fault.change(data)
            report = validate(read(data), facts(**fault.facts))
            said += [each.says for each in report.issues if each.code == name]

    assert any(CODES[name].example in each for each in said), said


@pytest.mark.parametrize(("name", "text"), UNREADABLE.items())
def test_the_example_of_a_code_is_what_an_unreadable_plan_gets_to_hear(name, text):
    said = [each.says for each in read_plan(text).issues if each.code == name]

    assert any(each.startswith(CODES[name].example) for each in said), said


def test_an_unknown_code_cannot_be_reported():
    with pytest.raises(KeyError):
        issue("no_such_code", "says")
