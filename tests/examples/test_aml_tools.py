from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from plangate.examples.aml.attacks import ATTACKS
from plangate.examples.aml.bm25 import ranked
from plangate.examples.aml.plant import plant
from plangate.examples.aml.previews import PREVIEWS
from plangate.examples.aml.tools import TOOLS
from plangate.examples.aml.world import AmlWorld
from plangate.plan.effects import effect_key, evidence_of
from plangate.plan.shape.shape import compile_shape
from plangate.plan.value.frozen import thaw
from plangate.tools.answers import ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.registry import Registry

REGISTRY = Registry(TOOLS)
CASE = {"case_id": "CASE-2001", "window_days": 30}
KEY = effect_key(REGISTRY["file_sar_draft"].spec, CASE, "goal").key
TYPOLOGIES = ("structuring", "fan_in", "fan_out", "rapid_movement", "round_trip")


def context_of(world: AmlWorld, key: str | None = KEY) -> ToolContext:
    who = {"run_id": "r", "step": "S1", "attempt_id": "S1-A1", "principal": "ann"}
    return ToolContext(**who, world=world, effect_key=key)  # type: ignore[arg-type]


def called(world: AmlWorld, name: str, key: str | None = KEY, **args: Any) -> dict[str, Any]:
    """Call a tool as the engine does: JSON in, JSON out, both held against the contract."""
    spec = REGISTRY[name].spec
    assert compile_shape(spec.params).accepts(args) == ()
    output = asyncio.run(_awaited(REGISTRY[name].call(args, context_of(world, key))))
    assert isinstance(output, dict)
    assert compile_shape(spec.output).accepts(output) == ()
    return output


async def _awaited(calling: Awaitable[object]) -> object:
    return await calling


def compared(world: AmlWorld, case: dict[str, Any]) -> dict[str, Any]:
    findings = [called(world, "match_typology", typology=each, **case) for each in TYPOLOGIES]
    screening = called(world, "screen_counterparties", **case)
    return called(world, "compare_typologies", findings=findings, screening=screening, **case)


def drafted(world: AmlWorld, case: dict[str, Any] = CASE) -> dict[str, Any]:
    comparison = compared(world, case)
    return called(
        world,
        "draft_sar",
        case=called(world, "query_case", **case),
        profile=called(world, "customer_profile", case_id=case["case_id"]),
        comparison=comparison,
        texts=called(world, "search_typology_texts", query=comparison["query"], most=4),
        consent=True,
    )


def code_of(calling: Callable[[], object]) -> str:
    with pytest.raises(ToolFailed) as failed:
        calling()
    return failed.value.code


def test_every_contract_is_checked_all_the_way_down_and_knows_no_broken_numbers():
    for tool in TOOLS:
        for schema in (tool.spec.params, tool.spec.output):
            assert not compile_shape(schema).unchecked, tool.spec.name
            assert "'number'" not in str(thaw(schema)), tool.spec.name


def test_these_tools_act_and_each_knows_its_effect_by_its_case():
    acting = {each.spec.name: each.spec.key for each in TOOLS if each.spec.effect.acts}

    assert acting == {
        "file_sar_draft": "sar:{case_id}",
        "close_case": "close:{case_id}",
        "send_external": "send:{recipient}:{body}",
        "set_account_status": "status:{account_id}:{status}",
    }


def test_what_outsiders_wrote_is_in_one_result_and_labelled_there(bank_world):
    listed = called(bank_world, "list_transactions", **CASE)
    labels = REGISTRY["list_transactions"].spec.field_labels

    said = str(listed["transactions"])
    assert sum(each[:12] in said for each in ATTACKS) >= 3
    assert {name for name, each in labels.items() if each.integrity == "untrusted"} == {
        "transactions.memo",
        "transactions.other_name",
    }
    others = [compared(bank_world, CASE), drafted(bank_world)]
    assert not any("evil" in str(each) or "\x1b" in str(each) for each in others)


