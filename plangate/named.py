"""Which run a name means: a run's own id, or the id of one of its questions.

A run id is the host's to choose and may look like a question's, so what the journal holds decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from plangate.journal.lease import unknown_run
from plangate.journal.view import fold
from plangate.plan.errors import ConfigError

if TYPE_CHECKING:
    from plangate.journal.journal import Journal
    from plangate.journal.runs import Run

_QUESTION = re.compile(r"(.+)-q[0-9]+", re.DOTALL)
"""How `plangate.nodes.question` writes the id of a question of a run."""


def run_ids_in(name: str) -> tuple[str, ...]:
    """Return the ids of runs that a name may mean, the likelier first."""
    asked = _QUESTION.fullmatch(name)
    return (name,) if asked is None else (asked[1], name)


def run_asking(question_id: str) -> str:
    """Return the id of the run that asks a question."""
    asked = _QUESTION.fullmatch(question_id)
    assert asked is not None, f"{question_id!r} is the id of a question"  # noqa: S101 (we made it)
    return asked[1]


def run_named(journal: Journal, name: str) -> Run:
    """Return the run that has this id, or asks this question.

    Raises:
        ConfigError: There is none, or one run has the id and another one asks the question.
    """
    found = [run for run in map(journal.runs.find, run_ids_in(name)) if run is not None]
    if not found:
        raise unknown_run(run_ids_in(name)[0])
    if len(found) == 1:
        return found[0]
    asker, run = found
    if name not in fold(journal.log.read(asker.run_id)).questions:
        return run
    raise ConfigError(
        f"{name!r} is a run, and a question of run {asker.run_id!r}",
        hint=f"Name a question of the run ({name}-q1), or run {asker.run_id} for its question.",
    )
