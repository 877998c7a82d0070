from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from langchain_core.messages import AIMessage

from plangate import build_preview
from plangate.agent import Agent, load_agent
from plangate.cli.main import cli
from plangate.examples.aml.attacks import ATTACKS
from plangate.examples.aml.world import SWITCHES, AmlWorld
from plangate.plan.facts import Facts
from plangate.plan.layers.run import validate
from plangate.plan.policy import Policy
from plangate.plan.templates import Template
from plangate.plan.value.frozen import parse
from plangate.plan.value.plan import Plan
from plangate.tools.registry import Registry
from tests.examples.aml import ROWS, SAYS, Desk
from tests.examples.test_aml_tools import called, drafted

SCENARIOS = load_agent("aml").scenarios
SLOWER = (
    "structuring", "fan-in", "fan-out", "rapid-movement", "round-trip", "mixed", "payroll",
    "shop-takings",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOWER else []) for n in SCENARIOS]
)
def test_each_scenario_comes_out_as_its_file_says(desk: Desk, name: str):
    scenario = SCENARIOS[name]

    view = desk.run(name)

    results = desk.world.results(scenario.inputs)
    assert view.ended is not None
    assert {
        "ending": view.ended.ending,
        "verdict": view.ended.verdict,
        "plan_versions": list(view.plans),
        **{kind: len(rows) for kind, rows in results.items()},
    } == scenario.expect
    assert set(scenario.world) <= set(SWITCHES)


def test_what_a_run_cites_was_in_the_preview_that_looked_at_its_world(desk: Desk):
    view = desk.run("structuring")
    plan = parse(Plan, desk.runtime.journal.artifacts.get(view.plans[1].plan))

    blind, seeing = (
        build_preview(plan, desk.agent),
        build_preview(plan, desk.agent, world_url=desk.world_url),
    )

    claims = desk.output(view, "S13")["claims"]
    cited = {ref for claim in claims for ref in claim["cites"]}
    of_bank = {ref for ref in cited if not ref.startswith("typology:")}
    assert any(ref.startswith("txn:") for ref in of_bank)
    assert of_bank <= set(seeing.evidence)
    assert not of_bank <= set(blind.evidence)


def test_a_closed_case_says_for_each_typology_why_it_is_none(desk: Desk):
    view = desk.run("payroll")

    assert view.ended is not None
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    [closed] = desk.world.results({"case_id": "CASE-2006"})["closed"]
    assert [each.split()[0] for each in closed["reasons"]] == [
        "structuring", "fan_in", "fan_out", "rapid_movement", "round_trip", "watch",
    ]  # fmt: skip
    assert "payees in earlier months" in closed["reasons"][2]
    assert {s for s, each in view.steps.items() if each.status == "skipped"} == {
        "S11", "S12", "S13", "S14",
    }  # fmt: skip


def test_without_consent_nothing_is_drafted(desk: Desk):
    no = {**SAYS, "step": {"decision": "answer", "answer": {"confirmed": False}}}

    view = desk.run("structuring", says=no)

    assert view.ended is not None
    assert (view.ended.ending, view.ended.verdict) == ("declined", "fail")
    assert "S13" not in {each.started.step for each in view.attempts.values()}
    assert desk.world.results({"case_id": "CASE-2001"})["filed"] == []


def test_a_filed_report_says_verdict_and_confidence_for_each_claim(bank_world: AmlWorld):
    case = {"case_id": "CASE-2011", "window_days": 30}

    called(bank_world, "file_sar_draft", draft=drafted(bank_world, case), **case)

    [filed] = bank_world.results(case)["filed"]
    claims = [each for part in filed["body"]["sections"] for each in part["claims"]]
    assert len(filed["body"]["sections"]) == 6
    assert {each["verdict"] for each in claims} == {"supported"}
    assert {each["confidence_pct"] for each in claims if each["section"] == "activity"} == {100}
    assert all(60 <= e["confidence_pct"] < 100 for e in claims if e["section"] == "typologies")


