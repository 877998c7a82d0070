"""A tool is a contract and the function that keeps it; there is no default effect.

Outside a tool everything is plain JSON. What a body returns is not checked here but where it is
used (`plangate.engine`), against the contract's schema, so that a wrong result is an outcome of the
attempt and not a crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Never, TypeAlias, Unpack

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from plangate.plan.errors import ConfigError
from plangate.tools.answers import Found, Operation, Refused, ToolFailed
from plangate.tools.child import Limits, Order, address_of, in_child
from plangate.tools.context import ToolContext
from plangate.tools.contract import Body, Contract, Foresee, Reconcile, Status, spec_of, wanted
from plangate.tools.credentials import NOTHING, Granted
from plangate.tools.signature import Signature, read_signature
from plangate.tools.thread import run

if TYPE_CHECKING:
    from plangate.plan.catalog import ToolSpec
    from plangate.tools.child import What

Asks: TypeAlias = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[Found]]
Polls: TypeAlias = Callable[[str, ToolContext], Awaitable[Operation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolated:
    """How a tool is run in a child process."""

    limits: Limits
    address: str
    """Where the child finds it, as `module:name`."""

    inside: Tool
    """What the child runs."""

    async def order(self, what: What, asked: tuple[Any, ...], context: ToolContext) -> Any:
        """Have it done; credentials are asked for here, and handed on through a pipe."""
        args = asked[0] if what == "call" else {}
        needed = self.inside.signature.references(args) if what == "call" else ()
        context, granted = await granted_for(context, needed)
        return await in_child(
            Order(
                tool=self.address,
                limits=self.limits,
                what=what,
                asked=asked,
                context=context,
                granted=granted,
            )
        )

    async def found(self, key: str, args: Mapping[str, Any], context: ToolContext) -> Found:
        """Ask the outside about an effect, from the child."""
        found = Found(**await self.order("reconcile", (key, dict(args)), context))
        found.check()
        return found

    async def operation(self, operation_id: str, context: ToolContext) -> Operation:
        """Ask the outside about an operation, from the child."""
        operation = Operation(**await self.order("status", (operation_id,), context))
        operation.check()
        return operation


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

    preview: Foresee | None = None
    """`preview(args)` or `preview(args, world)`: which evidence will a call show? None: only its
    contract says."""

    @property
    def previews_world(self) -> bool:
        """True if its preview reads the world."""
        return self.preview is not None and wanted(self.preview) > 1

    isolated: Isolated | None = None
    """None: it runs in this process."""

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> object:
        """Run the body; a blocking one runs in a thread.

        Args:
            args: Plain JSON that fits the contract's parameters.
            context: The attempt that is served.

        Returns:
            The result as plain JSON, not checked; what JSON cannot carry stays as it was.

        Raises:
            ToolFailed: The tool says so, or `bad_arguments` before it was even started.
            NotSent, Refused: There are no credentials for the call.
            Exception: Whatever the body raises; of a tool that acts, the effect is then unknown.
        """
        try:
            needed = self.signature.references(args)
        except ValidationError as exc:
            wrong = ", ".join(str(error["loc"][0]) for error in exc.errors() if error["loc"])
            raise ToolFailed("bad_arguments", f"arguments do not fit: {wrong}") from None
        if self.isolated is not None:
            return await self.isolated.order("call", (dict(args),), context)
        context, granted = await granted_for(context, needed)
        values = self.signature.arguments(args, granted.secrets)
        if self.signature.context is not None:
            values[self.signature.context] = context
        return plain(await run(self.body, **values))


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
        made = Tool(
            spec=spec_of(body, contract, signature),
            body=body,
            signature=signature,
            reconcile=_asking(contract.get("reconcile")),
            status=_polling(contract.get("status")),
            preview=contract.get("preview"),
        )
        limits = contract.get("isolated")
        return made if limits is None else _isolated(made, limits)

    return make


def plain(value: object) -> Any:
    """Return a Python value as plain JSON; a number that is not finite becomes null.

    What JSON cannot carry is returned as it is: whoever checks results refuses it.
    """
    try:
        return to_jsonable_python(value, inf_nan_mode="null")
    except Exception:  # noqa: BLE001 - foreign data: too deep, not Unicode, a property that raises
        return value


async def granted_for(
    context: ToolContext, secrets: tuple[str, ...] = ()
) -> tuple[ToolContext, Granted]:
    """Ask for the credentials of one call.

    Returns:
        The context as a body may see it, and what was given.

    Raises:
        NotSent, Refused: There are none.
    """
    if context.grants is None:
        if secrets:
            raise Refused("no_credentials", f"nobody knows {', '.join(secrets)}")
        return context, NOTHING
    granted = await context.grants(secrets)
    return replace(context, credential=granted.credential, grants=None), granted


def _isolated(made: Tool, limits: Limits) -> Tool:
    address = address_of(made.spec.name, made.body)
    isolated = Isolated(limits=limits, address=address, inside=made)
    return replace(
        made,
        isolated=isolated,
        reconcile=isolated.found if made.reconcile else None,
        status=isolated.operation if made.status else None,
    )


def _asking(reconcile: Reconcile | None) -> Asks | None:
    if reconcile is None:
        return None

    async def ask(effect_key: str, args: Mapping[str, Any], context: ToolContext) -> Found:
        context, _ = await granted_for(context)
        found = await run(reconcile, effect_key, args, context)
        if not isinstance(found, Found):
            raise TypeError(f"reconcile returned {type(found).__name__} instead of Found")
        found.check()
        return replace(found, output=plain(found.output))

    return ask


def _polling(status: Status | None) -> Polls | None:
    if status is None:
        return None

    async def poll(operation_id: str, context: ToolContext) -> Operation:
        context, _ = await granted_for(context)
        operation = await run(status, operation_id, context)
        if not isinstance(operation, Operation):
            raise TypeError(f"status returned {type(operation).__name__} instead of Operation")
        operation.check()
        return replace(operation, output=plain(operation.output))

    return poll
