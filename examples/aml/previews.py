"""What the evidence tools will cite, foretold before a run: pure reading, no draft and no model.

Each function takes the arguments of its tool and the world, and returns evidence references in the
form in which they are cited. It stands on the functions that the tools themselves stand on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from plangate.examples.aml.finding import TYPOLOGIES
from plangate.examples.aml.lookups import refs, screened
from plangate.examples.aml.matching import compared, judged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plangate.examples.aml.books import Subject
    from plangate.examples.aml.world import AmlWorld

Preview: TypeAlias = "Callable[[Mapping[str, Any], AmlWorld], tuple[str, ...]]"


def preview_query_case(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return the case itself, if there is one."""
    return refs("case", [each.case_id for each in _subjects(args, world)])


def preview_customer_profile(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return the customer's record."""
    return refs("kyc", [each.customer_id for each in _subjects(args, world)])


def preview_list_transactions(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return every transaction of the window."""
    return tuple(
        ref
        for each in _subjects(args, world)
        for ref in refs("txn", [row.txn_id for row in world.bank.rows(each)])
    )


def preview_screening(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return the transactions with parties on the watch list."""
    found = [screened(world, each).transactions for each in _subjects(args, world)]
    return refs("txn", [txn for each in found for txn in each])


def preview_comparison(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return all that a draft about the case may cite, beside texts of the library."""
    cited: list[str] = []
    for subject in _subjects(args, world):
        findings = [judged(world, subject, each) for each in TYPOLOGIES]
        cited += compared(world, subject, findings, screened(world, subject)).evidence
    return tuple(cited)


def preview_typology(args: Mapping[str, Any], world: AmlWorld) -> tuple[str, ...]:
    """Return the transactions that one typology is made of, or would be."""
    found = [judged(world, each, args["typology"]) for each in _subjects(args, world)]
    return refs("txn", [txn for each in found for txn in each.transactions])


PREVIEWS: Mapping[str, Preview] = {
    "query_case": preview_query_case,
    "customer_profile": preview_customer_profile,
    "list_transactions": preview_list_transactions,
    "screen_counterparties": preview_screening,
    "compare_typologies": preview_comparison,
    "match_typology": preview_typology,
}
"""By tool. Their arguments stand in the inputs of a plan, so all of it is known beforehand."""


def _subjects(args: Mapping[str, Any], world: AmlWorld) -> tuple[Subject, ...]:
    subject = world.bank.subject(str(args["case_id"]), int(args.get("window_days", 30)))
    return () if subject is None else (subject,)
