"""SIGTERM asks a command to drain; nothing that acts is left behind unseen, however often it comes.

The handler itself only starts a thread: it may have interrupted whoever holds a lock.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from plangate.runtime import Runtime

_FIRST = b"draining: nothing new is begun, and what acts is waited for\n"
_AGAIN = b"still draining: an effect that is broken off would be unknown\n"


@contextmanager
def draining_on_sigterm(runtime: Runtime) -> Iterator[None]:
    """Drain the runtime when SIGTERM comes inside the block; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = threading.Event()

    def drain(number: int, frame: FrameType | None) -> None:
        del number, frame
        os.write(2, _AGAIN if told.is_set() else _FIRST)
        told.set()
        threading.Thread(target=runtime.drain, args=("SIGTERM",), daemon=True).start()

    before = signal.signal(signal.SIGTERM, drain)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
