"""What a run is made of changed while it waited: it goes on, is checked again or planned anew."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plangate.graph.payload import Answer
from plangate.journal.journal import Journal
from plangate.nodes.madeof import changed_since
from plangate.prompts import loader
from plangate.runtime import Runtime, new_run_id
from tests.door.letters import POLICY, TEMPLATE, Post, given

WITHOUT_DRAFT = """
template: letter
goal: Send the letter to {to}
parameters: [{name: to, type: string}]
steps:
  - id: S2
    objective: Send it
    tool: send
    args: {to: "${inputs.to}", text: Dear}
    success: [{id: arrived, level: L2, claim: It is in the outbox, tool: outbox,
               args: {to: "${inputs.to}"}, rule: observed.count == 1}]
success_criteria: [{id: once, level: L2, claim: One letter was sent, tool: outbox,
                    args: {to: "${inputs.to}"}, rule: observed.count == 1}]
"""


@pytest.fixture
def post(tmp_path: Path) -> Iterator[Post]:
    made = Post(tmp_path)
    yield made
    made.close()


def waiting(post: Post) -> str:
    """Start a run and leave it at its gate."""
    runtime, run_id = post.open(), new_run_id()
    for _ in runtime.start(given(), run_id=run_id):
        pass
    runtime.close()
    return run_id


def approved(runtime: Runtime, run_id: str) -> None:
    runtime.answer(run_id, Answer(decision="approve", by="ann"))
    for _ in runtime.advance(run_id):
        pass


def seen(runtime: Runtime, run_id: str) -> list[tuple[str, tuple[str, ...]]]:
    entries = runtime.journal.log.read(run_id)
    return [(e.event.word, e.event.reasons) for e in entries if e.event.type == "fingerprinted"]


CHANGES = [
    ({}, {}, None, []),
    (
        {"seconds": 9.0},
        {},
        ("compatible", ("tool send is only described otherwise",)),
        [],
    ),
    (
        {},
        {"templates": (TEMPLATE.replace("Send it", "Post it"),)},
        ("compatible", ("template letter changed",)),
        [],
    ),
    (
        {"timeout_s": 9.0},
        {},
        ("revalidate", ("tool send has another contract",)),
        ["contracts_changed"],
    ),
    (
        {"version": "2"},
        {},
        ("revalidate", ("tool send has version 2, was 1",)),
        ["contracts_changed"],
    ),
    (
        {},
        {"policy": POLICY + '[[allow]]\ntool = "send"\n'},
        ("revalidate", ("the policy changed",)),
        ["contracts_changed"],
    ),
]


@pytest.mark.parametrize(
    ("contract", "chosen", "says", "triggers"),
    CHANGES,
    ids=["nothing", "words", "template", "contract", "version", "policy"],
)
def test_a_change_while_a_run_waits_is_judged_and_an_approval_covers_no_other_contract(
    post, contract: Mapping[str, Any], chosen: Mapping[str, Any], says, triggers
):
    run_id = waiting(post)
    runtime = post.open(contract, **chosen)

    approved(runtime, run_id)

    view = runtime.view(run_id)
    assert seen(runtime, run_id) == [("first", ()), *([says] if says else [])]
    assert [each.code for each in view.triggers] == triggers
    assert (bool(triggers), post.sent) == (bool(view.pending), [] if triggers else ["Ann"])


def test_a_prompt_that_changed_is_said_and_the_run_goes_on(post, tmp_path, monkeypatch):
    run_id = waiting(post)
    shutil.copytree(Path(loader.__file__).parent, tmp_path / "prompts")
    with (tmp_path / "prompts/critic.md").open("a") as prompt:
        prompt.write("Be kind.\n")
    monkeypatch.setattr(loader, "resources", SimpleNamespace(files=lambda _: tmp_path / "prompts"))
    runtime = post.open()

    approved(runtime, run_id)

    assert seen(runtime, run_id)[1:] == [("compatible", ("prompt critic changed",))]
    assert post.sent == ["Ann"]


def rewritten(runtime: Runtime, kind: str, field: str, edit: Callable[[Any], None]) -> None:
    """Make the journal one that another version wrote: change a value behind an event."""
    path = runtime.journal.url.removeprefix("sqlite:///")
    with Journal.open(runtime.journal.url) as journal, sqlite3.connect(path) as opened:
        found = opened.execute("SELECT seq, body FROM events WHERE type = ?", (kind,)).fetchall()
        for seq, body in found:
            event = json.loads(body)
            value = journal.artifacts.get(event[field])
            edit(value)
            event[field] = journal.artifacts.put(value)
            opened.execute("UPDATE events SET body = ? WHERE seq = ?", (json.dumps(event), seq))
            opened.commit()


def test_a_plan_form_that_changed_and_can_be_read_has_the_plan_checked_again(post):
    run_id = waiting(post)
    runtime = post.open()
    for kind in ("fingerprinted", "plan_validated"):
        rewritten(runtime, kind, "fingerprint", lambda print_: print_.update(plan_schema="older"))

    approved(runtime, run_id)

    says = ("the form of plans changed; this one can be read",)
    assert seen(runtime, run_id)[1:] == [("revalidate", says)]
    assert (len(runtime.view(run_id).pending), post.sent) == (1, [])


def test_a_plan_that_this_version_cannot_read_is_made_anew_and_asked_about(post):
    run_id = waiting(post)
    runtime = post.open()
    rewritten(runtime, "plan_proposed", "plan", lambda plan: plan.update(schema_version=2))
    rewritten(runtime, "fingerprinted", "fingerprint", lambda p: p.update(plan_schema="newer"))

    approved(runtime, run_id)
    view = runtime.view(run_id)
    assert seen(runtime, run_id)[1:] == [
        ("replan", ("the plan is written in a form that this version cannot read",))
    ]
    assert (list(view.plans), len(view.pending), post.sent) == ([1, 2], 1, [])

    approved(runtime, run_id)
    assert (runtime.view(run_id).ended.verdict, post.sent) == ("pass", ["Ann"])


def test_a_plan_whose_tool_is_gone_is_made_anew_and_its_history_kept(post):
    run_id = waiting(post)
    tools = tuple(each for each in post.tools() if each.spec.name != "draft")
    runtime = post.open(tools=tools, templates=(WITHOUT_DRAFT,))

    approved(runtime, run_id)

    view = runtime.view(run_id)
    assert [word for word, _ in seen(runtime, run_id)] == ["first", "replan"]
    assert (list(view.plans), view.plans[2].trigger) == ([1, 2], "fingerprint:replan")
    assert (len(view.pending), post.sent) == (1, [])
    approved(runtime, run_id)
    assert (runtime.view(run_id).ended.verdict, post.sent) == ("pass", ["Ann"])


def test_a_plan_that_cannot_be_made_anew_ends_with_what_is_wrong(post):
    run_id = waiting(post)
    tools = tuple(each for each in post.tools() if each.spec.name != "draft")
    runtime = post.open(tools=tools)

    approved(runtime, run_id)

    ended = runtime.view(run_id).ended
    assert (ended.ending, ended.why.partition(":")[0]) == ("failed", "unknown_tool S1")
    assert post.sent == []


def test_what_changed_can_be_asked_without_touching_the_run(post):
    run_id = waiting(post)
    runtime = post.open(policy=POLICY + '[[allow]]\ntool = "send"\n')
    before = runtime.view(run_id).seq

    found = changed_since(runtime.journal, runtime.kit, run_id)

    assert (found.word, found.reasons) == ("revalidate", ("the policy changed",))
    assert runtime.view(run_id).seq == before
