from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from types import FunctionType
from typing import Any, Literal, NotRequired
from typing import TypedDict as OldTypedDict

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from plangate.plan.catalog import ArgRule, Effect
from plangate.plan.errors import ConfigError
from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.tool import tool

CONTEXT = ToolContext(run_id="r", step="S1", attempt_id="S1-A1", principal="ann")


class Line(BaseModel):
    sku: str
    cents: int


class Order(TypedDict):
    order_id: str
    version: int
    lines: list[Line]
    note: NotRequired[str]


@dataclass
class Paid:
    operation_id: str
    by: str


class Old(OldTypedDict):
    x: int


@tool(effect="read", evidence=["order://{order_id}?version={version}#{lines.0.sku}"])
def look_up(order_id: str, limit: int = 3, kind: Literal["a", "b"] = "a") -> Order:
    """Look an order up.

    More for developers.
    """
    return {"order_id": order_id, "version": limit, "lines": [Line(sku=kind, cents=5)]}


@tool(effect=Effect.IRREVERSIBLE, key="pay:{order_id}", scope="global", external=True)
async def pay(order_id: str, amount: Decimal, context: ToolContext) -> Paid:
    """Pay."""
    return Paid(operation_id=f"{order_id}:{amount * 2}", by=context.principal)


def test_the_contract_is_read_off_the_function():
    spec = look_up.spec

    assert (spec.name, spec.summary, spec.effect) == ("look_up", "Look an order up.", Effect.READ)
    assert spec.params == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "order_id": {"type": "string"},
            "limit": {"type": "integer", "default": 3},
            "kind": {"type": "string", "enum": ("a", "b"), "default": "a"},
        },
        "required": ("order_id",),
    }
    assert spec.output["required"] == ("order_id", "version", "lines")
    assert spec.output["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}


def test_the_context_is_filled_in_and_not_part_of_the_arguments():
    assert set(pay.spec.params["properties"]) == {"order_id", "amount"}


async def test_arguments_arrive_as_annotated_and_results_leave_as_plain_json():
    paid = await pay.call({"order_id": "7", "amount": "1.50"}, CONTEXT)
    seen = await look_up.call({"order_id": "7"}, CONTEXT)

    assert paid == {"operation_id": "7:3.00", "by": "ann"}
    assert seen == {"order_id": "7", "version": 3, "lines": [{"sku": "a", "cents": 5}]}


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({}, id="missing"),
        pytest.param({"order_id": 7}, id="of another type"),
        pytest.param({"order_id": "7", "limit": "3"}, id="not converted"),
        pytest.param({"order_id": "7", "more": 1}, id="surplus"),
    ],
)
async def test_arguments_that_do_not_fit_fail_before_the_body_starts(args: dict[str, Any]):
    with pytest.raises(ToolFailed, match="do not fit") as failed:
        await look_up.call(args, CONTEXT)

    assert failed.value.code == "bad_arguments"


async def test_a_blocking_body_does_not_block_the_loop():
    @tool(effect="read")
    def slow(name: str) -> Paid:
        """Take a while."""
        time.sleep(0.1)
        return Paid(operation_id=name, by=threading.current_thread().name)

    before = time.perf_counter()
    results = await asyncio.gather(*(slow.call({"name": str(n)}, CONTEXT) for n in range(20)))

    assert time.perf_counter() - before < 0.6
    assert results[7] == {"operation_id": "7", "by": "plangate-tool"}


async def test_a_call_that_nobody_waits_for_any_more_goes_on_and_hurts_nobody():
    let_go, ended = threading.Event(), threading.Event()

    @tool(effect="read")
    def hang() -> Paid:
        """Hang."""
        let_go.wait(5)
        ended.set()
        return Paid(operation_id="", by="")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(hang.call({}, CONTEXT), timeout=0.05)
    let_go.set()

    assert await asyncio.to_thread(ended.wait, 5)


