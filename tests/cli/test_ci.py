from __future__ import annotations

import re
import shlex
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "howto" / "gate-plans-in-ci.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_commands_of_the_page_exit_as_it_says(call, here):
    (here / "policy.toml").write_text('schema = 1\n[[allow]]\ntool = "query_order"\n')
    lines = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8"))).splitlines()
    commands = [line for line in lines if line.startswith("plangate ")]
    said = {}
    for line in commands:
        exit_4 = re.search(r"# exit (\d+)$", line)
        code = int(exit_4[1]) if exit_4 else 0
        said[line] = call(*shlex.split(line, comments=True)[1:], code=code).stdout

    assert len(commands) == 9
    assert any("amount_cents is larger" in text or "amount_cents" in text for text in said.values())
