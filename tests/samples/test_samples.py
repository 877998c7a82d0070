from __future__ import annotations

from collections import Counter

import pytest

from plangate.plan.issue import Issue, Report
from plangate.plan.layers.run import read_plan
from plangate.plan.value.plan import Plan
from tests.samples.cases import BAD, Expect, Sample, base, samples

FAULTY = [sample for name in BAD for sample in samples(name)]
KNOWN = {each.id: pytest.mark.xfail(reason=each.xfail) for each in FAULTY if each.xfail}
EACH = [pytest.param(each, id=each.id, marks=KNOWN.get(each.id, ())) for each in FAULTY]
SOUND = samples("sound")


@pytest.mark.parametrize("sample", EACH)
def test_a_bad_plan_is_refused_at_its_layer_and_for_its_fault_alone(sample: Sample):
    report = sample.report()

    assert not report.valid
    said = Counter((each.layer, each.code, each.step) for each in report.errors)
    assert said == Counter((each.layer, each.code, each.step) for each in sample.errors)
    for expect in sample.errors:
        assert any(explains(issue, expect) for issue in report.errors), report.errors


@pytest.mark.parametrize("sample", SOUND, ids=lambda sample: sample.id)
def test_a_sound_plan_is_not_refused(sample: Sample):
    report = sample.report()

    assert report.errors == ()
    assert report.valid
    assert sorted({each.code for each in report.warnings}) == sorted(sample.warns)
    assert all(each.says and each.hint for each in report.issues)


@pytest.mark.parametrize("name", ["refund", "refund-template", "migration", "aml"])
def test_each_base_has_no_finding_at_all(name: str):
    report = Sample(id=name, base=name).report()

    assert report.issues == ()
    assert report.missing_verifiers == ()
    assert report.not_evaluated == ()


def test_there_are_enough_samples_of_each_kind_and_none_twice():
    counts = {name: len(samples(name)) for name in BAD}
    ids = [sample.id for sample in (*FAULTY, *SOUND)]
    plans = [read_plan(sample.source) for sample in SOUND]
    whole = {plan.model_dump_json() for plan in plans if isinstance(plan, Plan)}

    assert counts["structure"] >= 16
    assert counts["dependency"] >= 16
    assert counts["business"] >= 20
    assert sum(counts.values()) >= 60
    assert len(SOUND) >= 60
    assert len(set(ids)) == len(ids)
    assert len(whole) == len(SOUND)


def test_the_bad_samples_reach_every_layer_of_the_validator():
    layers = Counter(sample.expect[0].layer for sample in FAULTY)

    assert set(layers) == {1, 2, 3, 4, 5, 6, 7}
    assert all(sample.says for sample in FAULTY)


def test_a_patch_of_a_sample_leaves_its_base_alone():
    before = base("aml")

    for sample in FAULTY:
        sample.report()

    assert base("aml") == before


def explains(issue: Issue, expect: Expect) -> bool:
    """True if this is the finding, in words that name the thing and the way out."""
    named = expect.names or (expect.step or "",)
    is_it = (issue.layer, issue.code, issue.step) == (expect.layer, expect.code, expect.step)
    return is_it and all(name in issue.says for name in named) and bool(issue.hint.strip())


def shown(report: Report) -> str:
    return "\n".join(
        f"{each.layer} {each.code} {each.step} {each.field}: {each.says}" for each in report.issues
    )
