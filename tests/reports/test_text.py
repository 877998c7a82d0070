"""Theme M: text is Unicode at every border, whatever the terminal, and has one identity."""

from __future__ import annotations

import json
import unicodedata

import pytest
from click.testing import CliRunner
from typing_extensions import TypedDict

from plangate.budget.tokens import count_text
from plangate.cli.main import cli
from plangate.plan.effects import effect_key
from plangate.plan.value.frozen import canonical, digest
from plangate.plan.value.step import Step
from plangate.tools.tool import Tool, tool
from tests.engine.conftest import Lab, lab, plan_of

__all__ = ["lab"]

COMPOSED = "Caf\u00e9"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


class Echo(TypedDict):
    text: str


def saying(text: str, error: bool = False, **contract: object) -> Tool:
    @tool(**{"effect": "read", **contract})  # type: ignore[misc]
    def say(name: str) -> Echo:
        """Say something."""
        if error:
            raise ConnectionResetError(text)
        return {"text": text}

    return say


def step(name: str = "x") -> Step:
    return Step(id="a", objective="o", tool="say", args={"name": name})


ACTS = {"effect": "write", "key": "say:{name}", "scope": "goal"}


# Report 56: an escaped pair is one character; Chinese and NUL are kept as they are.
@pytest.mark.parametrize("text", [json.loads('"\\ud83d\\ude00"'), "退款 \U00020000", "a\x00b"])
async def test_whole_text_comes_back_from_the_journal_as_it_was(lab: Lab, text):
    _, session = await lab.run(plan_of(step()), [saying(text)])
    await session.aflush()

    assert session.journal.artifacts.get(session.view.steps["a"].output) == {"text": text}
    session.close()


# Report 56: half a character is refused by name where it comes in; what acted has acted.
@pytest.mark.parametrize("error", [False, True])
async def test_half_a_character_of_a_tool_ends_its_attempt_and_not_the_run(lab: Lab, error):
    halt, session = await lab.run(plan_of(step()), [saying("\ud83d", error, **ACTS)])
    await session.aflush()

    [row] = lab.journal.ledger.list()
    code = session.view.steps["a"].error_code
    assert (row.state, code) == (
        ("unknown", "ConnectionResetError") if error else ("done", "output_not_json")
    )
    assert halt.reason == "trigger"
    session.close()


# Report 56: the hash is over code points; the identity of an effect over the composed form.
def test_composed_and_decomposed_text_differ_as_arguments_and_are_one_effect():
    spec = saying("x", **ACTS).spec
    same = [effect_key(spec, {"name": each}, "g").key for each in (COMPOSED, DECOMPOSED)]

    assert digest({"name": COMPOSED}) != digest({"name": DECOMPOSED})
    assert same[0] == same[1]
    assert canonical({"name": COMPOSED}) == f'{{"name":"{COMPOSED}"}}'.encode()


async def test_the_same_effect_typed_in_another_form_is_not_made_twice(lab: Lab):
    says = saying("ok", **ACTS)
    first, session = await lab.run(plan_of(step(COMPOSED)), [says])
    session.close()
    again, session = await lab.run(plan_of(step(DECOMPOSED)), [says])

    assert (first.reason, again.reason) == ("done", "trigger")
    assert [row.state for row in lab.journal.ledger.list()] == ["done"]
    assert session.view.steps["a"].error_code == "other_arguments"
    session.close()


# Report 56: a terminal that cannot show a character gets another one; the file is UTF-8.
@pytest.mark.parametrize("charset", ["cp1252", "ascii"])
def test_a_narrow_terminal_breaks_no_command(tmp_path, monkeypatch, charset):
    monkeypatch.chdir(tmp_path)
    inputs = ("--input", "order_id=ORD-B7K2M9Q4", "--input", "amount_cents=6450")
    made = CliRunner(charset=charset).invoke(
        cli,
        ["plan", "make", "--agent", "refund", "--goal", "退款", *inputs, "--out", "单.json"],
        catch_exceptions=False,
    )

    assert made.exit_code == 0
    assert "退款" in (tmp_path / "单.json").read_text(encoding="utf-8")


def test_an_estimate_for_chinese_is_above_its_true_count():
    text = "退款申请已经提交，请尽快处理。" * 50  # noqa: RUF001 - Chinese has its own marks

    exact = count_text(text, "gpt-4o").tokens

    assert exact <= len(text.encode()) / 3
