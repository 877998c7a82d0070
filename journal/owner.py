"""Who holds a run: a name that says enough to tell, on the same machine, whether it is dead.

A name is `host:pid:start:token`. `host` includes the boot and the process namespace, so a process
of another container or of the time before a reboot is never looked up here: it counts as alive
until its lease runs out. `start` tells a reused process id from the first one.
"""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path
from uuid import uuid4

_GONE = frozenset("ZXx")
"""States of /proc/<pid>/stat of a process that runs no more code."""

_START = 19
"""Position of the start time in those fields, in ticks since boot."""


def owner_name() -> str:
    """Return a new name for one holder of a run in this process; no two calls agree."""
    pid = os.getpid()
    stat = _stat(pid)
    start = stat[_START] if stat else "-"
    return f"{_host()}:{pid}:{start}:{uuid4().hex[:12]}"


def is_dead(owner: str) -> bool:
    """Return True only if `owner` names a process of this machine that certainly runs no more."""
    parts = owner.split(":")
    if len(parts) != 4 or parts[0] != _host() or not parts[1].isdecimal():  # noqa: PLR2004
        return False
    pid, start = int(parts[1]), parts[2]
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # it is there, and somebody else's
    stat = _stat(pid)
    # Not readable (no /proc, or hidden): it answered above, so it may well be alive.
    return bool(stat) and (stat[0] in _GONE or start not in ("-", stat[_START]))


def lives_beside(owner: str) -> bool:
    """Return True if `owner` names another process of this machine that is not known to be dead."""
    parts = owner.split(":")
    beside = parts[0] == _host() and parts[1:2] != [str(os.getpid())]
    return beside and not is_dead(owner)


def process_of(owner: str) -> str:
    """Name the process of an owner that lives beside this one, for people: `process 4711`."""
    return f"process {owner.split(':')[1]}"


def _host() -> str:
    name = socket.gethostname().replace(":", "_")
    where = _text("/proc/sys/kernel/random/boot_id") + _namespace()
    return f"{name}.{hashlib.sha256(where.encode()).hexdigest()[:8]}"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat from the state on; nothing where it cannot be read."""
    # The field before is the program's name in parentheses and may hold anything; look behind it.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > _START else []


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
