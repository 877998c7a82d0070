"""The brake of one pass: once it is pulled, nothing new is begun, not even another attempt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Brake:
    """Shared by all steps of a pass."""

    final: bool = False
    """True: the run ends here, so what is unknown has to be said now and not at the next pass."""

    _pulled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pulled(self) -> bool:
        """True once nothing may be begun."""
        return self._pulled.is_set()

    def pull(self, *, final: bool = False) -> None:
        """Stop what has not begun."""
        self.final = self.final or final
        self._pulled.set()

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts, unless the brake is pulled before."""
        try:
            await asyncio.wait_for(self._pulled.wait(), seconds)
        except TimeoutError:
            return
