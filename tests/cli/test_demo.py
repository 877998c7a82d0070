from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys

import pytest

from plangate.examples.refund.agent import agent


@pytest.mark.parametrize("name", ["accepted-then-timeout", "policy-refuses"])
def test_a_scenario_ends_as_it_says_with_exit_0(call, name):
    said = call("demo", "refund", "--scenario", name, "--yes", "--json").stdout

    report = json.loads(said)
    expect = agent.scenarios[name].expect
    assert (report["ending"], report["verdict"]) == (expect["ending"], expect["verdict"])
    assert len(report["payments"]) == expect["payments"]
    assert report["scenario"] == name
    assert {each["by"] for each in report["decisions"]} <= {"--yes", "plangate"}


def test_a_repaired_plan_keeps_what_was_done_and_pays_once(call):
    flags = ("--scenario", "no-logistics-record", "--yes", "--json")

    report = json.loads(call("demo", "refund", *flags).stdout)

    assert report["verdict"] == "pass"
    assert report["plan_versions"] == [1, 2]
    assert report["kept"][0] == "S1"
    assert len(report["payments"]) == 1
    assert report["estimate"]["seconds"]
    assert report["actual"]["calls"] > 0


def test_another_process_can_look_at_a_demo(call):
    report = json.loads(call("demo", "refund", "--yes", "--json").stdout)

    shown = json.loads(call("run", "show", report["run_id"], "--json").stdout)

    assert shown["terminal_verdict"] == "pass"
    assert (
        json.loads(
            call("run", "show", report["run_id"], "--json", "--journal", report["journal"]).stdout
        )
        == shown
    )


def test_a_demo_can_be_repeated(call):
    for _ in range(2):
        report = json.loads(call("demo", "refund", "--yes", "--json").stdout)
        assert (report["verdict"], len(report["payments"])) == ("pass", 1)


def test_a_demo_shows_plan_steps_verdict_and_bill(call):
    said = call("demo", "refund", "--scenario", "no-logistics-record", "--yes")

    for part in ("create_refund [irreversible]", "tier", "plan changed", "v1 → v2", "verdict pass"):
        assert part in said.stdout
    assert "evidence " in said.stdout
    assert "estimate against actual" in said.stdout
    for part in ("S1 done", "decision approve by --yes", "look closer: plangate run show run_"):
        assert part in said.stderr


def test_without_a_terminal_it_exits_11_and_says_how_to_answer(call):
    said = call("demo", "refund", code=11)

    assert "create_refund" in said.stdout
    assert "hint: Answer with: plangate approve run_" in said.stderr


def test_a_waiting_demo_goes_on_with_approve_over_its_own_world(call, here):
    waits = json.loads(call("demo", "refund", "--json", code=11).stdout)

    call("approve", waits["run_id"], "--yes", code=11)
    call("approve", waits["run_id"], "--yes")

    assert not (here / ".plangate" / "refund-world.db").exists()


def test_scenarios_are_listed(call):
    rows = json.loads(call("demo", "--list", "--json").stdout)

    assert [row["name"] for row in rows] == list(agent.scenarios)
    assert "no-logistics-record" in call("demo", "refund", "--list").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "code", "shown"),
    [(["y\n", "y\n"], 0, b"pass"), (["n\n"], 9, b"rejected"), (["\x03"], 130, b"interrupted")],
    ids=["yes to both", "no", "Ctrl-C"],
)
def test_a_person_at_a_terminal_is_asked(here, answers, code, shown):
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(here)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores Ctrl-C
        os.execv(sys.executable, [sys.executable, "-m", "plangate.cli", "demo", "refund"])  # noqa: S606

    said = b""
    while chunk := _read(terminal, child):
        said += chunk
        if answers and said.endswith(b"[y/n] "):
            os.write(terminal, answers.pop(0).encode())

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code, said.decode()
    assert b"Operator: approve plan v1 as shown above? [y/n]" in said
    assert (b"Customer:" in said) == (code == 0)
    assert shown in said


def _read(terminal, child):
    if not select.select([terminal], [], [], 60)[0]:
        os.kill(child, signal.SIGKILL)
        pytest.fail("nothing was said for a minute")
    try:
        return os.read(terminal, 4096)
    except OSError:  # the child closed its side
        return b""
