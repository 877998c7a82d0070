"""Rules of the house that a linter does not know."""

from __future__ import annotations

import ast
import doctest
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import plangate

ROOT = Path(__file__).parent.parent
ROOMS = (
    "plan", "journal", "budget", "prompts", "models", "tools", "engine", "graph", "nodes",
    "plangate", "examples", "evals",
)  # fmt: skip
"""From left to right: each may import what stands left of it, nothing right of it."""

MAY_IMPORT = {room: set(ROOMS[:n]) for n, room in enumerate(ROOMS)} | {"graph": {"plan", "journal"}}
MAX_LINES = 400
MAX_METHODS = 12
OVER = dict[str, int]()
"""File -> its size today; may only shrink."""

FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
HEAVY = ("langgraph", "langchain_core", "langchain_openai", "langsmith", "openai", "sqlalchemy")


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "plangate" else ("plangate", *parts)).removesuffix(
        ".__init__"
    )


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else parts[0]


every_file = pytest.mark.parametrize("file", FILES, ids=name_of)


@every_file
def test_rooms_point_one_way(file: Path):
    here = file.relative_to(ROOT).parts[0]
    tree = ast.parse(file.read_text(encoding="utf-8"))
    named = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    named += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    used = {room_of(module) for module in named if module.split(".")[0] == "plangate"}

    assert used - {here} <= MAY_IMPORT[here]


@every_file
def test_files_stay_small(file: Path):
    lines = len(file.read_text(encoding="utf-8").splitlines())

    assert lines <= OVER.get(name_of(file), MAX_LINES)


@every_file
def test_classes_stay_small(file: Path):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            methods = [
                each.name
                for each in node.body
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            assert len([each for each in methods if not each.startswith("_")]) <= MAX_METHODS


@every_file
def test_every_module_says_which_rule_it_keeps(file: Path):
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


@every_file
def test_examples_in_docstrings_run(file: Path):
    assert doctest.testmod(importlib.import_module(module_of(file))).failed == 0


def test_the_package_map_names_every_folder():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "setuptools"
    ]
    on_disk = {str(file.parent.relative_to(ROOT)) for file in FILES}

    assert set(table["package-dir"].values()) == on_disk
    assert set(table["packages"]) == set(table["package-dir"])


def test_the_public_names_are_these():
    assert plangate.__all__ == sorted(plangate.__all__)
    assert {name: getattr(plangate, name).__module__ for name in plangate.__all__ if name != "tool"}
    assert set(plangate._HOME) == set(plangate.__all__)


@pytest.mark.parametrize(
    "code",
    [
        "import plangate",
        "import plangate.cli.main",
        "from plangate import Agent, Policy, Plan, tool, ToolContext",
        "from plangate.plan.layers.run import validate",
        "from plangate.agent import load_agent; load_agent('refund')",
    ],
)
def test_what_only_looks_at_plans_loads_nothing_heavy(code: str):
    shown = f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
