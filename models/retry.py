"""When a call of a model is tried again, and after how long. Ours is the only retry there is."""

from __future__ import annotations

from dataclasses import dataclass

from tenacity import RetryCallState, wait_exponential, wait_random

from plangate.models.fault import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call is tried, and how long it waits in between."""

    attempts: int = 3
    first_s: float = 0.5
    """Wait after the first attempt; it doubles, with jitter."""

    most_s: float = 20.0
    patience_s: float = 60.0
    """The longest `Retry-After` that is waited for; a longer one ends the call."""

    def wants(self, got: object) -> bool:
        """True if an attempt failed in a way that another one may not."""
        return isinstance(got, Fault) and got.retry and got.after_s <= self.patience_s

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt: what the provider asks, or longer."""
        fault = state.outcome.result() if state.outcome else None
        asked = fault.after_s if isinstance(fault, Fault) else 0.0
        doubling = wait_exponential(multiplier=self.first_s, max=self.most_s)(state)
        return max(asked, doubling + wait_random(0, self.first_s)(state))