@pytest.mark.parametrize("raised", [StopIteration(), SystemExit(3), asyncio.CancelledError()])
async def test_an_exception_that_would_confuse_the_loop_is_wrapped(raised: BaseException):
    @tool(effect="read")
    def odd() -> Paid:
        """Raise."""
        raise raised

    with pytest.raises(RuntimeError, match=type(raised).__name__):
        await odd.call({}, CONTEXT)


async def test_what_a_body_raises_comes_out_as_it_is():
    @tool(effect="read")
    def broken() -> Paid:
        """Break."""
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await broken.call({}, CONTEXT)


@pytest.mark.parametrize("result", [[1], "text", None])
async def test_a_result_of_the_wrong_kind_comes_out_for_the_engine_to_judge(result: object):
    @tool(effect="read")
    def liar() -> Order:
        """Return something else."""
        return result  # type: ignore[return-value]

    assert await liar.call({}, CONTEXT) == result


async def test_a_result_that_json_cannot_carry_stays_as_it_was():
    odd = object()

    @tool(effect="read")
    def liar() -> Order:
        """Return an object."""
        return {"order_id": odd}  # type: ignore[typeddict-item]

    assert await liar.call({}, CONTEXT) == {"order_id": odd}


async def test_a_number_that_json_cannot_carry_becomes_null():
    @tool(effect="read")
    def nan() -> Order:
        """Return NaN."""
        return {"order_id": "7", "version": float("nan"), "lines": []}  # type: ignore[typeddict-item]

    assert await nan.call({}, CONTEXT) == {"order_id": "7", "version": None, "lines": []}


async def test_reconcile_and_status_may_block_or_await_and_give_plain_json():
    def ask(effect_key: str, args: Any, context: ToolContext) -> Found:
        return Found(True, effect_key, Paid(args["order_id"], context.step).__dict__)

    async def poll(operation_id: str, context: ToolContext) -> Operation:
        return Operation("done", {"lines": [Line(sku=operation_id, cents=1)]}, "", "settled")

    @tool(effect="write", key="pay:{order_id}", scope="goal", reconcile=ask, status=poll)
    def pay_later(order_id: str) -> Paid:
        """Pay later."""
        return Paid(order_id, "")

    assert pay_later.reconcile is not None
    assert pay_later.status is not None
    found = await pay_later.reconcile("k", {"order_id": "7"}, CONTEXT)
    operation = await pay_later.status("OP-1", CONTEXT)

    assert found == Found(True, "k", {"operation_id": "7", "by": "S1"})
    assert operation.output == {"lines": [{"sku": "OP-1", "cents": 1}]}
    assert (pay_later.spec.reconciles, pay_later.spec.settles) == (True, True)


def good(order_id: str, note: str = "") -> Order:
    """Do it."""
    raise NotImplementedError


def undocumented(order_id: str) -> Order:
    raise NotImplementedError


def unannotated(order_id) -> Order:
    """Do it."""
    raise NotImplementedError


def without_result(order_id: str):
    """Do it."""


def gives_text(order_id: str) -> str:
    """Do it."""
    raise NotImplementedError


def gives_a_loose_dict(order_id: str) -> dict[str, int]:
    """Do it."""
    raise NotImplementedError


def gives_old_typed_dict() -> Old:
    """Do it."""
    raise NotImplementedError


def takes_a_thread(thread: threading.Thread) -> Order:
    """Do it."""
    raise NotImplementedError


def takes_anything(*orders: str) -> Order:
    """Do it."""
    raise NotImplementedError


def takes_two_contexts(one: ToolContext, two: ToolContext) -> Order:
    """Do it."""
    raise NotImplementedError


def names_a_ghost(order: Ghost) -> Order:  # noqa: F821
    """Do it."""
    raise NotImplementedError


def found(effect_key: str, args: Any, context: ToolContext) -> Found:
    return Found(None)


def polled(operation_id: str, context: ToolContext) -> Operation:
    return Operation("pending")


READ = {"effect": "read"}
ACT = {"effect": "irreversible", "key": "pay:{order_id}", "scope": "global"}


