from __future__ import annotations

from dataclasses import dataclass

from plangate.engine.call import judge_output
from plangate.engine.checks import run_check
from plangate.engine.classify import Failure
from plangate.plan.value.step import Check, Step
from plangate.tools.tool import tool
from tests.engine.conftest import plan_of


@dataclass
class Sum:
    total: int


@tool(effect="read")
def add(first_number: int) -> Sum:
    """Add."""
    return Sum(first_number)


def test_a_result_of_the_wrong_type_is_named_by_its_path():
    got = judge_output(add.spec, {"total": "many"})

    assert got == Failure("unexpected_state", "output_schema", "add: total is string, not integer")


async def test_a_check_with_a_wrong_argument_is_unknown_and_names_it(lab):
    args = {"first_number": "one"}
    check = Check(id="c", level="L2", claim="c", rule="observed.total == 1", tool="add", args=args)
    session = lab.session()

    verdict = await run_check(
        lab.bench(session, plan_of(Step(id="A", objective="o", tool="add")), [add]),
        check,
        step=None,
    )

    assert verdict.says == "unknown"
    assert verdict.why == "argument first_number is string, not integer"
