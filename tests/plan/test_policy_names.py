from __future__ import annotations

import pytest

from plangate.plan.errors import ConfigError
from plangate.plan.policy import Policy
from plangate.plan.policy_names import need_known
from tests.door.ledgers import look, mail, pay

TOOLS = {each.spec.name: each.spec for each in (look, pay, mail)}
HEAD = 'schema = 1\n[[allow]]\ntool = "*"\n'


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ('[[allow]]\ntool = "lok"\n', r"\[\[allow\]\] tool 'lok' \(near: look\)"),
        ('[[deny]]\ntool = "pays"\n', r"\[\[deny\]\] tool 'pays' \(near: pay\)"),
        ('[[require]]\nbefore = "pai"\nancestors = ["look"]\n', r"before 'pai'"),
        ('[[require]]\nbefore = "pay"\nancestors = ["loook"]\n', r"ancestors 'loook'"),
        ('[[require]]\nbefore = "pay"\nfollowed_by = ["zzz"]\n', r"followed_by 'zzz'"),
        ('[[threshold]]\ntool = "pay"\narg = "cent"\nover = 5\n', "arg 'cent' of pay .*cents"),
        ('[[threshold]]\ntool = "payy"\narg = "cents"\nover = 5\n', r"\[\[threshold\]\] tool"),
        ('[[quorum]]\ntool = "payy"\nn = 2\n', r"\[\[quorum\]\] tool 'payy'"),
        ('[[quorum]]\ntool = "model"\nn = 2\n', r"\[\[quorum\]\] tool 'model'"),
        ('[[threshold]]\ntool = "model"\narg = "x"\nover = 5\n', r"\[\[threshold\]\] tool 'model'"),
    ],
)
def test_a_rule_for_what_is_not_there_is_refused_with_key_and_nearest_name(rule, says):
    with pytest.raises(ConfigError, match=says):
        need_known(Policy.from_toml(HEAD + rule), TOOLS)


def test_all_wrong_names_are_told_at_once():
    text = HEAD + '[[deny]]\ntool = "a"\n[[deny]]\ntool = "b"\n'

    with pytest.raises(ConfigError, match=r"'a'.*'b'"):
        need_known(Policy.from_toml(text), TOOLS)


def test_people_and_kinds_of_step_are_no_tools_and_pass():
    text = HEAD + '[[deny]]\ntool = "model"\n[[label]]\ntool = "model"\nintegrity = "untrusted"\n'
    need_known(Policy.from_toml(text), TOOLS)
    text = HEAD + '[[require]]\nbefore = "pay"\nancestors = ["human:customer", "look"]\n'

    need_known(Policy.from_toml(text), TOOLS)
