from __future__ import annotations

import pytest

from plangate.plan.layers.run import validate
from tests.plan.faults import FAULTS, Fault, in_inputs, looped
from tests.plan.workshop import facts, read, sound


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_each_fault_is_found_where_it_is(fault: Fault):
    data = sound()
    fault.change(data)

    report = validate(read(data), facts(**fault.facts))

    said = [
        issue
        for issue in report.issues
        if (issue.code, issue.step, issue.field) == (fault.code, fault.step, fault.at)
    ]
    assert [issue.severity for issue in said][:1] == [fault.severity], report.issues
    assert fault.says in said[0].says
    assert all(issue.says and issue.hint for issue in report.issues)


def test_a_sound_plan_has_no_findings():
    report = validate(read(sound()), facts())

    assert report.issues == ()
    assert report.valid
    assert report.missing_verifiers == ()


@pytest.mark.parametrize("change", [looped, lambda data: in_inputs(data, 3)])
def test_a_sound_step_over_a_list_has_no_findings(change):
    data = sound()
    change(data)

    assert validate(read(data), facts()).issues == ()
