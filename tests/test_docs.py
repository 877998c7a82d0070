"""README and docs are run: code blocks, pictures, links."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from plangate.graph.wiring import drawing

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("examples/*/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
BLOCKS = [
    pytest.param(match[1], id=f"{page.relative_to(ROOT)}-{n}")
    for page in PAGES
    for n, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
]


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
