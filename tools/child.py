"""Tools that are not trusted run in a child process, within limits, and are killed with it.

The child is a fresh interpreter with its own session, an empty folder and none of our environment.
Order and answer are JSON over pipes. It is killed with all that it started when it has answered,
when nobody waits for it any more, and when we die. A child that dies before the tool began has done
nothing; after that, a tool that acts may have acted.

This bounds what a tool uses up and what it inherits. It is no sandbox: the child may read files and
open connections as our user may; for that, run the whole worker in a container.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from plangate.plan.errors import ConfigError
from plangate.tools.answers import NotSent, ToolFailed
from plangate.tools.thread import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.tools.context import ToolContext
    from plangate.tools.credentials import Granted

What: TypeAlias = Literal["call", "reconcile", "status"]

_BOOT = (
    "import json, sys; line = sys.stdin.buffer.readline(); sys.path[:] = json.loads(line)['path']; "
    "from plangate.tools.child_main import main; main(line)"
)
_MOST_LINES = 1_000
_KILLED_WITHIN_S = 5.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call in a child process may use; a call that passes a limit ends.

    Raises:
        ConfigError: A limit is below what the child itself needs.
    """

    memory_bytes: int = 1 << 30
    """Address space, the interpreter and its libraries included."""

    cpu_s: int = 30
    """Seconds of processor time; the tool's `timeout_s` bounds the time on the clock."""

    open_files: int = 64
    file_bytes: int = 10_000_000
    """Largest file that it may write."""

    output_bytes: int = 1_000_000
    """Largest answer; also of all progress together."""

    env: tuple[str, ...] = ()
    """Names of environment variables that it inherits; no others."""

    def __post_init__(self) -> None:
        least = {"memory_bytes": 1 << 27, "cpu_s": 1, "open_files": 16, "output_bytes": 100}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ConfigError(
                    f"limit {name} is {getattr(self, name)}", hint=f"It is {value} at the least."
                )


class ChildDied(OSError):
    """The child process ended without an answer."""


class LimitPassed(Exception):
    """The child process passed one of its limits; another try would pass it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One thing to be done in a child process."""

    tool: str
    """`module:name` under which the tool is found there."""

    limits: Limits
    what: What
    asked: tuple[Any, ...]
    """Plain JSON: what is handed on beside the context."""

    context: ToolContext
    granted: Granted

    def line(self) -> bytes:
        """Return it as one line; it goes through a pipe and is written nowhere else."""
        context, granted = self.context, self.granted
        names = ("run_id", "step", "attempt_id", "principal", "tenant", "scopes", "effect_key")
        order = {
            "path": [os.path.abspath(each) for each in sys.path],  # noqa: PTH100 - "" is the cwd
            "tool": self.tool,
            "what": self.what,
            "asked": self.asked,
            "limits": asdict(self.limits),
            "context": {name: getattr(context, name) for name in (*names, "deadline_s")},
            "credential": granted.credential.reveal() if granted.credential else None,
            "secrets": {ref: each.reveal() for ref, each in granted.secrets.items()},
        }
        return json.dumps(order).encode() + b"\n"


def address_of(name: str, body: Callable[..., Any]) -> str:
    """Return where a child process finds a tool.

    Raises:
        ConfigError: It would not find it, or this system has no such limits.
    """
    module, qualname = body.__module__, body.__qualname__
    if module == "__main__" or "<locals>" in qualname:
        raise ConfigError(
            f"tool {name!r} is isolated, and a child process could not import it",
            hint="Define it at the top level of a module, under its own name.",
        )
    if sys.platform == "win32":
        raise ConfigError(
            f"tool {name!r} is isolated, and Windows has no limits for a process",
            hint="Run it on Linux, or leave isolated= out.",
        )
    return f"{module}:{qualname}"