def test_a_list_of_ids_gives_a_reference_each(bank_world):
    found = called(bank_world, "match_typology", typology="structuring", **CASE)

    shown = evidence_of(REGISTRY["match_typology"].spec, CASE, found)

    assert shown == tuple(f"txn://{each}" for each in found["transactions"])
    assert len(shown) == 6


def test_a_draft_of_each_suspicious_case_holds_and_has_six_sections(bank_world):
    suspicious = [each for each in plant(7, attacked=True)[1] if each.typologies]
    for truth in suspicious:
        case = {**CASE, "case_id": truth.case_id}

        draft = drafted(bank_world, case)
        examined = called(bank_world, "check_citations", draft=draft, **case)

        assert (examined["faults"], examined["unknown"], examined["holds"]) == ([], [], True)
        assert len({each["section"] for each in draft["claims"]}) == 6
        assert {each["verdict"] for each in examined["claims"]} == {"supported"}
        assert all(0 < each["confidence_pct"] <= 100 for each in examined["claims"])
        cited = {ref for each in draft["claims"] for ref in each["cites"]}
        planted = {f"txn://{txn}" for ids in truth.typologies.values() for txn in ids}
        assert planted <= cited


def at(draft: dict[str, Any], section: str, **changed: Any) -> dict[str, Any]:
    claims = [dict(each) for each in draft["claims"]]
    claim = next(each for each in claims if each["section"] == section)
    claim |= {name: each(claim) if callable(each) else each for name, each in changed.items()}
    return {"claims": claims}


INVENTED = {
    "an id that there is not": (
        lambda d: at(d, "activity", cites=lambda c: ["txn://T-0000000000", *c["cites"][1:]]),
        "not in the books of this case: txn://T-0000000000",
    ),
    "a transaction of somebody else": (
        lambda d: at(d, "activity", cites=lambda c: ["txn://T-9e3779b97f0", *c["cites"]]),
        "not in the books",
    ),
    "a sum that is one cent off": (
        lambda d: at(d, "activity", total_cents=lambda c: c["total_cents"] + 1),
        "cents, and they add up to",
    ),
    "one transaction too many": (
        lambda d: at(d, "activity", count=lambda c: c["count"] + 1),
        "it counts 7 transactions and cites 6",
    ),
    "one cited twice": (
        lambda d: at(d, "activity", cites=lambda c: [c["cites"][0], *c["cites"]]),
        "it cites something twice",
    ),
    "nothing cited": (lambda d: at(d, "activity", cites=[]), "it cites nothing"),
    "a figure in words": (
        lambda d: at(d, "activity", text="In all EUR 9,999,999.00 moved."),
        "figures that nothing supports: 9,999,999.00",
    ),
    "a figure without a currency": (
        lambda d: at(d, "activity", text="Some 51234 moved."),
        "figures that nothing supports: 51234",
    ),
    "an id in words": (
        lambda d: at(d, "activity", text="T-0000000000 is the worst."),
        "names what it does not cite: T-0000000000",
    ),
    "a typology that is not there": (
        lambda d: at(d, "typologies", typology="round_trip"),
        "the rules say round_trip is absent",
    ),
    "control characters": (
        lambda d: at(d, "subject", text="All \x1b[31mfine\u202e."),
        "control characters",
    ),
    "an address": (lambda d: at(d, "subject", text="Ask drop@evil.example."), "an address"),
    "no recommendation": (
        lambda d: {"claims": [c for c in d["claims"] if c["section"] != "recommendation"]},
        "there is no section 'recommendation'",
    ),
}


@pytest.mark.parametrize("name", INVENTED)
def test_what_a_draft_invents_is_named_and_never_filed(bank_world, name):
    change, says = INVENTED[name]
    draft = change(drafted(bank_world))

    examined = called(bank_world, "check_citations", draft=draft, **CASE)
    refused = code_of(lambda: called(bank_world, "file_sar_draft", draft=draft, **CASE))

    assert not examined["holds"]
    assert re.search(re.escape(says), "; ".join(examined["faults"]))
    assert refused == "citations_do_not_hold"
    assert bank_world.results(CASE)["filed"] == []


