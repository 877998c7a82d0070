from __future__ import annotations

import pytest
import sqlalchemy as sa

from plangate.journal.artifacts import ref_of
from plangate.journal.schema import ARTIFACTS
from plangate.plan.errors import JournalError
from plangate.plan.value.frozen import freeze

VALUE = {"b": [1, 2.5, None, True], "a": {"ö": "x\u0000\n"}}


def test_a_value_comes_back_under_its_reference(journal):
    ref = journal.artifacts.put(VALUE)

    assert ref.startswith("sha256:")
    assert journal.artifacts.has(ref)
    assert journal.artifacts.get(ref) == VALUE


def test_the_same_value_has_one_reference(journal):
    again = {"a": VALUE["a"], "b": VALUE["b"]}

    assert journal.artifacts.put(VALUE) == journal.artifacts.put(again)
    assert ref_of(freeze(VALUE)) == ref_of(VALUE)


def test_a_missing_value_is_named(journal):
    ref = ref_of(VALUE).ref

    assert not journal.artifacts.has(ref)
    with pytest.raises(JournalError, match="is not in this journal"):
        journal.artifacts.get(ref)


def test_a_value_that_was_changed_from_outside_is_not_believed(journal):
    ref = journal.artifacts.put(VALUE)
    with journal.store.write() as tx:
        tx.execute(sa.update(ARTIFACTS).values(body='{"a":2}'))

    with pytest.raises(JournalError, match="does not have the digest"):
        journal.artifacts.get(ref)


@pytest.mark.parametrize(
    "value", [float("nan"), 2**60, "\ud800", object()], ids=lambda value: type(value).__name__
)
def test_what_has_no_canonical_form_is_refused(journal, value):
    with pytest.raises(JournalError, match="cannot be stored as JSON") as caught:
        journal.artifacts.put({"x": value})

    assert caught.value.hint
