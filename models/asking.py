"""One question to a model, and each attempt at it: reserved, made, priced and recorded once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, Required, TypedDict

from plangate.budget.meter import Act
from plangate.budget.prices import PriceBook, Usage, most_cost, usage_cost
from plangate.budget.tokens import Counted, count_text
from plangate.journal.asked import ModelAsked
from plangate.journal.events import ModelCalled
from plangate.models.chat import Prepared, RawReply, raw_reply
from plangate.models.fault import Fault, fault_of
from plangate.models.form import T
from plangate.models.usage import Read, read_usage
from plangate.models.whole import unwatched

if TYPE_CHECKING:
    from collections.abc import Callable

    from plangate.budget.meter import Meter, Reservation
    from plangate.models.form import Form
    from plangate.models.reading import Flaw
    from plangate.models.retry import Retry
    from plangate.prompts.loader import Prompt


_NOTHING: Final = Usage(input_tokens=0, output_tokens=0)


class Metered(TypedDict, total=False):
    """What a call is recorded, priced and limited by."""

    book: Required[PriceBook]
    on_call: Required[Callable[[ModelCalled], None]]
    """Takes the event of each attempt."""

    keep: Callable[[str], str]
    """Stores a reply and returns its reference, which the event then holds."""

    meter: Meter
    """Limits of the run; without one nothing is reserved."""

    elapsed_s: float
    """Seconds of execution so far, for the limits in time."""

    step: str
    """The step that asks; without one it is asked for the run as a whole."""

    attempt_id: str
    by: str
    """Whose question it is, where neither step nor attempt tells: a check's, as `S3-cited-1`."""

    retry: Retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[T]):
    """An answer that came, usable or not."""

    text: str
    value: T | None
    """None where the text does not hold what was asked for, or nothing was."""

    flaws: tuple[Flaw, ...] = ()
    """Why there is no value."""

    cut_off: bool = False
    """True where the model reached its output limit."""


@dataclass(frozen=True, slots=True)
class Asking(Generic[T]):
    """One question, asked as often as it takes."""

    model: Prepared
    prompt: Prompt
    messages: list[dict[str, str]]
    sent: Counted
    role: str
    schema: Form[T] | None
    metered: Metered

    async def once(self) -> Reply[T] | Fault:
        """Reserve and make one attempt. An expected failure is returned, never raised.

        Raises:
            BudgetExceeded: It would pass a limit; it was not made.
        """
        return await self.made(await self.reserve())

    async def made(self, reservation: Reservation | None) -> Reply[T] | Fault:
        """Make one attempt, and settle what was reserved for it."""
        began = monotonic()
        try:
            message = await self.model.runnable.ainvoke(self.messages, **unwatched())
        except asyncio.CancelledError:
            self._lost(reservation, began, "cancelled")
            raise
        except Exception as exc:  # noqa: BLE001 - foreign code: any failure is classified and counted
            fault = fault_of(exc)
            if fault.charged:
                self._lost(reservation, began, fault.code)
            else:
                self._record(_NOTHING, Decimal(0), reservation, began, fault.code)
            return fault
        raw = raw_reply(message)
        reply, read = self._read(raw), await asyncio.to_thread(self._used, raw)
        code, kept = _code(raw, reply), self._kept(raw.text)
        usd = usage_cost(read.usage, self.model.name, self.metered["book"])
        self._record(read.usage, usd, reservation, began, code, estimated=read.is_guess, reply=kept)
        return Fault(code=code) if raw.finish in ("refusal", "content_filter") else reply

    def _read(self, raw: RawReply) -> Reply[T]:
        cut_off = raw.finish == "length"
        if self.schema is None:
            return Reply(text=raw.text, value=None, cut_off=cut_off)
        read = self.schema.read(raw.text)
        if isinstance(read, tuple):
            return Reply(text=raw.text, value=None, flaws=read, cut_off=cut_off)
        return Reply(text=raw.text, value=read, cut_off=cut_off)

    async def reserve(self) -> Reservation | None:
        """Hold back the most that an attempt may cost; None where nothing is limited.

        Raises:
            BudgetExceeded: A limit would be passed.
        """
        meter, attempt_id = self.metered.get("meter"), self.metered.get("attempt_id")
        if meter is None:
            return None
        # The beginning of an attempt is on the disk before its model is asked.
        act = Act(
            attempt_id or self.metered.get("by", self.role),
            self.metered.get("step"),
            ledgered=attempt_id is not None,
        )
        return await meter.areserve(
            "model",
            usd=self._most_usd,
            tokens=self._most.total,
            elapsed_s=self.metered.get("elapsed_s", 0.0),
            act=act,
        )

    @property
    def at_most(self) -> ModelAsked:
        """What is about to be asked, for the record of a call whose end may be lost."""
        return ModelAsked(
            role=self.role,
            model=self.model.name,
            prompt=self.prompt.name,
            prompt_sha256=self.prompt.sha256,
            input_tokens=self._most.input_tokens,
            output_tokens=self._most.output_tokens,
            usd=self._most_usd,
            price_table=self.metered["book"].table,
        )

    @property
    def _most(self) -> Usage:
        return Usage(input_tokens=self.sent.tokens, output_tokens=self.model.most_output)

    @property
    def _most_usd(self) -> Decimal | None:
        return most_cost(self._most, self.model.name, self.metered["book"])

    def _used(self, raw: RawReply) -> Read:
        text, name = raw.text, self.model.name
        return read_usage(
            raw.usage, self.sent.tokens, lambda: count_text(text, name).tokens if text else 0
        )

    def _lost(self, reservation: Reservation | None, began: float, code: str) -> None:
        """Count all that was held back: what a call took whose answer never came, nobody knows."""
        self._record(self._most, self._most_usd, reservation, began, code, estimated=True)

    def _record(  # noqa: PLR0913 - one event has that many sides
        self,
        used: Usage,
        usd: Decimal | None,
        reservation: Reservation | None,
        began: float,
        code: str,
        *,
        estimated: bool = False,
        reply: str | None = None,
    ) -> None:
        if reservation is not None:
            self.metered["meter"].settle(reservation, usd=usd, tokens=used.total)
        self.metered["on_call"](
            ModelCalled(
                role=self.role,
                model=self.model.name,
                prompt=self.prompt.name,
                prompt_sha256=self.prompt.sha256,
                step=self.metered.get("step"),
                attempt_id=self.metered.get("attempt_id"),
                by=self.metered.get("by", ""),
                ok=not code,
                error_code=code,
                input_tokens=used.input_tokens,
                cached_tokens=used.cached_tokens,
                cache_write_tokens=used.cache_write_tokens,
                output_tokens=used.output_tokens,
                reasoning_tokens=used.reasoning_tokens,
                estimated=estimated,
                usd=usd,
                price_table=self.metered["book"].table,
                latency_s=monotonic() - began,
                reply=reply,
            )
        )

    def _kept(self, text: str) -> str | None:
        keep = self.metered.get("keep")
        # Half a surrogate pair has no form in a journal; a run must not end because of one.
        return None if keep is None else keep(text.encode(errors="replace").decode())


def _code(raw: RawReply, reply: Reply[T]) -> str:
    if raw.finish:
        return raw.finish
    return reply.flaws[0].code if reply.flaws else ""
