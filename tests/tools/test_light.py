from __future__ import annotations

import subprocess
import sys

HEAVY = "langchain langchain_core langgraph sqlalchemy openai tiktoken"


def test_importing_tools_loads_no_heavy_package():
    code = (
        "import sys, plangate.tools.registry; "
        f"print([name for name in '{HEAVY}'.split() if name in sys.modules])"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"