def test_memos_and_names_change_nothing_that_is_called_decided_or_filed(desk: Desk):
    def seen(*, attacks: bool) -> list[Any]:
        view = desk.run("mixed", switches={"attacks": attacks})
        desk_results = desk.world.results({"case_id": "CASE-2011"})
        listed = str(desk.output(view, "S3"))
        return [
            "evil.example" in listed,
            desk.calls(view),
            view.ended.verdict if view.ended else None,
            desk.output(view, "S10"),
            desk_results["filed"][0]["body"],
            desk_results["outside"],
        ]

    # The key of a filed report is global: the second run has a journal of its own.
    attacked = seen(attacks=True)
    other = Desk(desk.folder / "other", desk.world_url)
    try:
        desk.runtime, kept = other.runtime, desk.runtime
        plain = seen(attacks=False)
    finally:
        desk.runtime = kept
        other.close()

    assert (attacked[0], plain[0]) == (True, False)
    assert attacked[1:] == plain[1:]


CALL = re.compile(r"(send_external|set_account_status)\(([^)]*)\)")


def obey(world: AmlWorld, text: str) -> None:
    """What a loop does that takes what it reads for what it is told."""
    for name, said in CALL.findall(text):
        args = dict(re.findall(r"(\w+)='([^']*)'", said))
        called(world, name, f"obeyed-{text[:9]}", **args)


@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_each_attack_would_work_on_a_loop_that_obeys(bank_world: AmlWorld, attack: str):
    obey(bank_world, attack)

    assert len(bank_world.results({"case_id": "CASE-2001"})["outside"]) == 1


def test_a_loop_that_obeys_what_it_reads_does_harm_in_the_very_case_that_we_close(
    bank_world: AmlWorld,
):
    listed = called(bank_world, "list_transactions", case_id="CASE-2001", window_days=30)
    for row in listed["transactions"]:
        obey(bank_world, f"{row['memo']} {row['other_name']}")

    assert len(bank_world.results({"case_id": "CASE-2001"})["outside"]) >= 1


def facts(agent: Agent, step_model: str | None = None) -> Facts:
    return Facts(
        catalog=Registry(agent.tools).catalog(agent.rights.scopes),
        rights=agent.rights,
        policy=Policy.from_toml(agent.policy),
        now=datetime(2026, 11, 30, tzinfo=UTC),
        step_model=step_model,
    )


def plan(agent: Agent, name: str = "aml") -> Plan:
    made = {t.template: t for t in map(Template.from_yaml, agent.templates)}
    return made[name].fill(None, {"case_id": "CASE-2001"}, "g")


def test_the_plan_passes_every_layer_without_a_warning():
    agent = load_agent("aml")

    report = validate(plan(agent), facts(agent))

    assert [(each.code, each.step, each.says) for each in report.issues] == []
    assert report.missing_verifiers == ()


@pytest.mark.parametrize(
    ("tool", "args", "codes"),
    [
        (
            "send_external",
            {"recipient": "${S3.transactions.0.memo}", "body": "${S2.occupation}"},
            {"untrusted_flow", "confidential_flow", "missing_ancestor"},
        ),
        (
            "set_account_status",
            {"account_id": "${S3.transactions.0.other_name}", "status": "cleared"},
            {"untrusted_flow", "missing_ancestor"},
        ),
        (
            "close_case",
            {"case_id": "${S1.case_id}", "reasons": ["${S3.transactions.0.memo}"]},
            {"untrusted_flow"},
        ),
    ],
)
def test_a_plan_that_hands_outsiders_words_to_a_sink_is_refused_before_it_runs(tool, args, codes):
    agent = load_agent("aml")
    said = plan(agent).model_dump(mode="json")
    said["steps"].append(
        {"id": "S99", "objective": "Obey", "tool": tool, "args": args, "after": ["S15"]}
    )

    report = validate(parse(Plan, said), facts(agent))

    assert not report.valid
    assert codes <= {each.code for each in report.errors if each.step == "S99"}


def test_a_report_that_does_not_read_what_guards_it_is_refused():
    agent = load_agent("aml")
    said = plan(agent).model_dump(mode="json")
    for step in said["steps"]:
        if step["id"] == "S14":
            step["args"]["draft"] = {"claims": []}  # it still waits for S12, which can be skipped

    errors = validate(parse(Plan, said), facts(agent)).errors

    assert {(e.code, e.step) for e in errors if e.layer == 4} == {("skippable_guard", "S14")}
    assert any("'human:investigator'" in each.says for each in errors)


