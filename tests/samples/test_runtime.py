from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from plangate.nodes.decide import Refused
from plangate.plan.document import read_yaml
from plangate.plan.errors import WaitingForPerson
from plangate.plan.value.frozen import Frozen
from tests.samples.cases import HERE
from tests.samples.outside import YES, Outside, Stage


class Expect(Frozen):
    ending: str = ""
    verdict: str = ""
    waits: str = ""
    """Kind of the question that is open at the end."""

    trigger: str = ""
    code: str = ""
    step: str = ""
    outcome: str = ""
    refused: str = ""
    """Why an input or an answer changed nothing."""

    effects: int
    versions: int = 1


class Sample(Frozen):
    id: str
    says: str
    does: dict[str, list[str]] = Field(default_factory=dict)
    stock: dict[str, Any] = Field(default_factory=dict)
    at: Literal["", "approval", "step", "release"] = ""
    """Before which answer the change comes; `release`: after the last one."""

    change: dict[str, Any] = Field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    expect: Expect
    xfail: str = ""


class _File(Frozen):
    samples: tuple[Sample, ...]


SAMPLES = read_yaml(_File, (HERE / "runtime.yaml").read_text("utf-8"), "runtime").samples
KNOWN = {each.id: pytest.mark.xfail(reason=each.xfail) for each in SAMPLES if each.xfail}
EACH = [pytest.param(each, id=each.id, marks=KNOWN.get(each.id, ())) for each in SAMPLES]


@pytest.mark.parametrize("sample", EACH)
def test_what_changes_at_run_time_leads_where_it_must(tmp_path: Path, sample: Sample):
    world = Outside(does={name: list(words) for name, words in sample.does.items()})
    world.stock.update(sample.stock)
    stage = Stage(tmp_path, world)

    refused = played(stage, sample)

    expect = sample.expect
    assert found(stage, expect, refused) == expect
    keys = {row.effect_key for row in stage.runtime.journal.ledger.list()}
    assert set(world.acts) <= keys, "it acted beside the ledger"
    assert len(set(world.acts)) == len(world.acts), "it acted twice"
    stage.runtime.close()


def test_there_are_enough_changes_and_every_kind_of_end():
    assert len(SAMPLES) >= 12
    assert {each.expect.ending for each in SAMPLES} == {
        *("", "completed", "declined", "rejected", "failed")
    }
    assert {each.expect.waits for each in SAMPLES} == {
        *("", "approval", "step", "effect", "escalation", "verdict")
    }


def played(stage: Stage, sample: Sample) -> str:
    """Start, answer each question once, change what changes; return what was refused."""
    stage.start()
    refused = ""
    for kind in ("approval", "step"):
        if stage.waits != kind:
            break
        if sample.at == kind:
            refused = changed(stage, sample.change) or refused
        said = stage.answer(**{**YES[kind], **sample.answers.get(kind, {})})
        if isinstance(said, Refused):
            return said.why
        if kind == "step" and sample.at == "release":
            stage.change(sample.change)
        stage.go_on()
    return refused


def changed(stage: Stage, change: Mapping[str, Any]) -> str:
    if "goal" in change:
        with pytest.raises(WaitingForPerson) as caught:
            stage.start(change["goal"])
        return str(caught.value)
    stage.change(change)
    return ""


def found(stage: Stage, expect: Expect, refused: str) -> Expect:
    """What came of it, as far as the sample says anything about it."""
    view = stage.view
    fired = view.triggers[-1] if view.triggers else None
    step = view.steps.get(expect.step)
    assert expect.refused in refused
    assert bool(refused) == bool(expect.refused), refused
    return Expect(
        ending=view.ended.ending if view.ended else "",
        verdict=view.ended.verdict if view.ended else "",
        waits=stage.waits,
        trigger=fired.kind if fired else "",
        code=fired.code if fired and expect.code else expect.code,
        step=(fired.step or "") if fired and expect.step else expect.step,
        outcome=(step.outcome or "") if step else "",
        refused=expect.refused,
        effects=len(stage.world.acts),
        versions=len(view.plans),
    )