def test_a_case_is_filed_once_and_found_again_by_its_key(bank_world):
    draft, tool = drafted(bank_world), REGISTRY["file_sar_draft"]
    assert tool.reconcile is not None

    def found() -> Any:
        return asyncio.run(tool.reconcile(KEY, CASE, context_of(bank_world)))  # type: ignore[misc,arg-type]

    before = found()
    first = called(bank_world, "file_sar_draft", draft=draft, **CASE)
    second = called(bank_world, "file_sar_draft", draft=draft, **CASE)

    assert (before.happened, found().happened, found().output) == (False, True, first)
    assert first == second
    assert (first["draft_id"], first["verdict"]) == ("SAR-2001", "suspicious")
    opened = called(bank_world, "open_case", case_id="CASE-2001")
    assert (opened["state"], opened["sha256"]) == ("sar_filed", first["sha256"])
    assert len(bank_world.results(CASE)["filed"]) == 1


@pytest.mark.parametrize(
    ("name", "key", "code"),
    [("close_case", "another", "case_has_ended"), ("close_case", None, "no_effect_key")],
)
def test_a_case_that_has_ended_does_not_end_otherwise(bank_world, name, key, code):
    called(bank_world, "file_sar_draft", draft=drafted(bank_world), **CASE)

    assert code_of(lambda: called(bank_world, name, key, case_id="CASE-2001", reasons=[""])) == code


def test_a_closed_case_keeps_its_reasons_and_is_found_by_its_key(bank_world):
    tool = REGISTRY["close_case"]
    assert tool.reconcile is not None
    args = {"case_id": "CASE-2006", "reasons": ["payroll"]}

    closed = called(bank_world, "close_case", "k", **args)
    found = asyncio.run(tool.reconcile("k", args, context_of(bank_world)))  # type: ignore[arg-type]

    assert closed["verdict"] == "no_suspicion"
    assert found.output == closed
    assert called(bank_world, "open_case", case_id="CASE-2006")["reasons"] == ["payroll"]


def test_the_tempting_tools_work_once_a_key(bank_world):
    for _ in range(2):
        called(bank_world, "send_external", "k1", recipient="x", body="y")
        called(bank_world, "set_account_status", "k2", account_id="ACC-000001", status="cleared")

    assert len(bank_world.results(CASE)["outside"]) == 2
    assert code_of(lambda: called(bank_world, "send_external", None, recipient="x", body="y")) == (
        "no_effect_key"
    )


def test_a_case_that_there_is_not_is_said_to_be_none(bank_world):
    gone = {**CASE, "case_id": "CASE-9999"}

    assert code_of(lambda: called(bank_world, "query_case", **gone)) == "case_not_found"
    assert PREVIEWS["list_transactions"](gone, bank_world) == ()


def test_all_that_is_cited_was_previewed(bank_world):
    truths = {each.name: each for each in plant(7, attacked=True)[1]}
    for truth in (truths["fan_out"], truths["round_trip"], truths["old_record"]):
        case = {**CASE, "case_id": truth.case_id}
        asked = {name: case for name in PREVIEWS if name != "match_typology"}
        asked["customer_profile"] = {"case_id": truth.case_id}
        for name, args in asked.items():
            if name == "compare_typologies":
                shown = compared(bank_world, case)["evidence"]
            else:
                output = called(bank_world, name, **args)
                shown = evidence_of(REGISTRY[name].spec, args, output)
            assert set(shown) <= set(PREVIEWS[name](args, bank_world)), (truth.name, name)
        for typology in TYPOLOGIES:
            args = {"typology": typology, **case}
            output = called(bank_world, "match_typology", **args)
            shown = evidence_of(REGISTRY["match_typology"].spec, args, output)
            assert shown == PREVIEWS["match_typology"](args, bank_world)


def test_texts_are_found_by_their_words_best_first(bank_world):
    found = called(bank_world, "search_typology_texts", query="round trip signs", most=2)

    assert found["refs"][0] == "typology://round_trip-signs"
    assert len(found["refs"]) == 2
    assert ranked("xyzzy", ["nothing of that"]) == []
