"""What an answer is held against: the run, the plan and the rules as they stand when it comes.

Answers come to the owner of the run and to processes that only record them; both see the same case,
so that what one accepts the other accepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from plangate.graph.fallout import Fallout
from plangate.journal.plans import read_plan
from plangate.journal.questions import (
    QuestionAsked,
)
from plangate.journal.runs import Run
from plangate.journal.session import Session
from plangate.journal.view import RunView
from plangate.nodes.kit import Kit
from plangate.plan.catalog import Catalog
from plangate.plan.facts import Facts
from plangate.plan.outcome import OVER
from plangate.plan.value.frozen import Json
from plangate.plan.value.plan import Plan
from plangate.plan.value.refs import leaves


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question of one run.

    Args:
        kit: The agent's contracts and rules.
        run: The run.
        look: Folds its log; called only if the content of an answer has to be looked at.
        load: Reads an artifact of the journal.
        question: What is asked.
    """

    kit: Kit
    run: Run
    look: Callable[[], RunView]
    load: Callable[[str], JsonValue]
    question: QuestionAsked

    @classmethod
    def of(cls, session: Session, kit: Kit, question: QuestionAsked) -> Case:
        """Return the case as the owner of the run sees it."""
        return cls(
            kit=kit,
            run=session.run,
            look=lambda: session.view,
            load=session.load,
            question=question,
        )

    @cached_property
    def view(self) -> RunView:
        """The run as its log says."""
        return self.look()

    @cached_property
    def plan(self) -> Plan:
        """The version that the question shows."""
        return self.version(self.question.plan_version)

    @cached_property
    def catalog(self) -> Catalog:
        """The contracts that the run's principal sees now."""
        return self.kit.catalog(self)

    @cached_property
    def settled(self) -> frozenset[str]:
        """Steps that have ended well, or will not run any more."""
        return frozenset(s for s, each in self.view.steps.items() if each.status in OVER)

    @cached_property
    def fallout(self) -> Fallout:
        """What denying a step takes with it."""
        return Fallout(self.plan, self.catalog, self.settled)

    @property
    def can_use_comments(self) -> bool:
        """True if a planner is set up that can read what a person writes."""
        return self.kit.model is not None

    def version(self, number: int) -> Plan:
        """Load a version of the plan."""
        return read_plan(self.view, self.load, number)

    def inputs(self) -> dict[str, JsonValue]:
        """Return the inputs of the run, as they are after all changes so far."""
        given = self.load(self.view.inputs)
        return {**(given if isinstance(given, dict) else {}), **self.view.inputs_changed}

    def facts(self, plan: Plan) -> Facts:
        """Gather what validation may know about a version that is not proposed yet."""
        return self.kit.facts(self, self.kit.estimate(self, plan))

    def literals(self) -> list[Json]:
        """Return what all accepted versions say; it has its source already."""
        return [
            value
            for version, checked in self.view.validated.items()
            if checked.valid
            for value in literals_of(self.version(version))
        ]


def literals_of(plan: Plan) -> list[Json]:
    """Return each value in the arguments of a plan's steps and checks."""
    checks = [*plan.success_criteria, *(check for step in plan.steps for check in step.success)]
    given = [*(step.args for step in plan.steps), *(check.args for check in checks)]
    return [leaf for args in given for _, leaf in leaves(args)]