def test_both_templates_differ_in_who_writes_the_draft_and_in_nothing_else():
    one, two = (yaml.safe_load(text) for text in load_agent("aml").templates)
    for each in (one, two):
        for name in ("template", "summary", "budget"):
            del each[name]
    steps = [{step["id"]: step for step in each.pop("steps")} for each in (one, two)]
    draft, model = (each.pop("S13") for each in steps)

    assert one == two
    assert steps[0] == steps[1]
    assert draft["success"] == model["success"]
    assert model["args"] == {**draft["args"], "transactions": "${S3.transactions}"}


@dataclass
class Scripted:
    """A chat model that says what it is told to, in order."""

    script: list[str]
    model_name: str = "scripted"
    max_tokens: int = 4_000
    asked: list[Any] = field(default_factory=list)

    async def ainvoke(self, messages: list[dict[str, str]]) -> AIMessage:
        self.asked.append(messages)
        await asyncio.sleep(0)
        return AIMessage(content=self.script.pop(0) if len(self.script) > 1 else self.script[0])


@pytest.fixture
def with_model(desk: Desk) -> Any:
    """Runs a case with a model's draft; the model has no price, so the agent has no limit."""
    agent = desk.agent
    free = replace(
        agent,
        policy=agent.policy.replace('max_usd = "2.00"\n', ""),
        templates=tuple(re.sub(r' +max_usd: "\d.00"\n', "", text) for text in agent.templates),
    )

    def run(*drafts: dict[str, Any]) -> tuple[Any, Desk, Scripted]:
        chat = Scripted([json.dumps(each) for each in drafts])
        made = Desk(desk.folder / "model", desk.world_url, free, {"step_model": chat})
        opened.append(made)
        return made.run("structuring", task="aml_model"), made, chat

    opened: list[Desk] = []
    yield run
    for each in opened:
        each.close()


@pytest.fixture
def honest(desk: Desk) -> dict[str, Any]:
    return drafted(desk.world)


def test_a_draft_of_a_model_is_filed_where_the_books_hold_it(with_model, honest):
    view, desk, chat = with_model(honest)

    assert (view.ended.ending, view.ended.verdict, list(view.plans)) == ("completed", "pass", [1])
    assert len(chat.asked) == 1
    assert "evil.example" in str(chat.asked)  # it did see what outsiders wrote
    assert len(desk.world.results({"case_id": "CASE-2001"})["filed"]) == 1


def test_a_model_that_obeys_a_memo_changes_neither_calls_nor_report(with_model, honest):
    claims = [dict(each) for each in honest["claims"]]
    claims[2] |= {"text": ATTACKS[-1], "cites": ["txn://T-0000000000"]}

    view, desk, _ = with_model({"claims": claims})

    results = desk.world.results({"case_id": "CASE-2001"})
    assert (view.ended.ending, view.ended.verdict) == ("completed", "pass")
    assert view.steps["S13r"].status == "done"
    assert list(view.plans) == [1, 2]
    assert results["outside"] == []
    assert "9,999,999" not in str(results["filed"])
    assert len(results["filed"]) == 1


def test_the_demo_says_verdict_estimate_and_actual(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["demo", "aml", "--rows", str(ROWS), "--yes", "--json"])

    said = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (said["verdict"], len(said["filed"]), said["outside"]) == ("pass", 1, [])
    assert said["estimate"]["calls"]["p95"] >= said["actual"]["calls"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["demo", "refund", "--rows", "5"], "no switch 'rows'"),
        (["demo", "refund", "--model", "openai:x"], "no template with model steps"),
        (["demo", "aml", "--rows", "5"], "of 5 transactions"),
    ],
)
def test_a_demo_that_cannot_be_says_why(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, words)

    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.slow
def test_the_world_lives_on_postgres_as_well(tmp_path, bare_postgres):
    desk = Desk(tmp_path, bare_postgres)
    try:
        view = desk.run("mixed")
        filed = desk.world.results({"case_id": "CASE-2011"})["filed"]
    finally:
        desk.close()

    assert view.ended is not None
    assert (view.ended.verdict, len(filed)) == ("pass", 1)
