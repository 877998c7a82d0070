from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI

from plangate import create_plan_agent, tool
from plangate.agent import load_agent
from plangate.plan.facts import Rights
from tests.door.test_model import CONFIG, GOAL, Notes, draft, keep, kept, notes, view_of
from tests.models.fake_openai import Said, serving

READS = {each.spec.name for each in load_agent("refund").tools if not each.spec.effect.acts}


class Keys:
    """Knows what the shop's clerk may do; rights can be taken away."""

    def __init__(self, rights: Rights) -> None:
        self.now = rights
        self.asked: list[str] = []

    async def rights(self, principal: str, run: object) -> Rights:
        self.asked.append(principal)
        return self.now

    def revoke(self, scope: str) -> None:
        left = tuple(each for each in self.now.scopes if each != scope)
        self.now = self.now.model_copy(update={"scopes": left})


def test_a_scope_revoked_between_approval_and_release_denies_the_effect_and_no_tool_takes_over(
    shop, events
):
    keys = Keys(shop.agent.rights)
    shop.runtime.close()
    shop.runtime = shop.another(authorizer=keys)
    run_id = shop.start("straightforward")
    while shop.runtime.question(run_id)[1].kind != "step":
        shop.answer(run_id)
        list(shop.runtime.advance(run_id))
    shop.answer(run_id)
    keys.revoke("refund:create")

    view = shop.finish(run_id)

    assert shop.world.payments(shop.agent.scenarios["straightforward"].inputs["order_id"]) == []
    assert (view.ended.ending, list(view.plans)) == ("failed", [1])
    assert "needs scope refund:create" in view.ended.why
    tried = {each.capability.partition("@")[0] for each in events(run_id, "attempt_started")}
    assert "create_refund" not in tried
    assert tried <= READS
    assert set(keys.asked) == {shop.agent.rights.principal}


def test_a_scope_that_is_not_there_at_validation_stops_the_plan(shop):
    keys = Keys(shop.agent.rights)
    keys.revoke("refund:create")
    shop.runtime.close()
    shop.runtime = shop.another(authorizer=keys)

    view = shop.runtime.view(shop.start("straightforward"))

    assert "forbidden_tool" in {each.code for each in view.validated[1].issues}
    assert view.ended.ending == "failed"


NO_KEEP = """
schema = 1
[[allow]]
tool = "*"
[[deny]]
tool = "keep"
reason = "notes are frozen"
"""


@tool(effect="write", key="note:{text}", scope="goal")
def stash(text: str) -> Notes:
    """Keep a note elsewhere."""
    kept.append(text)
    return Notes(1)


def test_what_policy_denied_a_draft_no_later_draft_reaches_by_another_tool(tmp_path):
    journal_url = f"sqlite:///{tmp_path}/journal.db"
    kept.clear()

    def agent(fake: Any, policy: str) -> Any:
        model = ChatOpenAI(model="gpt-5-mini", base_url=fake.url, api_key="not-a-key")
        return create_plan_agent(model, [notes, keep, stash], policy=policy, journal=journal_url)

    with serving(Said(content=draft("keep")), Said(content=draft("stash"))) as fake:
        agent(fake, NO_KEEP).invoke(GOAL, CONFIG)

    view = view_of(journal_url)
    found = {
        version: {i.code for i in checked.issues} for version, checked in view.validated.items()
    }
    assert "policy_denied" in found[1]
    assert "denied_before" in found[2]
    assert kept == []
