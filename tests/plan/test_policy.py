from __future__ import annotations

import textwrap

import pytest

from plangate.plan import policy as policy_module
from plangate.plan.catalog import Effect, ToolSpec
from plangate.plan.errors import ConfigError
from plangate.plan.facts import Rights
from plangate.plan.policy import Policy

OBJECT = {"type": "object"}
READ = ToolSpec(name="look", summary="s", effect=Effect.READ, params=OBJECT, output=OBJECT)
PAY = ToolSpec(
    name="pay",
    summary="s",
    effect=Effect.IRREVERSIBLE,
    params=OBJECT,
    output=OBJECT,
    key="pay:{to}",
    scope="global",
)
CLERK = Rights(principal="ann", roles=("clerk",))
GUEST = Rights(principal="bob")
RULES = """
schema = 1
[[allow]]
tool = "*"
effects = ["read"]
[[allow]]
tool = "pay"
roles = ["clerk", "boss"]
"""
NO_PAY = '[[deny]]\ntool = "pay"\nreason = "frozen until May"\n'
LIMIT = '[[threshold]]\ntool = "pay"\narg = "cents"\nover = 100\nreason = "limit"\n'


def example() -> str:
    said = policy_module.__doc__ or ""
    return textwrap.dedent(said[said.index("    schema = 1") :])


def test_the_file_in_the_docstring_is_a_policy():
    policy = Policy.from_toml(example())

    assert policy.requires[0].ancestors == ("verify_eligibility", "human:customer")
    assert str(policy.limits.run.max_usd) == "2.00"
    assert Policy.from_toml(example()).content_hash == policy.content_hash


@pytest.mark.parametrize(
    ("spec", "rights", "allowed"),
    [(READ, GUEST, True), (PAY, CLERK, True), (PAY, GUEST, False)],
)
def test_a_rule_allows_by_whole_name_effect_and_role(spec, rights, allowed):
    assert (Policy.from_toml(RULES).permits(spec, rights) is None) == allowed


def test_what_no_rule_allows_is_denied_and_the_reason_says_so():
    assert Policy.from_toml("schema = 1").permits(READ, CLERK) == (
        "no rule allows 'look' (read) for roles: clerk"
    )


def test_a_denial_wins_wherever_it_stands():
    before = RULES.replace("schema = 1", "schema = 1\n" + NO_PAY)

    assert Policy.from_toml(RULES + NO_PAY).permits(PAY, CLERK) == "frozen until May"
    assert Policy.from_toml(before).permits(PAY, CLERK) == "frozen until May"


def test_the_name_of_one_tool_never_covers_another():
    rules = Policy.from_toml('schema = 1\n[[allow]]\ntool = "pay"')
    longer = PAY.model_copy(update={"name": "pay_all"})

    assert rules.permits(longer, CLERK) is not None


@pytest.mark.parametrize(
    ("args", "asks"),
    [({"cents": 100}, False), ({"cents": 101}, True), ({"cents": "9"}, True), ({}, False)],
)
def test_a_real_amount_over_its_threshold_needs_a_person(args, asks):
    said = Policy.from_toml(RULES + LIMIT).over_threshold("pay", args)

    assert (said is not None) == asks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema = 1\nx =", "not TOML.*line 2|not TOML.*end of document"),
        ("x = 1", "no `schema = 1`"),
        ("schema = 2", "no `schema = 1`"),
        ("schema = 1\nconstants = []\nextra = 1", "line 3: extra: unknown key"),
        ('schema = 1\n[[allow]]\ntool = "pay*"', "line 3: allow.0.tool"),
        ('schema = 1\n[[allow]]\ntool = "a"\n[[allow]]\ntool = "b"\nrole = []', "line 6.*unknown"),
        ('schema = 1\n[[allow]]\ntool = "a"\neffects = ["all"]', "line 4: allow.0.effects"),
        ("schema = 1\nallows = []", "line 2: unknown key 'allows'"),
        ('schema = 1\n[tiers]\nauto_usd = "-1"', "line 3: tiers.auto_usd"),
        ("schema = 1\napproval_ttl_s = 0", "line 2: approval_ttl_s"),
        ('schema = 1\n[[threshold]]\ntool="a"\narg="b"\nover = nan', "line 5: threshold.0.over"),
        ("schema = 1\nconstants = [90071992547409930]", "policy: "),
        ('schema = 1\n[[quorum]]\ntool = "a"\nn = 1', "line 4: quorum.0.n"),
        ('schema = 1\n[[label]]\ntool = "a"\nintegrity = "bad"', "line 4: label.0.integrity"),
        ('schema = 1\n[[label]]\ntool = "a"\nconfidentiality = ["untrusted"]', "line 4: label"),
        ('schema = 1\n[autonomy]\nmax_effect = "all"', "line 3: autonomy.max_effect"),
        ("schema = 1\n[autonomy]\nmax_step = 3", "line 3: autonomy.max_step: unknown key"),
    ],
)
def test_a_bad_file_is_refused_as_a_whole_with_the_line(text, says):
    with pytest.raises(ConfigError, match=says) as caught:
        Policy.from_toml(text)

    assert caught.value.hint


