from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from plangate.cli.main import cli

INPUTS = ("--input", "order_id=ORD-B7K2M9Q4", "--input", "line=1", "--input", "amount_cents=6450")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("PLANGATE_JOURNAL", "PLANGATE_AGENT", "PLANGATE_WORLD", "PLANGATE_PRICES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def call(here):
    def run(*args, stdin="", code=0):
        result = CliRunner().invoke(cli, args, input=stdin)
        said = result.stdout + result.stderr
        assert result.exit_code == code, f"{said}\n{result.exception!r}"
        return result

    return run


@pytest.fixture
def plan(call):
    """The plan that the refund template makes, as JSON data."""
    made = call("plan", "make", "--agent", "refund", "--goal", "Refund it", *INPUTS, "--json")
    return json.loads(made.stdout)


@pytest.fixture
def start(here):
    """Start a real `plangate` process in the same directory; killed at the end if it hangs."""
    started = []

    def run(*args, **more):
        process = subprocess.Popen(
            [sys.executable, "-m", "plangate.cli", *args],
            cwd=here,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **more},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def waiting(call):
    """A run of the refund agent that waits for the operator's approval."""
    said = call(
        "run", "start", "--agent", "refund", "--goal", "Refund it", *INPUTS, "--json", code=11
    )
    return json.loads(said.stdout)
