"""README and docs are run: code blocks, pictures, links."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from plangate.cli.main import cli
from plangate.graph.wiring import drawing

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
BLOCKS = [
    pytest.param(match[1], id=f"{page.relative_to(ROOT)}-{n}")
    for page in PAGES
    if page.parent.name != "howto"
    for n, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
]


STORIES = sorted((ROOT / "docs/howto").glob("*.md"))
FENCE = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_python(block, here):
    if file := re.match(r"# file: (\S+)\n", block):
        (here / file[1]).write_text(block, encoding="utf-8")
        return
    shown = StringIO()
    with redirect_stdout(shown):  # in this process, as for commands
        exec(compile(block, "howto", "exec"), {"__name__": "__main__"})  # noqa: S102 - our pages
    wanted = re.findall(r"^(?:print\(.*\)  )?# (.*)$", block, re.MULTILINE)
    assert shown.getvalue().splitlines() == wanted


def run_console(block):
    for words, shown in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
        command, *args = shlex.split(words, comments=True)
        if command == "plangate":  # in this process: a start of Python for each takes its seconds
            done = CliRunner(env={"COLUMNS": "200"}).invoke(cli, args)
            code, said = done.exit_code, done.output
        else:
            ran = subprocess.run(
                ["/bin/sh", "-c", words], capture_output=True, text=True, check=False
            )
            code, said = ran.returncode, ran.stdout + ran.stderr
        wanted = re.search(r"# exit (\d+)$", words)
        assert code == int(wanted[1] if wanted else 0), f"{words}\n{said}"
        for row in shown.splitlines():
            assert row in said, f"{words}\n{said}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A new folder to work in; modules that are written there are forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("PLANGATE_JOURNAL", "PLANGATE_AGENT", "PLANGATE_WORLD", "PLANGATE_PRICES"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.name)
def test_each_howto_can_be_followed_from_top_to_bottom(page: Path, folder: Path):
    for kind, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            run_python(block, folder)
        else:
            run_console(block)


@pytest.mark.parametrize("block", BLOCKS)
def test_each_python_block_runs_and_prints_what_its_comments_say(block: str, tmp_path: Path):
    out = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert out.returncode == 0, out.stderr
    said = re.findall(r"^print\(.*\)\s+# (.*)$", block, re.MULTILINE)
    assert out.stdout.splitlines()[: len(said)] == said


def test_the_readme_example_runs_async_as_well(tmp_path: Path):
    block = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    head, tail = block.split("config = ", 1)
    body = ("config = " + tail).replace("agent.invoke(", "await agent.ainvoke(")
    main = f"async def main():\n{textwrap.indent(body, '    ')}\nasyncio.run(main())"
    code = f"import asyncio\n{head}\n{main}"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == ["selective ['S2']", "pass ['Ann']"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page: Path):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("file", ["docs/reference/graph.md", "examples/refund/graph.mmd"])
def test_the_drawn_loop_is_the_wired_loop(file: str):
    assert drawing().strip() in (ROOT / file).read_text(encoding="utf-8")


def test_the_generated_pages_are_what_the_code_says():
    command = [sys.executable, ROOT / "scripts" / "reference", "--check"]
    out = subprocess.run(command, capture_output=True, text=True, check=False)

    assert out.returncode == 0, out.stderr


def test_each_test_that_the_field_reports_name_is_there():
    text = (ROOT / "docs/discussions/field-reports.md").read_text()

    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)

    gone = [
        f"{file}::{test}" for file, test in named if f"def {test}" not in (ROOT / file).read_text()
    ]
    assert len(named) > 40
    assert gone == []