async def in_child(order: Order) -> Any:
    """Carry an order out in a child process of its own.

    Returns:
        The tool's answer as plain JSON.

    Raises:
        ToolFailed, NotSent: The tool says so, or it was not even begun.
        ChildDied, LimitPassed: The child did not answer.
        Exception: Of the name that the tool raised; an `OSError` where that was one.
    """
    child = _Child(order)
    try:
        return await in_thread(child.run)
    finally:
        child.kill()
        await in_thread(lambda: child.gone.wait(_KILLED_WITHIN_S))


@dataclass(slots=True)
class _Child:
    order: Order
    gone: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    _unwanted: bool = False
    _began: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> Any:
        """Start it, listen until it has answered, and leave nothing of it behind."""
        folder = tempfile.mkdtemp(prefix="plangate-tool-")
        try:
            process = self._start(folder)
            with process:
                try:
                    return self._answer(process)
                finally:
                    self.kill()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self.gone.set()

    def kill(self) -> None:
        """Kill the child and its whole group, now or as soon as it would start."""
        with self._lock:
            self._unwanted = True
            if self._process is not None and not self.gone.is_set():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self, folder: str) -> subprocess.Popen[bytes]:
        names = self.order.limits.env
        with self._lock:
            if self._unwanted:
                raise NotSent("not_started", "nobody waited for it any more")
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                    [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd=folder,
                    env={name: os.environ[name] for name in names if name in os.environ},
                    start_new_session=True,
                )
            except OSError as exc:
                raise NotSent("not_started", f"no child process: {exc.strerror}") from exc
            return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> Any:
        try:
            assert process.stdin is not None  # noqa: S101 - it was asked for
            process.stdin.write(self.order.line())
            process.stdin.flush()  # and left open: its end tells the child that we are gone
        except BrokenPipeError:
            raise self._died(process.wait()) from None
        said = 0
        for _ in range(_MOST_LINES):
            line = self._line(process)
            said += len(line)
            if said > 2 * self.order.limits.output_bytes:
                break
            message = _read(line)
            if "began" in message:
                self._began = True
            elif "progress" in message:
                self.order.context.progress(str(message["progress"]))
            elif "died" in message:
                raise self._died(int(message["died"]))
            elif message:
                return outcome_of(message, began=self._began)
        raise LimitPassed("it reports more progress than it may")

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None  # noqa: S101 - it was asked for
        most = self.order.limits.output_bytes + 100
        line = process.stdout.readline(most)
        if not line:
            raise self._died(process.wait())
        if not line.endswith(b"\n"):
            if len(line) < most:
                raise self._died(process.wait())
            raise LimitPassed(f"its answer is larger than {self.order.limits.output_bytes:,} bytes")
        return line

    def _died(self, code: int) -> Exception:
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if not self._began:
            return NotSent("not_started", f"the child process ended before it began: {how}")
        if code == -signal.SIGXCPU:
            return LimitPassed(f"it used more than {self.order.limits.cpu_s} s of processor time")
        return ChildDied(f"the child process ended without an answer: {how}")


def _read(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line) if line.strip() else {}
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise ChildDied("the child process sent what is no message")
    return message


def outcome_of(message: Mapping[str, Any], *, began: bool) -> Any:
    """Return what the tool returned, or raise what it raised.

    Args:
        message: The child's last.
        began: False where it could not even load the tool.
    """
    if "result" in message:
        return message["result"]
    kind, says = str(message.get("raised", "")), str(message.get("says", ""))
    if "failed" in message:
        evidence = message.get("evidence") or ()
        raise ToolFailed(str(message["failed"]), says, evidence=[str(each) for each in evidence])
    if "not_sent" in message:
        raise NotSent(str(message["not_sent"]), says)
    if not began:
        raise ToolFailed("not_started", f"the tool cannot be loaded: {kind}: {says}")
    if kind == "MemoryError":
        raise LimitPassed("it used more memory than it may")
    base = ChildDied if message.get("of_system") else Exception
    name = kind if _NAME.fullmatch(kind) else "Exception"
    raise type(name, (base,), {})(says)