def test_every_change_of_a_rule_changes_the_hash():
    changed = {Policy.from_toml(RULES + more).content_hash for more in ("", NO_PAY, LIMIT)}

    assert len(changed) == 3


OURS = Rights(principal="ann", tenant="eu")
THEIRS = Rights(principal="bob", tenant="us")
FOR_EU = 'schema = 1\n[[allow]]\ntool = "*"\ntenants = ["eu"]\n'


@pytest.mark.parametrize(
    ("tenants", "text", "rights", "says"),
    [
        ((), FOR_EU, OURS, None),
        ((), FOR_EU, THEIRS, "'look' is allowed for eu, and the principal is of tenant 'us'"),
        ((), FOR_EU, GUEST, "'look' is allowed for eu, and the principal is of no tenant"),
        (("eu",), 'schema = 1\n[[allow]]\ntool = "*"', OURS, None),
        (("eu",), 'schema = 1\n[[allow]]\ntool = "*"', THEIRS, "'look' is for eu"),
        (("us",), FOR_EU, OURS, "'look' is for us"),
        ((), FOR_EU + '[[allow]]\ntool = "look"', THEIRS, None),
    ],
)
def test_a_tool_is_for_the_tenants_that_contract_and_policy_name(tenants, text, rights, says):
    spec, policy = READ.model_copy(update={"tenants": tenants}), Policy.from_toml(text)

    refusal = policy.permits(spec, rights)

    assert refusal == policy.wrong_tenant(spec, rights)
    assert (refusal is None) is (says is None)
    assert says is None or says in (refusal or "")


def test_a_tool_that_no_rule_speaks_of_is_denied_and_not_a_matter_of_tenants():
    policy = Policy.from_toml(FOR_EU.replace("*", "other"))

    assert policy.wrong_tenant(READ, THEIRS) is None
    assert policy.permits(READ, THEIRS) == "no rule allows 'look' (read) for roles: none"


@pytest.mark.parametrize(
    ("tools", "people"),
    [((), 1), (("look",), 1), (("pay",), 3), (("wire", "pay"), 3), (("wire",), 2)],
)
def test_the_largest_quorum_of_the_tools_in_use_counts(tools, people):
    text = RULES + '[[quorum]]\ntool = "pay"\nn = 3\nroles = ["boss"]\n'
    policy = Policy.from_toml(text + '[[quorum]]\ntool = "wire"\nn = 2\n')

    assert policy.quorum_for(tools) == people


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[limits.run]\nmax_replans = 3\nmax_usd = "-1"', "line 4: limits.run.max_usd: "),
        ("[limits.step]\n\nmax_tool_calls = 1.5", "line 4: limits.step.max_tool_calls: "),
        ("[limits.step]\nmax_seconds = 0", "line 3: limits.step.max_seconds: "),
        ("[limits.day]\nmax_seconds = 5", "line 3: limits.day.max_seconds: unknown key"),
        ("[limits.week]\nmax_usd = 5", "line 2: limits.week: unknown key"),
        ("[limits.run]\ndeadline = 2026-01-01T00:00:00", "line 3: limits.run.deadline: "),
        ('[limits.day]\nmax_usd = "nan"', "line 3: limits.day.max_usd: "),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_with_its_line(text, says):
    with pytest.raises(ConfigError) as caught:
        Policy.from_toml(f"schema = 1\n{text}\n")

    assert says in str(caught.value)
    assert caught.value.hint


def test_the_old_name_of_the_caps_of_a_run_leads_to_the_new_one():
    with pytest.raises(ConfigError, match="line 2: unknown key 'budget'") as caught:
        Policy.from_toml('schema = 1\n[budget]\nmax_usd = "1"\n')

    assert caught.value.hint == "Write [limits.run]."
