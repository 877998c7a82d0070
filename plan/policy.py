"""The rules of an organisation, read from TOML. What no rule allows is denied.

A rule names a whole tool or `*` for all, never a part of a name and never argument text. A `deny`
that matches wins over every `allow`, wherever it stands, so adding a rule to the end of the file
cannot be undone by one above it. A step that asks a model is called `model` here, and has effect
`none`. A file with an unknown key, a bad value or a bad syntax is refused
as a whole: half a policy is none.

    schema = 1
    constants = ["EUR"]              # literals that a planner may write without another source
    approval_ttl_s = 3600
    reread = true                    # before an irreversible effect: has the world moved?

    [[allow]]
    tool = "*"
    effects = ["none", "read"]

    [[allow]]
    tool = "create_refund"
    roles = ["refund_agent"]
    tenants = ["shop_eu"]            # whose principals; without it: anybody's

    [[deny]]
    tool = "delete_order"
    reason = "orders are kept for ten years"

    [[require]]
    before = "create_refund"
    ancestors = ["verify_eligibility", "human:customer"]
    followed_by = ["verify_final_state"]
    reason = "money moves only for a confirmed, eligible case"

    [[threshold]]
    tool = "create_refund"
    arg = "amount_cents"
    over = 10000
    tier = "full"
    reason = "over the automatic limit"

    [[quorum]]
    tool = "create_refund"
    n = 2
    roles = ["finance"]

    [[label]]                        # raises what the contract says of a tool's output
    tool = "search_mail"
    integrity = "untrusted"
    confidentiality = ["pii"]

    [autonomy]                       # what no plan goes beyond, whoever approves it
    max_effect = "irreversible"
    max_steps = 40
    max_usd = "5.00"

    [tiers]
    auto_usd = "0.50"
    first_time = "selective"

    [verifier]
    pass_threshold = 0.8             # how sure a judge must be; below it a person decides
    other_model = true               # no model judges what it wrote

    [limits.step]                    # of one step, all its attempts and checks together
    max_tool_calls = 20
    max_seconds = 120

    [limits.run]                     # of one run; a person who raises a limit stays below it
    max_usd = "2.00"
    max_replans = 3

    [limits.day]                     # of one principal, over all runs, midnight to midnight UTC
    max_usd = "20.00"
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from plangate.plan.errors import ConfigError
from plangate.plan.limits import RUN_CAPS, Limits
from plangate.plan.policy_rules import (
    Autonomy,
    LabelRule,
    Quorum,
    Require,
    Threshold,
    Tier,
    Tiers,
    ToolRule,
    VerifierPolicy,
)
from plangate.plan.toml import read_toml
from plangate.plan.value.frozen import Frozen, canonical, digest, fault_in_text, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plangate.plan.catalog import ToolSpec
    from plangate.plan.facts import Rights
    from plangate.plan.value.frozen import Json
    from plangate.plan.value.plan import Budget

__all__ = [
    "Autonomy", "LabelRule", "Policy", "Quorum", "Require", "Threshold", "Tier", "Tiers",
    "ToolRule", "VerifierPolicy",
]  # fmt: skip


class Policy(Frozen):
    """The rules that every plan is held against."""

    constants: tuple[str | int | float | bool, ...] = ()
    """Literals that a planner may use without a source in inputs or outputs."""

    approval_ttl_s: Annotated[int | float, Field(gt=0, allow_inf_nan=False)] = 3600
    """How long an approval holds, in seconds."""

    reread: bool = True
    """Before an irreversible effect, read again what its approval rested on."""

    allows: tuple[ToolRule, ...] = ()
    denies: tuple[ToolRule, ...] = ()
    requires: tuple[Require, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    quorums: tuple[Quorum, ...] = ()
    labels: tuple[LabelRule, ...] = ()
    autonomy: Autonomy = Field(default_factory=Autonomy)
    tiers: Tiers = Field(default_factory=Tiers)
    verifier: VerifierPolicy = Field(default_factory=VerifierPolicy)
    limits: Limits = Field(default_factory=Limits)
    """What no step, run or day of a principal goes over."""

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Read a policy file.

        Raises:
            ConfigError: The text is not TOML, has an unknown key or a bad value; with the line.
        """
        data = read_toml(text, "policy")
        if (schema := data.pop("schema", None)) != 1 or type(schema) is not int:
            raise ConfigError(
                "policy has no `schema = 1`", hint="Write `schema = 1` as its first line."
            )
        if wrong := sorted(_MEANT.keys() & data.keys()):
            raise ConfigError(
                f"policy line {_line_of(text, wrong)}: unknown key {wrong[0]!r}",
                hint=f"Write {_MEANT[wrong[0]]}.",
            )
        return _read(cls, data, text)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over the rules; an approval is bound to it."""
        return digest(self.model_dump(mode="json"))

    def permits(self, spec: ToolSpec, rights: Rights) -> str | None:
        """Return None if the principal may use the tool, else the reason why not."""
        for deny in self.denies:
            if deny.matches(spec, rights):
                return deny.reason or f"a rule denies {spec.name!r}"
        if self.allowing(spec, rights) is not None and not self.wrong_tenant(spec, rights):
            return None
        if wrong := self.wrong_tenant(spec, rights):
            return wrong
        roles = ", ".join(rights.roles) or "none"
        return f"no rule allows {spec.name!r} ({spec.effect.value}) for roles: {roles}"

    def allowing(self, spec: ToolSpec, rights: Rights) -> ToolRule | None:
        """Return the first rule that allows the tool; a denial may still go before it."""
        return next((rule for rule in self.allows if rule.matches(spec, rights)), None)

    def wrong_tenant(self, spec: ToolSpec, rights: Rights) -> str | None:
        """Return why the principal's tenant keeps it from a tool, or None where it does not."""
        of = f"tenant {rights.tenant!r}" if rights.tenant is not None else "no tenant"
        if spec.tenants and rights.tenant not in spec.tenants:
            return f"{spec.name!r} is for {_listed(spec.tenants)}, and the principal is of {of}"
        meant = [rule for rule in self.allows if rule.speaks_of(spec, rights)]
        if not meant or any(rule.matches(spec, rights) for rule in meant):
            return None
        named = _listed(name for rule in meant for name in rule.tenants)
        return f"{spec.name!r} is allowed for {named}, and the principal is of {of}"

    def quorum_for(self, tools: Iterable[str]) -> int:
        """Return how many different people must approve a plan that uses these tools."""
        return max((rule.n for rule in self.quorums_of(tools)), default=1)

    def quorums_of(self, tools: Iterable[str]) -> tuple[Quorum, ...]:
        """Return the rules that ask for more than one approval of these tools."""
        used = set(tools)
        return tuple(q for q in self.quorums if q.tool in used or (q.tool == "*" and used))

    def capped(self, budget: Budget) -> Budget:
        """Return a plan's budget under the policy's caps: of each limit the smaller counts."""
        caps = self.limits.run
        least = {name: _least(getattr(budget, name), getattr(caps, name)) for name in RUN_CAPS}
        return budget.model_copy(update=least)

    def over_threshold(self, tool: str, args: Mapping[str, Json]) -> str | None:
        """Return why a call with these resolved arguments needs a person, or None.

        An argument that is no number cannot be compared, so it needs one. An absent argument is
        the tool's default, which the plan's tier has looked at.
        """
        for limit in self.thresholds:
            if limit.tool != tool or limit.arg not in args:
                continue
            value, more = args[limit.arg], f" ({limit.reason})" if limit.reason else ""
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return f"{tool}: {limit.arg} is no number, so its limit says nothing{more}"
            if value > limit.over:
                return f"{tool}: {limit.arg} is {value}, over {limit.over}{more}"
        return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _least(mine: Any, cap: Any) -> Any:
    return cap if mine is None else mine if cap is None else min(mine, cap)


