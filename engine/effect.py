"""Acting, once. Every call that the outside will remember goes through here and through the ledger.

Written down before it happens, under a key of business identity; what is found half-done is asked
of the outside, never guessed, and never simply done again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plangate.engine.call import Returned, call, judge_output
from plangate.engine.classify import Failure, classify, redact
from plangate.engine.ended import IN_FLIGHT
from plangate.engine.heard import record, record_found, record_operation
from plangate.engine.release import approved_effects, overtaken
from plangate.engine.underway import hold, may_still_act, quiet, when_quiet
from plangate.journal.events import EffectMoved
from plangate.journal.ledger import UNSETTLED, Intent
from plangate.journal.points import reached
from plangate.plan.effects import effect_key
from plangate.plan.errors import ConfigError, Conflict, PlangateError, RunBusy
from plangate.tools.answers import Found

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.engine.bench import Bench
    from plangate.engine.release import Ready
    from plangate.engine.underway import Hold
    from plangate.journal.ledger import EffectRow
    from plangate.plan.effects import EffectKey
    from plangate.plan.outcome import EffectState
    from plangate.plan.value.step import Step
    from plangate.tools.answers import Operation
    from plangate.tools.context import ToolContext
    from plangate.tools.tool import Tool

_POLL_FIRST_S = 0.05
_POLL_MOST_S = 1.0
DID_NOT_HAPPEN = "did_not_happen"
"""Code of an attempt that only found out that the one before it had no effect."""


@dataclass(frozen=True, slots=True)
class Acted:
    """How an acting call ended."""

    got: Returned | Failure
    key: str
    reused: str = ""
    """`ledger`, `poll` or `reconcile` where the result came from there and not from a new call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One acting call: the step, its body, and what both were promised."""

    bench: Bench
    step: Step
    tool: Tool
    ready: Ready
    context: ToolContext
    begin: Callable[[], None] = lambda: None
    """Told just before the body is called."""

    key: str = ""
    held: Hold | None = None

    async def run(self) -> Acted:
        """Act under the ledger.

        Returns:
            `unknown` wherever the call may have acted and nobody could say so.

        Raises:
            LeaseLost: Another owner took the run over; nothing was dispatched.
        """
        try:
            named = effect_key(self.tool.spec, self.ready.args, self.bench.plan.goal_id)
        except ConfigError as exc:
            return Acted(Failure("unexpected_state", "no_effect_key", redact(str(exc))), key="")
        url = self.bench.session.journal.url
        held = await hold((url, named.key), within_s=self.context.deadline_s)
        if held is None:
            says = "another step is doing this very effect now"
            return Acted(Failure("transient", IN_FLIGHT, says), named.key)
        try:
            return await self._held(named, held)
        except (Conflict, RunBusy) as exc:  # the row was not ours any more; it says how it went on
            return Acted(Failure("unknown", "in_other_hands", str(exc)), named.key)
        finally:
            try:
                if held.in_ledger:
                    await asyncio.shield(replace(self, key=named.key).let_go())
            finally:
                held.release()

    async def _held(self, named: EffectKey, held: Hold) -> Acted:
        session = self.bench.session
        intent = Intent(
            effect_key=named.key,
            business_key=named.business,
            run_id=session.run.run_id,
            goal_id=self.bench.plan.goal_id,
            step=self.step.id,
            plan_version=self.bench.plan.version,
            attempt_id=self.context.attempt_id,
            tool=self.tool.spec.name,
            tool_version=self.tool.spec.version,
            args_sha256=self.ready.args_sha256,
            approval=self.ready.approval,
        )
        act = replace(
            self,
            key=named.key,
            held=held,
            tool=held.watched(self.tool),
            context=replace(self.context, effect_key=named.key),
        )
        reached("effect.held")
        await session.aflush()
        if held_back := overtaken(self.bench, self.step):  # a new version came while it waited
            return Acted(Failure("cancelled", held_back.code, held_back.says), named.key)
        if used := await asyncio.to_thread(self._used_for, named.key):
            says = f"its approval was used for {used} already; this is another effect"
            return Acted(Failure("denied", "approval_consumed", says), named.key)
        try:
            claim = await asyncio.to_thread(session.journal.ledger.intend, session.lease, intent)
        except Conflict as exc:
            # One identity, two sets of arguments: a second effect, or a wrong one.
            return Acted(Failure("unexpected_state", "other_arguments", str(exc)), named.key)
        held.in_ledger = claim.row.owner == session.lease.owner
        if claim.fresh:
            act.moved("intended")
            return Acted(await act.dispatch(), named.key)
        return await act.reenter(claim.row)

    async def dispatch(self) -> Returned | Failure:
        """Call the body and record what came of it; not while an earlier call of it goes on."""
        if not await self._quiet():
            await self.settle("unknown", code=_GOES_ON.code)
            return _GOES_ON
        reached("effect.dispatching")
        self.begin()
        try:
            got = await call(self.tool, self.ready.args, self.context, self.bench.overran)
        except asyncio.CancelledError:
            # The call may have acted: say so before the cancellation goes on.
            await asyncio.shield(self.settle("unknown", code="cancelled"))
            raise
        reached("effect.returned")
        if isinstance(got, Returned):
            if self.tool.spec.settles:
                by, sha256 = self.context.attempt_id, self.ready.args_sha256
                record(self.bench, self.tool, by, got, args_sha256=sha256)
                named = got.output.get("operation_id")
                return await self.accepted(named if isinstance(named, str) else "")
            await self.settle("done", got=got)
        elif got.outcome == "unexpected_state":
            await self.settle("done", code=got.code)  # it acted; only its answer is unusable
        else:
            await self.settle("unknown" if got.outcome == "unknown" else "failed", code=got.code)
        return got

    async def reenter(self, row: EffectRow) -> Acted:
        """Go on from what the ledger says about this effect."""
        try:
            row = await self._taken(row)
        except RunBusy as exc:
            says = f"somebody is doing this very effect now: {exc}"
            return Acted(Failure("transient", IN_FLIGHT, says), self.key)
        if row.state in ("done", "compensated"):
            return Acted(self._recorded(row), self.key, "ledger")
        if row.state not in UNSETTLED:
            says = f"it was settled as {row.state} at this moment"
            return Acted(Failure("transient", DID_NOT_HAPPEN, says), self.key)
        pending = row.state == "accepted" and row.operation_id is not None
        if not pending and self.tool.reconcile is None and self.tool.spec.idempotent:
            return Acted(await self.dispatch(), self.key)
        return await self.find_out(row)

    async def find_out(self, row: EffectRow) -> Acted:
        """Ask the outside what became of an effect without an outcome; the body is not called."""
        if row.state == "accepted" and row.operation_id is not None:
            return Acted(await self.poll(row.operation_id), self.key, "poll")
        reached("effect.reconciling")
        found = await self._found(row)
        reached("effect.found")
        if found.happened is False:
            await self._quiet()
            if why := may_still_act(self.bench.session.journal.url, row):
                await self.settle("unknown", code=_GOES_ON.code, was=row.state)
                return Acted(replace(_GOES_ON, says=why), self.key)
            found = await self._found(row)  # it may have acted since it was asked
        if found.happened is None:
            await self.settle("unknown", code="outcome_unknown", was=row.state)
            says = "it may have happened, and the outside cannot say"
            return Acted(Failure("unknown", "outcome_unknown", says), self.key)
        if not found.happened:
            return await self._void()
        return Acted(await self._adopt(found), self.key, "reconcile")

    async def ask(self, row: EffectRow) -> Returned | Failure:
        """Find out what became of an effect for somebody who does not run its step.

        Raises:
            RunBusy: Somebody is at work on it.
        """
        row = await self._taken(row)
        try:
            return (await self.find_out(row)).got
        finally:
            await asyncio.shield(self.let_go())

    async def _taken(self, row: EffectRow) -> EffectRow:
        """Take up what nobody is at work on, so that whoever comes now lets it be."""
        if row.state not in UNSETTLED:
            return row
        session = self.bench.session
        return self._noted(
            await asyncio.to_thread(session.journal.ledger.take, session.lease, self.key)
        )

    def _noted(self, row: EffectRow) -> EffectRow:
        if self.held is not None:
            self.held.in_ledger = row.owner == self.bench.session.lease.owner
        return row

    async def let_go(self) -> None:
        """Tell the ledger that this owner makes no call of it, once the last one has ended."""
        session = self.bench.session

        def forget() -> None:
            with suppress(PlangateError):  # it stays ours then, until this process ends
                session.journal.ledger.let_go(self.key, session.lease.owner)

        await asyncio.to_thread(when_quiet, (session.journal.url, self.key), forget)

    async def _quiet(self) -> bool:
        key = (self.bench.session.journal.url, self.key)
        return await quiet(key, within_s=self.context.deadline_s)

    def _recorded(self, row: EffectRow) -> Returned | Failure:
        if row.state == "compensated":
            says = "this effect was undone; doing it again needs a new goal"
            return Failure("unexpected_state", "compensated", says)
        if row.output is None:
            says = "the effect is done but left no usable result"
            return Failure("unexpected_state", row.error_code or "no_result", says)
        return judge_output(self.tool.spec, self.bench.session.load(row.output))

    async def _found(self, row: EffectRow) -> Found:
        """An intent without an outcome: the outside may know what became of it."""
        if self.tool.reconcile is None:
            return Found(happened=None)
        try:
            async with asyncio.timeout(self.context.deadline_s):
                found = await self.tool.reconcile(self.key, self.ready.args, self.context)
        except Exception as exc:  # noqa: BLE001 - foreign code; no answer is unknown, not "no"
            says = classify(self.tool.spec, exc).says
            self.bench.report({"type": "reconcile_failed", "step": row.step, "text": says})
            found = Found(happened=None)
        record_found(self.bench, self.tool, self.context.attempt_id, found)
        return found

    async def _adopt(self, found: Found) -> Returned | Failure:
        """The effect happened: take over what the outside knows of it."""
        if found.operation_id is not None and self.tool.spec.settles:
            return await self.accepted(found.operation_id)
        got = judge_output(self.tool.spec, found.output)
        code = "" if isinstance(got, Returned) else got.code
        await self.settle("done", got=got, code=code)
        return got

    async def accepted(self, operation_id: str) -> Returned | Failure:
        """Record that the outside took the order, then wait for it to finish."""
        session = self.bench.session
        if not operation_id:
            await self.settle("unknown", code="no_operation_id")
            return Failure("unknown", "no_operation_id", "accepted without an operation id")
        ledger = session.journal.ledger
        self._noted(await asyncio.to_thread(ledger.accept, session.lease, self.key, operation_id))
        reached("effect.accepted")
        self.moved("accepted", operation_id)
        return await self.poll(operation_id)

    async def poll(self, operation_id: str) -> Returned | Failure:
        """Ask for the operation until it is final or the deadline has passed.

        An operation that is still pending then stays `accepted`: a later attempt polls on.
        """
        wait_s = _POLL_FIRST_S
        until = self.bench.monotonic() + self.context.deadline_s
        while True:
            operation = await self._status(operation_id)
            reached("effect.polled")
            record_operation(self.bench, self.tool, self.context.attempt_id, operation)
            if operation is not None and operation.state == "done":
                got = judge_output(self.tool.spec, operation.output)
                code = "" if isinstance(got, Returned) else got.code
                await self.settle("done", got=got, code=code, business=operation.business_state)
                return got
            if operation is not None and operation.state == "failed":
                await self.settle("failed", code=operation.code, business=operation.business_state)
                outcome = self.tool.spec.errors.get(operation.code, "permanent")
                return Failure(outcome, operation.code, "the outside gave the operation up")
            if self.bench.monotonic() >= until:
                says = f"operation {operation_id} has not finished yet"
                return Failure("unknown", "still_pending", says)
            await asyncio.sleep(wait_s)
            wait_s = min(_POLL_MOST_S, wait_s * 1.5)

    async def settle(
        self,
        state: EffectState,
        *,
        got: Returned | Failure | None = None,
        code: str = "",
        business: str = "",
        was: str = "",
    ) -> None:
        """Move the ledger's row; a row that already stands there is left alone."""
        if state == was:
            return
        session = self.bench.session
        output = session.put(got.output) if isinstance(got, Returned) else None
        await session.aflush()
        self._noted(
            await asyncio.to_thread(
                lambda: session.journal.ledger.settle(
                    session.lease,
                    self.key,
                    state,
                    output=output,
                    error_code=code,
                    business_state=business,
                )
            )
        )
        self.moved(state)

    def moved(self, state: EffectState, operation_id: str | None = None) -> None:
        """Tell the log."""
        self.bench.session.emit(
            EffectMoved(
                effect_key=self.key,
                step=self.step.id,
                attempt_id=self.context.attempt_id,
                tool=self.tool.spec.name,
                state=state,
                operation_id=operation_id,
            )
        )

    async def _status(self, operation_id: str) -> Operation | None:
        if self.tool.status is None:
            return None
        try:
            async with asyncio.timeout(self.context.deadline_s):
                return await self.tool.status(operation_id, self.context)
        except Exception:  # noqa: BLE001 - foreign code; an operation that cannot be seen is pending
            return None

    async def _void(self) -> Acted:
        """The outside is sure that nothing happened: the step is looked at as for the first time.

        What had to hold when it was begun may not hold any more.
        """
        await self.settle("failed", code=DID_NOT_HAPPEN)
        says = "an earlier call came to nothing, as the outside says"
        return Acted(Failure("transient", DID_NOT_HAPPEN, says), self.key)

    def _used_for(self, key: str) -> str:
        """Name the effects that this step's approval went into; a failed one used up nothing.

        A retry or a resume has the same key, and is no second use. An approval of a step over a
        list is for as many effects as were approved.
        """
        session = self.bench.session
        if self.ready.approval is None:
            return ""
        run_id = session.run.run_id
        rows = session.journal.ledger.under(run_id, self.ready.approval, self.step.id)
        others = [row for row in rows if row.effect_key != key and row.state != "failed"]
        if len(others) < approved_effects(self.bench, self.step.id):
            return ""
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return f"{others[0].business_key!r}{more}"


_GOES_ON = Failure("unknown", "still_running", "an earlier call of it may still be going on")
