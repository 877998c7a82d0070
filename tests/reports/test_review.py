"""Themes D and N, plans under review and their events: what a person sees is what runs.

The reports are those of docs/discussions/field-reports.md, by number.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from click.testing import CliRunner
from langchain_openai import ChatOpenAI
from rich.console import Console

from plangate.budget.prices import PriceBook
from plangate.cli.follow import Follower
from plangate.cli.main import cli
from plangate.cli.render_plan import Sheet, plan_tree
from plangate.cli.show import show_question
from plangate.graph.arguments import resolved
from plangate.models.planning import draft_plan
from plangate.models.retry import Retry
from plangate.plan.errors import ModelFailed
from plangate.plan.value.frozen import digest, parse
from plangate.plan.value.plan import Author, Plan
from plangate.plan.value.step import Step
from tests.door.ledgers import office
from tests.reports.test_planning import brief, odd_draft

LESS = {"step": "S2", "args": {"cents": 60}}


@pytest.fixture
def shop(tmp_path):
    with office(tmp_path) as made:
        yield made


def printed(what: Any, width: int = 100) -> str:
    """What stands on a terminal of that width, with its lines joined again."""
    console = Console(width=width, record=True, file=None, highlight=False, emoji=False)
    with console.capture() as caught:
        console.print(what)
    return caught.get()


def one_line(shown: str) -> str:
    """Undo the wrapping, which may fall anywhere in a long value."""
    return "".join(row.strip(" \u2502\u251c\u2514\u2500") for row in shown.splitlines())


def plan_of(*steps: Step) -> Plan:
    author = Author(kind="planner", name="some-model")
    return Plan(goal_id="g", goal="g", task_type="t", steps=steps, author=author)


def run_shell(name: str, command: Any) -> Step:
    return Step(id=name, objective="Tidy up", tool="shell", args={"command": command})


# 44: the tail of a long argument, and what cannot be seen
@pytest.mark.parametrize("width", [60, 200])
def test_a_long_argument_is_shown_to_its_end_at_any_width(width):
    command = "x" * 5_000 + ";rm -rf /"

    shown = one_line(printed(plan_tree(Sheet(plan=plan_of(run_shell("S1", command)))), width))

    assert f'"{command}"'.replace(" ", "") in shown.replace(" ", "")


@pytest.mark.parametrize(
    ("char", "escape"),
    [
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\x1b[2K", "\\u001b[2K"),
        ("\x7f", "\\x7f"),
        ("\u3164", "\\u3164"),
        ("\u2800", "\\u2800"),
        ("\U000e0101", "\\U000e0101"),
        ("\\u202e", "\\\\u202e"),
    ],
)
def test_what_cannot_be_seen_is_written_out_and_never_looks_like_what_can(char, escape):
    shown = printed(plan_tree(Sheet(plan=plan_of(run_shell("S1", f"ls{char}")))))

    assert f'"ls{escape}"' in shown
    assert char == "\\u202e" or char not in shown


def test_an_empty_command_is_shown_as_empty():
    shown = printed(plan_tree(Sheet(plan=plan_of(run_shell("S1", "")))))

    assert 'command = "" (constant)' in shown


def test_forty_steps_in_one_gate_are_all_there():
    steps = [run_shell(f"S{n}", f"{'y' * 300} {n} end") for n in range(40)]

    shown = one_line(printed(plan_tree(Sheet(plan=plan_of(*steps))), 80)).replace(" ", "")

    assert all(f"{n}end" in shown for n in range(40))


def test_whose_words_a_plan_holds_is_said_with_them():
    assert "plan v1 by planner some-model" in printed(
        plan_tree(Sheet(plan=plan_of(run_shell("S1", "ls"))))
    )


def test_the_arguments_on_the_terminal_are_those_of_the_digest_that_is_approved(shop):
    run_id = shop.start()
    _, question = shop.runtime.question(run_id)
    view = shop.runtime.view(run_id)
    plan = parse(Plan, shop.runtime.journal.artifacts.get(view.plans[1].plan))
    console = Console(width=120, record=True, highlight=False, emoji=False)
    with console.capture() as caught:
        show_question(console, shop.runtime, question, view, plan)
    shown = caught.get()

    for card in shop.asked(run_id)["steps"]:
        args = resolved(plan.by_id[card["id"]], {"inputs": plan.inputs}).args
        assert card["args_sha256"] == digest(args)
        for name, given in args.items():
            written = given if str(given).startswith("${") else json.dumps(given)
            assert f"{name} = {written} (" in shown


# 50: which version an event belongs to
def test_after_two_edits_every_event_says_its_version_and_all_versions_stay_readable(shop):
    run_id = shop.start()
    shop.say(run_id, "edit", edits=(LESS,))
    shop.go(run_id)
    shop.say(run_id, "edit", edits=({"op": "remove", "path": "/steps/S5"},), by="bob")
    shop.go(run_id)
    half = shop.runtime.view(run_id).seq
    shop.say(run_id)
    shop.go(run_id, shop.another())

    rows = events(shop, run_id)
    late = events(shop, run_id, after=half)
    proposed = [row["seq"] for row in rows if row["event"]["type"] == "plan_proposed"]
    assert [row["plan_version"] for row in rows] == [
        sum(seq <= row["seq"] for seq in proposed) for row in rows
    ]
    assert late == rows[half:], "who looks again half-way sees the same of the rest"
    stepped = [row for row in rows if row["event"].get("step")]
    assert {row["plan_version"] for row in stepped} == {3}
    assert {row["run_id"] for row in rows} == {run_id}
    view = shop.runtime.view(run_id)
    plans = [shop.runtime.journal.artifacts.get(each.plan) for each in view.plans.values()]
    assert [len(plan["steps"]) for plan in plans] == [5, 5, 4]
    assert {view.steps[name].status for name in ("S1", "S2", "S3", "S4")} == {"done"}


def events(shop: Any, run_id: str, after: int = 0) -> list[dict[str, Any]]:
    """What `run events --json` prints."""
    words = ["run", "events", run_id, "--json", "--after", str(after)]
    words += ["--journal", f"sqlite:///{shop.folder}/journal.db"]
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 0, said.output
    return [json.loads(row) for row in said.stdout.splitlines()]


# 59: streams
def test_who_comes_back_gets_each_event_once_and_in_order(shop):
    run_id = shop.start()
    journal, first, second = shop.runtime.journal, [], []

    Follower(journal, run_id, first.append).look()
    shop.say(run_id)
    shop.go(run_id)
    again = Follower(journal, run_id, second.append, after=first[-1].seq)
    again.look()
    again.look()

    seen = [entry.seq for entry in (*first, *second)]
    assert seen == list(range(1, journal.runs.get(run_id).last_seq + 1))


async def asked(url: str) -> tuple[Any, list[Any]]:
    calls: list[Any] = []
    chat = ChatOpenAI(model="gpt-5-mini", base_url=url, api_key="not-a-key", streaming=True)
    once = Retry(attempts=1)
    try:
        got = await draft_plan(chat, brief(), book=PriceBook(), on_call=calls.append, retry=once)
    except ModelFailed as failed:
        return failed, calls
    return got, calls


async def test_a_plan_that_comes_in_pieces_is_read_once_and_whole():
    with trickling() as url:
        got, [called] = await asked(url)

    assert dict(got.plan.by_id["S1"].args["x"])["\u952e"] == (
        (1, (2, None)),
        {"\u043a\u043b\u044e\u0447": "\u00e9"},
    )
    assert (called.ok, called.input_tokens, called.output_tokens) == (True, 1200, 300)


async def test_a_connection_that_breaks_half_way_leaves_no_plan_and_its_tokens_count():
    with trickling(until=0.5) as url:
        got, [called] = await asked(url)

    assert isinstance(got, ModelFailed)
    assert (called.ok, called.error_code, called.estimated) == (False, "connection", True)
    assert called.input_tokens > 0
    assert called.usd > Decimal(0)


@contextmanager
def trickling(until: float = 1.0) -> Iterator[str]:
    """A server that sends its answer three bytes at a time, in the middle of letters too."""
    body = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-5-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None,
                     "message": {"role": "assistant", "content": odd_draft(), "refusal": None}}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 300, "total_tokens": 1500},
    }  # fmt: skip
    sent = json.dumps(body, ensure_ascii=False).encode()

    class Trickle(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            for at in range(0, int(len(sent) * until), 3):
                self.wfile.write(sent[at : at + 3])
                self.wfile.flush()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Trickle)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
