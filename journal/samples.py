"""What calls of earlier runs took, kept per subject when a run ends; what estimates learn from.

A subject is what must be the same for a figure to speak for the next call: a tool of one version;
a model with one prompt and one question. Light: nothing here loads a database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias

from plangate.plan.value.frozen import Frozen

MOST_SAMPLES = 20
"""Calls of one subject that a run keeps; the rest are only counted."""

MOST_SUBJECTS = 200
"""Subjects that a run keeps."""


class Sample(Frozen):
    """What one call took."""

    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0
    usd: Decimal | None = Decimal(0)
    calls: int = 1
    """More than one where the sample is a whole run's."""


class Used(Frozen):
    """What the calls of one subject took in one run."""

    subject: str
    calls: int
    """All of them, also those that left no sample."""

    samples: tuple[Sample, ...]


class Samples(Frozen):
    """What is known of one subject from earlier runs, newest first."""

    samples: tuple[Sample, ...]
    calls: tuple[int, ...]
    """Calls of each run that made any."""


Past: TypeAlias = Mapping[str, Samples]
"""By subject."""

Recall: TypeAlias = Callable[[Collection[str], datetime, datetime], Past]
"""Looks the past of subjects up, between two times; see `plangate.journal.usage.Usages.of`."""
