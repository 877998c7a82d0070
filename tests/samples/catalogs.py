from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from plangate.agent import load_agent
from plangate.budget.estimate import Known, Spent, estimate
from plangate.budget.prices import PriceBook
from plangate.budget.roles import NOBODY, Role, Roles
from plangate.plan.catalog import ArgRule, Catalog, Effect, Labels, ToolSpec
from plangate.plan.facts import Facts, Rights
from plangate.plan.policy import Policy
from plangate.plan.value.plan import Plan
from plangate.tools.registry import Registry

TEXT, WHOLE, SHARE, YES = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
)
COUNT = {"type": "integer", "minimum": 0}


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name, schema in fields.items() if "default" not in schema],
        "additionalProperties": False,
    }


def one_of(*values: str, **more: Any) -> dict[str, Any]:
    return {"enum": list(values), **more}


def spec(name: str, effect: str, params: Any, output: Any, **contract: Any) -> ToolSpec:
    if Effect(effect).acts:
        contract = {"key": name, "scope": "goal", "reconciles": True, **contract}
    return ToolSpec(
        name=name,
        summary=name.replace("_", " "),
        effect=Effect(effect),
        params=params,
        output=output,
        **contract,
    )


TABLE = {"type": "string", "pattern": "^[a-z_]+$", "maxLength": 63}
MIGRATION = (
    spec(
        "scan_column",
        "read",
        record(table=TABLE, column=TABLE),
        record(
            total_rows=COUNT,
            valid_rows=COUNT,
            anomalous_rows=COUNT,
            orphan_rows=COUNT,
            anomaly_rate=SHARE,
            worst_example={"type": ["string", "null"]},
        ),
        reads=("table:{table}",),
        seconds=45,
    ),
    spec(
        "create_table",
        "write",
        record(table=TABLE, layout=one_of("key_value", "wide", default="key_value")),
        record(table=TABLE, columns={"type": "array", "items": TEXT}),
        undo="drop_table",
        writes=("table:{table}",),
        scopes=("db:write",),
        errors={"table_exists": "business_rejection"},
        seconds=5,
    ),
    spec(
        "drop_table",
        "irreversible",
        record(table=TABLE),
        record(dropped=YES),
        writes=("table:{table}",),
        scopes=("db:write",),
    ),
    spec(
        "clean_rows",
        "write",
        record(
            table=TABLE,
            malformed=one_of("audit", "fail", default="audit"),
            empty=one_of("empty_record", "skip", default="empty_record"),
        ),
        record(audited=COUNT, emptied=COUNT, quarantined=COUNT),
        writes=("table:{table}",),
        scopes=("db:write",),
        seconds=90,
    ),
    spec(
        "copy_rows",
        "write",
        record(
            source=TABLE,
            target=TABLE,
            batch_rows={"type": "integer", "minimum": 1000, "maximum": 100_000},
            limit={"type": ["integer", "null"], "minimum": 1, "default": None},
        ),
        record(copied=COUNT, batches=COUNT, conflicts=COUNT, target=TABLE),
        reads=("table:{source}",),
        writes=("table:{target}",),
        scopes=("db:write",),
        errors={"batch_failed": "permanent", "lock_timeout": "transient"},
        seconds=30,
        usd=Decimal("0.02"),
    ),
    spec(
        "add_foreign_key",
        "write",
        record(table=TABLE, parent=TABLE),
        record(constraint=TEXT, valid=YES),
        writes=("table:{table}",),
        scopes=("db:write",),
        errors={"orphan_rows": "permanent"},
    ),
    spec(
        "switch_reads",
        "write",
        record(column=TABLE, to=one_of("old", "new")),
        record(reads_from=one_of("old", "new")),
        undo="switch_reads",
        writes=("read_path:{column}",),
        scopes=("db:write",),
    ),
    spec("count_rows", "read", record(table=TABLE), record(table=TABLE, rows=COUNT)),
    spec(
        "compare_rows",
        "read",
        record(old=TABLE, new=TABLE, sample={"type": "integer", "minimum": 1, "maximum": 10_000}),
        record(sampled=COUNT, equal=COUNT, share=SHARE),
        seconds=20,
    ),
    spec("explain_query", "read", record(table=TABLE), record(index_used=YES, plan=TEXT)),
    spec("read_load", "read", record(), record(qps=SHARE, drop=SHARE)),
    spec(
        "page_team",
        "irreversible",
        record(team=one_of("dba", "web"), text=TEXT),
        record(ticket=TEXT),
        external=True,
        reconciles=False,
    ),
    spec("price_of_copy", "read", record(rows=COUNT), record(usd=SHARE), usd=None),
    spec(
        "purge_backups", "irreversible", record(table=TABLE), record(gone=YES), scopes=("db:own",)
    ),
)
AML = (
    spec(
        "load_case",
        "read",
        record(case_id=TEXT),
        record(
            case_id=TEXT,
            customer_id=TEXT,
            account_id=TEXT,
            window_days={"type": "integer", "minimum": 1, "maximum": 365},
            risk=one_of("low", "medium", "high"),
            previous_sar={"type": ["string", "null"]},
        ),
        labels=Labels(confidentiality=("pii",)),
        scopes=("cases:read",),
    ),
    spec(
        "list_transactions",
        "read",
        record(
            account_id=TEXT,
            days={"type": "integer", "minimum": 1, "maximum": 365},
            direction=one_of("in", "out", "both", default="both"),
        ),
        record(
            count=COUNT,
            total_cents=WHOLE,
            memo=TEXT,
            counterparty={"type": "string", "default": ""},
            transactions={
                "type": "array",
                "items": record(tx_id=TEXT, amount_cents=WHOLE, memo=TEXT),
            },
        ),
        labels=Labels(integrity="untrusted", confidentiality=("pii",)),
        scopes=("cases:read",),
        errors={"account_closed": "business_rejection"},
    ),
    spec(
        "match_typology",
        "read",
        record(
            case_id=TEXT,
            typology=one_of("structuring", "mule", "layering"),
            floor={"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        ),
        record(
            typology=one_of("structuring", "mule", "layering"),
            score=SHARE,
            matched=YES,
            cited={"type": "array", "items": TEXT},
        ),
    ),
    spec("plain_text", "none", record(text=TEXT), record(text=TEXT)),
    spec("sum_up", "none", record(count=COUNT, total_cents=WHOLE), record(line=TEXT, large=YES)),
    spec(
        "draft_sar",
        "read",
        record(
            case_id=TEXT,
            typology=TEXT,
            cited={"type": "array", "items": TEXT},
            sections={"type": "integer", "minimum": 1, "maximum": 12},
        ),
        record(draft_id=TEXT, sections=WHOLE, cited={"type": "array", "items": TEXT}),
        seconds=20,
        usd=Decimal("0.066"),
        output_tokens=3600,
    ),
    spec("check_citations", "read", record(draft_id=TEXT), record(valid=YES, missing=COUNT)),
    spec(
        "file_sar",
        "irreversible",
        record(case_id=TEXT, draft_id=TEXT, channel=one_of("fiu", "test", default="fiu")),
        record(filing_id=TEXT),
        external=True,
        key="sar:{case_id}",
        writes=("case:{case_id}",),
        scopes=("sar:file",),
        errors={"fiu_refused": "business_rejection"},
    ),
    spec(
        "read_filing",
        "read",
        record(case_id=TEXT),
        record(filed=YES, draft_id={"type": ["string", "null"]}),
    ),
    spec(
        "note_case",
        "write",
        record(case_id=TEXT, text=TEXT),
        record(note_id=TEXT),
        writes=("notes:{case_id}",),
        arg_rules={"text": ArgRule(max_confidentiality=("pii",))},
    ),
    spec(
        "set_account_status",
        "write",
        record(account_id=TEXT, status=one_of("open", "watched", "frozen")),
        record(account_id=TEXT, status=one_of("open", "watched", "frozen")),
        undo="set_account_status",
        writes=("account:{account_id}",),
        arg_rules={"account_id": ArgRule(requires_trusted=True)},
        scopes=("accounts:write",),
    ),
    spec(
        "send_external",
        "irreversible",
        record(recipient=TEXT, body=TEXT),
        record(message_id=TEXT),
        external=True,
        arg_rules={
            "recipient": ArgRule(requires_trusted=True),
            "body": ArgRule(max_confidentiality=()),
        },
        scopes=("mail:send",),
    ),
    spec("read_mailbox", "read", record(message_id=TEXT), record(sent=YES)),
)
MIGRATION_POLICY = """
schema = 1
constants = [1000, 100000, "users", "user_preferences", "preferences_json", "new", 10000]
[[allow]]
tool = "*"
roles = ["dba"]
[[allow]]
tool = "*"
effects = ["read"]
roles = ["auditor"]
[[deny]]
tool = "page_team"
roles = ["night"]
reason = "nobody is paged at night"
[[require]]
before = "copy_rows"
ancestors = ["scan_column"]
reason = "data is looked at before it is moved"
[[require]]
before = "switch_reads"
ancestors = ["copy_rows", "human:engineer"]
followed_by = ["compare_rows"]
reason = "readers move last, and are compared with the old table"
[limits.run]
max_usd = "0.50"
"""
AML_POLICY = """
schema = 1
constants = ["structuring", 6]
[[allow]]
tool = "*"
roles = ["investigator"]
[[deny]]
tool = "send_external"
roles = ["trainee"]
reason = "trainees write to nobody"
[[require]]
before = "file_sar"
ancestors = ["load_case", "check_citations", "human:reviewer"]
followed_by = ["read_filing"]
reason = "a person signs each report, and its citations are checked before"
[limits.run]
max_usd = "1.00"
max_tokens = 60000
"""


@dataclass(frozen=True)
class Desk:
    """Who checks a plan, against what."""

    specs: tuple[ToolSpec, ...]
    rights: Rights
    policy: str

    def facts(self, plan: Plan | None = None, change: Mapping[str, Any] | None = None) -> Facts:
        """`change` may give roles, scopes, spent_usd, step_model, and more policy text."""
        said = dict(change or {})
        spent = Spent(Decimal(said.pop("spent_usd", "0")), said.pop("spent_tokens", 0))
        policy = Policy.from_toml(said.pop("policy", self.policy) + said.pop("more_policy", ""))
        model = said.pop("step_model", None)
        who = replace_rights(self.rights, said)
        catalog = Catalog.of(self.specs, who.scopes)
        roles = NOBODY if model is None else Roles(step=Role(model=model, prompt="Work."))
        known = Known(catalog=catalog, book=PriceBook({}), roles=roles, now=TODAY)
        priced = plan and estimate(plan, known, spent)
        return Facts(
            catalog=catalog,
            rights=who,
            policy=policy,
            estimate=priced or None,
            step_model=model,
            now=TODAY,
        )


def replace_rights(rights: Rights, said: Mapping[str, Any]) -> Rights:
    return rights.model_copy(update={name: tuple(value) for name, value in said.items()})


TODAY = datetime(2026, 11, 30, tzinfo=UTC)


@cache
def desk(name: str) -> Desk:
    return {"refund": _refund, "migration": _migration, "aml": _aml}[name]()


def with_specs(name: str, **versions: str) -> Desk:
    """The same desk after tools were released anew: version by tool."""
    old = desk(name)
    specs = tuple(
        each.model_copy(update={"version": versions[each.name]}) if each.name in versions else each
        for each in old.specs
    )
    return replace(old, specs=specs)


def _refund() -> Desk:
    agent = load_agent("refund")
    specs = tuple(each.spec for each in Registry(agent.tools).values())
    return Desk(specs, agent.rights, agent.policy)


def _migration() -> Desk:
    rights = Rights(principal="dana", roles=("dba",), scopes=("db:write",))
    return Desk(MIGRATION, rights, MIGRATION_POLICY)


def _aml() -> Desk:
    scopes = ("cases:read", "sar:file", "accounts:write", "mail:send")
    return Desk(AML, Rights(principal="ines", roles=("investigator",), scopes=scopes), AML_POLICY)
