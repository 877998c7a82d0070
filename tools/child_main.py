"""The other side of `plangate.tools.child`: a guard, and a worker that runs the tool within limits.

The guard runs no foreign code. It outlives the worker, says how that died, and kills the whole
group as soon as the parent is gone: the kernel would only tell one process of it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
import threading
from dataclasses import asdict, replace
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Never

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.tools.tool import Tool

_PR_SET_PDEATHSIG = 1


def main(line: bytes) -> None:
    """Carry out the order on `line`, answer, and wait to be killed."""
    order = json.loads(line)
    voice, lifeline = os.dup(1), os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    worker = os.fork()
    if worker:
        _guard(worker, lifeline, voice)
    os.close(lifeline)
    _die_with(os.getppid())
    _work(order, voice)


def _guard(worker: int, lifeline: int, voice: int) -> Never:
    """Wait for the parent's end, which may come at any time, and tell of the worker's."""

    def tell() -> None:
        _, status = os.waitpid(worker, 0)
        message = {"died": os.waitstatus_to_exitcode(status)}
        os.write(voice, b"\n" + json.dumps(message).encode() + b"\n")

    threading.Thread(target=tell, daemon=True).start()
    os.read(lifeline, 1)  # never written to again: it ends when the parent does
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _work(order: Mapping[str, Any], voice: int) -> Never:
    lock = threading.Lock()

    def say(message: Mapping[str, Any]) -> None:
        body = memoryview(json.dumps(message, allow_nan=False).encode() + b"\n")
        with lock:
            while body:
                body = body[os.write(voice, body) :]

    _limit(order["limits"])
    try:
        say({"result": _done(order, say)})
    except BaseException as exc:  # noqa: BLE001 - foreign code; whatever it raises is the answer
        say(_told(exc))
    while True:
        signal.pause()


def _done(order: Mapping[str, Any], say: Callable[[Mapping[str, Any]], None]) -> Any:
    from plangate.tools.context import ToolContext  # noqa: PLC0415 - within the limits
    from plangate.tools.credentials import Granted, Secret  # noqa: PLC0415 - as above
    from plangate.tools.tool import plain  # noqa: PLC0415 - as above

    tool = _found(order["tool"])
    secret = None if order["credential"] is None else Secret(order["credential"])
    given = Granted(
        credential=secret, secrets={ref: Secret(each) for ref, each in order["secrets"].items()}
    )

    async def grants(_: tuple[str, ...]) -> Granted:
        return given

    said = {**order["context"], "scopes": tuple(order["context"]["scopes"])}
    context = ToolContext(
        **said, grants=grants, progress=lambda text: say({"progress": str(text)[:2000]})
    )
    say({"began": True})
    result = asyncio.run(getattr(tool, order["what"])(*order["asked"], context))
    return plain(result) if order["what"] == "call" else asdict(result)


def _found(address: str) -> Tool:
    module, _, name = address.partition(":")
    tool: Tool = reduce(getattr, name.split("."), import_module(module))  # type: ignore[assignment]
    return tool if tool.isolated is None else replace(tool.isolated.inside, isolated=None)


def _die_with(parent: int) -> None:
    """Ask the kernel to kill the worker with the guard."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _limit(limits: Mapping[str, int]) -> None:
    cpu_s = limits["cpu_s"]
    for name, soft, hard in (
        (resource.RLIMIT_AS, limits["memory_bytes"], limits["memory_bytes"]),
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"]),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(name, (soft, hard))


def _told(exc: BaseException) -> dict[str, Any]:
    from plangate.plan.secrets import masked  # noqa: PLC0415 - rarely needed
    from plangate.tools.answers import NotSent, ToolFailed  # noqa: PLC0415 - as above

    if isinstance(exc, ToolFailed):
        says = {"says": masked(exc.says)[:2000]}
        return {"failed": exc.code, **says, "evidence": [str(each) for each in exc.evidence]}
    if isinstance(exc, NotSent):
        return {"not_sent": exc.code, "says": masked(exc.says)[:2000]}
    return {
        "raised": type(exc).__name__,
        "says": masked(str(exc))[:2000],
        "of_system": isinstance(exc, OSError),
    }