_FIELDS = {
    "allow": "allows",
    "deny": "denies",
    "require": "requires",
    "threshold": "thresholds",
    "quorum": "quorums",
    "label": "labels",
}
_KEYS = {field: key for key, field in _FIELDS.items()}
_MEANT = {key: f"[[{name}]]" for key, name in _KEYS.items()} | {"budget": "[limits.run]"}
_HINT = "Correct it; the docstring of plangate.plan.policy shows every key."


def _read(kind: type[Policy], data: dict[str, object], text: str) -> Policy:
    try:
        policy = parse(kind, {_FIELDS.get(key, key): value for key, value in data.items()})
        canonical(policy)  # refuses numbers that have no exact form
    except ValidationError as exc:
        says = fault_in_text(exc, lambda where: _line_of(text, where), _KEYS)
        raise ConfigError(f"policy {says}", hint=_HINT) from exc
    except ValueError as exc:
        raise ConfigError(f"policy: {exc}", hint="Use numbers below 2**53.") from exc
    return policy


def _line_of(text: str, where: list[str]) -> int:
    lines = text.splitlines()
    start, keys, headers = 0, where, list[int]()
    for depth in range(len(where), 0, -1):
        headers = [at for at, line in enumerate(lines) if _is_header(line, ".".join(where[:depth]))]
        if headers:
            nth = int(where[depth]) if len(where) > depth and where[depth].isdecimal() else 0
            start, keys = headers[min(nth, len(headers) - 1)], where[depth:]
            break
    for at in range(start, len(lines)):
        if at > start and headers and lines[at].lstrip().startswith("["):
            break
        if any(re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[at]) for key in keys):
            return at + 1
    return start + 1


def _is_header(line: str, name: str) -> bool:
    return re.fullmatch(rf"\s*\[\[?\s*{re.escape(name)}\s*\]?\]\s*(#.*)?", line) is not None
