"""Owners that are other processes of this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SAYS = "from plangate.journal.owner import owner_name as n; print(n(), flush=True); input()"


@dataclass(frozen=True)
class Other:
    """An owner in a process that does nothing, as one that is frozen."""

    name: str
    process: subprocess.Popen[str]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def beside() -> Iterator[Other]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SAYS], stdin=-1, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    other = Other(process.stdout.readline().strip(), process)
    yield other
    other.end()
