"""A tool is a contract and the function that keeps it; there is no default effect.

Outside a tool everything is plain JSON. What a body returns is not checked here but where it is
used (`plangate.engine`), against the contract's schema, so that a wrong result is an outcome of the
attempt and not a crash.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never, TypeAlias, Unpack

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from plangate.plan.errors import ConfigError
from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.contract import Body, Contract, Reconcile, Status, spec_of
from plangate.tools.signature import Signature, read_signature
from plangate.tools.thread import in_task, in_thread

if TYPE_CHECKING:
    from plangate.plan.catalog import ToolSpec

Asks: TypeAlias = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[Found]]
Polls: TypeAlias = Callable[[str, ToolContext], Awaitable[Operation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A contract and the function that keeps it."""

    spec: ToolSpec
    body: Body
    signature: Signature
    reconcile: Asks | None = None
    """`await reconcile(effect_key, args, context)`: did the effect happen?"""

    status: Polls | None = None
    """`await status(operation_id, context)`: how far is the operation?"""

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> object:
        """Run the body; a blocking one runs in a thread.

        Args:
            args: Plain JSON that fits the contract's parameters.
            context: The attempt that is served.

        Returns:
            The result as plain JSON, not checked; what JSON cannot carry stays as it was.

        Raises:
            ToolFailed: The tool says so, or `bad_arguments` before it was even started.
            Exception: Whatever the body raises; of a tool that acts, the effect is then unknown.
        """
        try:
            values = self.signature.arguments(args)
        except ValidationError as exc:
            wrong = ", ".join(str(error["loc"][0]) for error in exc.errors() if error["loc"])
            raise ToolFailed("bad_arguments", f"arguments do not fit: {wrong}") from exc
        if self.signature.context is not None:
            values[self.signature.context] = context
        return plain(await _run(self.body, **values))


def tool(*bare: Never, **contract: Unpack[Contract]) -> Callable[[Body], Tool]:
    """Turn a function, blocking or async, into a tool.

    Name and summary come from the function and its docstring, the schemas of arguments and result
    from its annotations. A parameter annotated `ToolContext` is filled in and not planned.

    Args:
        bare: Nothing; catches `@tool` without parentheses.
        contract: What the function cannot show; see `Contract`. The effect is required.

    Raises:
        ConfigError: The contract is incomplete or contradicts itself or the function.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Sum:
        ...     total: int
        >>> @tool(effect="none")
        ... def add(a: int, b: int = 1) -> Sum:
        ...     '''Add two whole numbers.'''
        ...     return Sum(a + b)
        >>> add.spec.summary
        'Add two whole numbers.'
    """
    if bare:
        raise ConfigError("@tool stands without an effect", hint='Write @tool(effect="read").')

    def make(body: Body) -> Tool:
        signature = read_signature(body.__name__, body)
        return Tool(
            spec=spec_of(body, contract, signature),
            body=body,
            signature=signature,
            reconcile=_asking(contract.get("reconcile")),
            status=_polling(contract.get("status")),
        )

    return make


def plain(value: object) -> Any:
    """Return a Python value as plain JSON; a number that is not finite becomes null.

    What JSON cannot carry is returned as it is: whoever checks results refuses it.
    """
    try:
        return to_jsonable_python(value, inf_nan_mode="null")
    except Exception:  # noqa: BLE001 - foreign data: too deep, not Unicode, a property that raises
        return value


async def _run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await in_task(function(*args, **kwargs))
    result = await in_thread(partial(function, *args, **kwargs))
    return await in_task(result) if inspect.isawaitable(result) else result


def _asking(reconcile: Reconcile | None) -> Asks | None:
    if reconcile is None:
        return None

    async def ask(effect_key: str, args: Mapping[str, Any], context: ToolContext) -> Found:
        found = await _run(reconcile, effect_key, args, context)
        if not isinstance(found, Found):
            raise TypeError(f"reconcile returned {type(found).__name__} instead of Found")
        found.check()
        return replace(found, output=plain(found.output))

    return ask


def _polling(status: Status | None) -> Polls | None:
    if status is None:
        return None

    async def poll(operation_id: str, context: ToolContext) -> Operation:
        operation = await _run(status, operation_id, context)
        if not isinstance(operation, Operation):
            raise TypeError(f"status returned {type(operation).__name__} instead of Operation")
        operation.check()
        return replace(operation, output=plain(operation.output))

    return poll