@pytest.mark.parametrize(
    ("body", "contract", "says"),
    [
        (undocumented, READ, "'undocumented' has no docstring"),
        (unannotated, READ, "parameter 'order_id' has no type"),
        (without_result, READ, "'without_result' does not say what it returns"),
        (gives_text, READ, "returns str, which is not an object with named fields"),
        (gives_a_loose_dict, READ, "which is not an object with named fields"),
        (gives_old_typed_dict, READ, "its result has a type with no JSON Schema: .*TypedDict"),
        (takes_a_thread, READ, "its arguments has a type with no JSON Schema: .*Thread"),
        (takes_anything, READ, "parameter 'orders' cannot be passed by name"),
        (takes_two_contexts, READ, "takes two contexts"),
        (names_a_ghost, READ, "annotation 'Ghost' cannot be found"),
        (good, {}, "'good' declares no effect"),
        (good, {"effect": "delete"}, "unknown effect 'delete'"),
        (good, {**READ, "scope": "goal"}, r"does not act \(read\), so scope= means nothing"),
        (good, {**READ, "reconcile": found}, "so reconcile= means nothing"),
        (good, {**READ, "status": polled}, "so status= means nothing"),
        (good, {**READ, "undo": "other"}, "so undo= means nothing"),
        (good, {"effect": "write", "scope": "goal"}, r"acts \(write\) and has no key="),
        (good, {"effect": "write", "key": "k"}, r"acts \(write\) and has no scope="),
        (good, {**ACT, "key": "pay:{order}"}, "names 'order', which is not an argument"),
        (good, {**ACT, "key": "pay:{note}"}, "names 'note', which has a default"),
        (good, {**ACT, "key": "pay:{order_id"}, "has a brace that encloses no name"),
        (good, {**ACT, "key": "pay:{}"}, "has a brace that encloses no name"),
        (good, {**READ, "reads": ["order:{version}"]}, "'version', which is not an argument"),
        (good, {**READ, "writes": "order:{order_id}"}, "writes is not a list"),
        (good, {**READ, "evidence": ["order {order_id}"]}, "is not a reference"),
        (good, {**READ, "evidence": ["o://{lines.0.price}"]}, "'lines.0.price', which is neither"),
        (good, {**ACT, "status": polled}, "no field 'operation_id'"),
        (good, {**READ, "arg_rules": {"x": ArgRule()}}, "arg_rules names 'x'"),
        (good, {**READ, "errors": {"gone": "maybe"}}, "errors.gone: Input should be"),
        (good, {**READ, "errors": {"gone": "success"}}, "cannot have the outcome success"),
        (good, {**READ, "timeout_s": -1}, "timeout_s: Input should be greater than 0"),
        (good, {**READ, "usd": 0.1}, "usd 0.1 is not exact"),
        (good, {**READ, "time_out_s": 3}, "no keyword 'time_out_s'"),
    ],
)
def test_a_misuse_is_refused_where_the_tool_is_declared(
    body: Any, contract: dict[str, Any], says: str
):
    with pytest.raises(ConfigError, match=says) as refused:
        tool(**contract)(body)

    assert refused.value.hint


def test_the_decorator_cannot_stand_without_an_effect():
    with pytest.raises(ConfigError, match="without an effect"):
        tool(good)  # type: ignore[arg-type]


def test_names_that_pydantic_uses_itself_are_ordinary_arguments():
    @tool(effect="read")
    def odd(schema: str, model_config: int, _x: bool = True) -> Order:
        """Do it."""
        raise NotImplementedError

    assert set(odd.spec.params["properties"]) == {"schema", "model_config", "_x"}


def test_the_context_is_known_even_if_a_linter_moved_its_import_away():
    def body(order_id: str, context: ToolContext) -> Order:
        """Do it."""
        raise NotImplementedError

    hidden = FunctionType(body.__code__, {"Order": Order, "__builtins__": __builtins__}, "body")
    hidden.__annotations__, hidden.__doc__ = body.__annotations__, body.__doc__

    assert tool(effect="read")(hidden).signature.context == "context"
