from __future__ import annotations

import ast
from pathlib import Path

from plangate.plan.codes import CODES
from tests.plan.faults import FAULTS

ROOT = Path(__file__).parent.parent.parent
UNREADABLE = {"unparsable", "missing_field", "unknown_field"}  # of what is no plan yet


def words_of(folder: str) -> set[str]:
    return {
        node.value
        for file in (ROOT / folder).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_is_emitted_somewhere():
    assert CODES.keys() <= words_of("plan/layers") | words_of("plan/shape")


def test_every_code_has_a_plan_that_provokes_it():
    assert {fault.code for fault in FAULTS} | UNREADABLE == set(CODES)


def test_every_code_is_explained_for_a_newcomer():
    for name, code in CODES.items():
        assert 1 <= code.layer <= 7, name
        assert code.severity in ("error", "warning"), name
        assert all(text.endswith((".", "?")) for text in code[1:4]), name
