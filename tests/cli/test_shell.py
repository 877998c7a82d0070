from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from plangate.cli.shell import EXIT_CODES, Shell
from plangate.plan import errors
from plangate.plan.errors import PlangateError
from plangate.plan.issue import Issue

HEAVY = ("langgraph", "langchain_core", "pydantic", "sqlalchemy", "rich", "yaml")


def loaded_by(code):
    report = f"print(sorted({{m.split('.')[0] for m in sys.modules}} & {set(HEAVY + LATER)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{report}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


LATER = ("langsmith", "openai", "langchain_openai", "tiktoken", "genai_prices")


def test_help_loads_nothing_heavy():
    code = "from plangate.cli.main import cli\ntry: cli(['--help'])\nexcept SystemExit: pass"

    assert loaded_by(code) == "[]"


def test_help_of_each_command_loads_nothing_heavy():
    names = ("demo", "plan", "run", "approve", "effects", "eval", "doctor")
    tries = "\n".join(f"try: cli(['{name}', '--help'])\nexcept SystemExit: pass" for name in names)

    assert loaded_by(f"from plangate.cli.main import cli\n{tries}") == "[]"


def test_checking_a_plan_loads_no_graph_no_database_and_no_model(here, plan):
    (here / "plan.json").write_text(json.dumps(plan))
    code = (
        "from plangate.cli.main import cli\n"
        "try: cli(['plan', 'check', 'plan.json', '--agent', 'refund', '--json'])\n"
        "except SystemExit: pass"
    )

    assert loaded_by(code) == "['pydantic', 'yaml']"


def test_the_printed_exit_codes_are_those_of_the_errors():
    classes = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, PlangateError) and each is not PlangateError
    ]

    assert {each.exit_code for each in classes} <= {code for code, _ in EXIT_CODES}


def shell(error):
    @click.group(cls=Shell)
    def cli():
        pass

    @cli.command()
    def go():
        raise error

    return CliRunner().invoke(cli, ["go"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 2),
        (errors.Denied("x"), 9),
        (errors.RunBusy("x"), 7),
        (errors.WaitingForPerson("x"), 11),
        (KeyboardInterrupt(), 130),
        (click.UsageError("x"), 2),
    ],
)
def test_each_error_has_its_exit_code_and_no_traceback(error, code):
    result = shell(error)

    assert result.exit_code == code
    assert "Traceback" not in result.stderr


def test_an_error_is_one_line_and_a_hint():
    result = shell(errors.ConfigError("bad\x1b[2K thing", hint="Mend it."))

    assert result.stderr == "error[config]: bad\\x1b[2K thing\nhint: Mend it.\n"


def test_a_bug_keeps_its_traceback():
    assert isinstance(shell(ZeroDivisionError()).exception, ZeroDivisionError)


@pytest.mark.parametrize("args", [(), ("run",), ("plan",), ("effects",)])
def test_a_group_without_a_command_shows_its_help_as_it_is(call, args):
    result = call(*args, code=2)

    assert result.stderr.startswith("Usage: ")
    assert "\nCommands:\n" in result.stderr


def test_the_summary_of_each_command_fits_its_line(call):
    commands = call("--help").stdout.partition("Commands:")[2]

    assert "..." not in commands


def test_an_issue_is_shown_with_its_hint():
    found = Issue(
        layer=3,
        code="unknown_tool",
        severity="error",
        says="no tool 'x'",
        hint="Name y.",
        step="S1",
    )

    result = shell(errors.PlanRejected((found,)))

    assert "  S1: no tool 'x' [unknown_tool]\n    hint: Name y.\n" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("run", "nonsense"),
        ("run", "show"),
        ("plan", "check", "x"),
        ("plan", "show"),
        ("demo", "refund", "--scenario", "nonsense"),
        ("demo", "nonsense"),
        ("plan", "make", "--agent", "os:path", "--goal", "x"),
        ("plan", "make", "--agent", "nowhere.at.all:x", "--goal", "x"),
        ("plan", "make", "--agent", "refund", "--goal", "x", "--model", "other:x"),
        ("run", "list"),
        ("run", "show", "run_x"),
        ("approve",),
        ("approve", "run_x-q1"),
        ("approve", "--yes", "--reject"),
        ("approve", "x", "--answer", "{"),
        ("effects", "list", "--state", "nonsense"),
        ("run", "list", "--journal", "mysql://x/y"),
        ("run", "list", "--journal", "rubbish"),
        ("run", "start", "--agent", "refund", "--goal", " "),
        ("plan", "make", "--agent", "refund", "--goal", ""),
    ],
)
def test_a_mistake_of_the_caller_exits_2_with_words(call, args):
    result = call(*args, code=2)

    assert result.stderr.startswith("error[")
    assert "hint:" in result.stderr
    assert result.stdout == ""
