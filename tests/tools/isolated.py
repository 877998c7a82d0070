"""Tools that run in a child process; at the top level of a module, where the child finds them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plangate.tools.answers import Found
from plangate.tools.child import Limits
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Secret
from plangate.tools.tool import tool

SMALL = Limits(cpu_s=1, memory_bytes=1 << 29, open_files=32, output_bytes=2_000, file_bytes=1_000)


@dataclass
class Said:
    said: list[str]


@tool(effect="read", isolated=SMALL)
def misbehave(how: str, where: str = "") -> Said:
    """Do one of the things that a tool should not do."""
    return Said(_HOW[how](where) or [])


def _fill_memory(_: str) -> None:
    bytearray(1 << 31)


def _spin(_: str) -> None:
    while True:
        pass


def _look_around(where: str) -> list[str]:
    os.write(1, b'{"result": {"said": ["forged"]}}\n')
    left = subprocess.Popen(["/bin/sleep", "60"])
    return [
        *sorted(os.environ),
        "folder:" + ",".join(map(str, Path.cwd().iterdir())),
        f"group:{os.getpgrp()}",
        f"left:{left.pid}",
        f"file:{_fault(lambda: Path(where).write_bytes(b'x' * 10_000))}",
        f"files:{_fault(lambda: [os.dup(0) for _ in range(100)])}",
    ]


def _fault(work: Any) -> str:
    try:
        work()
    except OSError as exc:
        return errno.errorcode[exc.errno]
    return ""


def _hang(where: str) -> None:
    left = subprocess.Popen(["/bin/sleep", "60"])
    Path(where).write_text(f"{os.getpid()} {left.pid}")
    time.sleep(60)


_HOW: dict[str, Any] = {
    "fill memory": _fill_memory,
    "spin": _spin,
    "look around": _look_around,
    "answer much": lambda _: ["x" * 10_000],
    "die": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "hang": _hang,
}


def _was_paid(key: str, _args: object, context: ToolContext) -> Found:
    return Found(happened=True, output={"said": [key, str(os.getpid()), context.step]})


@tool(
    effect="irreversible",
    key="pay:{order_id}",
    scope="global",
    scopes=["pay"],
    reconcile=_was_paid,
    isolated=SMALL,
)
async def pay(order_id: str, password: Secret, context: ToolContext) -> Said:
    """Pay, and tell what was handed over."""
    assert context.credential is not None
    context.progress("half way")
    token = context.credential.reveal()
    length = len(password.reveal())
    return Said([order_id, token[:3], str(length), str(context.effect_key), *context.scopes])


@tool(effect="irreversible", key="pay:{how}", scope="global", isolated=SMALL)
def pay_and_die(how: str) -> Said:
    """Act, and die before the answer."""
    return Said(_HOW[how]("") or [])
