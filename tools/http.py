"""Tools over HTTP: one request, once, and an honest word on what became of it.

Nothing is tried again here and no redirect is followed: repeats belong to the retry matrix, and a
call stays at the host that its tool was written for. What was sent by a tool that acts and was not
clearly refused may have acted, so it is unknown.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack
from urllib.parse import quote, urlsplit

from plangate.plan.errors import ConfigError
from plangate.tools.answers import NotSent, ToolFailed

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import httpx

    from plangate.tools.context import ToolContext

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

BUSY = frozenset({408, 425, 429, 503})
"""The server did not take the request on now; worth another try for a tool that reads."""

DID_NOT_ACT = frozenset({425, 429})
"""Of these, what means that nothing was done, whoever answered: it may be a proxy."""

MOST_BYTES = 1_000_000
_HOLE = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


class Unsure(OSError):
    """Nobody can tell from here what became of a request that was sent."""


class Request(TypedDict, total=False):
    """What `HttpApi.send` takes beside verb and path."""

    values: Mapping[str, str | int]
    """What the holes of the path are filled with, each as one segment."""

    query: Mapping[str, str | int]
    body: object
    """Sent as JSON."""

    codes: Mapping[int, str]
    """Error codes of the tool's contract by status, as `{409: "refunded_already"}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpApi:
    """A server that tools call.

    Args:
        base_url: `https://host[:port][/path]`; no call leaves it.
        did_not_act: Statuses with which this very server says that it did nothing, beside 425, 429.
        headers: Sent with every request. No secrets: those come with the call's credential.

    Raises:
        ConfigError: The URL is none, or holds a user, a query or a fragment.

    Example:
        >>> HttpApi(base_url="https://bank.example/v1").url("/orders/{order}", {"order": "a/b"})
        'https://bank.example/v1/orders/a%2Fb'
    """

    base_url: str
    did_not_act: frozenset[int] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        whole = parts.scheme in ("http", "https") and parts.hostname
        if not whole or parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError(
                "base_url is not the plain address of a server",
                hint="Write https://host/path; a key belongs to the agent's credentials.",
            )

    async def send(
        self, context: ToolContext, method: Method, path: str, **request: Unpack[Request]
    ) -> Any:
        """Send one request and return the JSON of a 2xx answer.

        The call's effect key goes along as `Idempotency-Key`, its credential as bearer token.

        Args:
            context: The call that is served; its deadline bounds the request.
            method: The verb.
            path: Below the base URL, as `/refunds/{order_id}`.
            request: See `Request`.

        Raises:
            NotSent: No connection was made, or the server says that it did nothing for now.
            ToolFailed: It refuses the request: a code of `codes`, or `http_<status>`.
            OSError: Nobody can tell what became of it; of a tool that acts, that is unknown.
        """
        import httpx  # noqa: PLC0415 - only where it is used

        acts = context.effect_key is not None
        url = self.url(path, request.get("values", {}))
        where = f"{method} {urlsplit(url).hostname}{path}"
        call = _Call(where=where, acts=acts, api=self, codes=request.get("codes", {}))
        options: dict[str, Any] = {"params": request.get("query")}
        if "body" in request:
            options["json"] = request["body"]
        try:
            async with (
                asyncio.timeout(context.deadline_s),
                httpx.AsyncClient(
                    headers=self._headers(context),
                    timeout=context.deadline_s,
                    verify=await asyncio.to_thread(_trusted),
                ) as client,
                client.stream(method, url, **options) as response,
            ):
                return call.read(response.status_code, await _limited(response))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as exc:
            raise NotSent("not_connected", f"{where}: {type(exc).__name__}") from None
        except httpx.UnsupportedProtocol:
            raise ToolFailed("bad_url", where) from None
        except httpx.TimeoutException:
            raise TimeoutError(f"{where}: no answer in time") from None
        except httpx.HTTPError as exc:
            raise Unsure(f"{where}: {type(exc).__name__}") from None

    def url(self, path: str, values: Mapping[str, str | int]) -> str:
        """Return the address of a path; a value can neither leave its segment nor the server.

        Raises:
            ToolFailed: A value is missing, empty or a step up.
        """

        def segment(match: re.Match[str]) -> str:
            text = str(values.get(match[1], ""))
            if text in ("", ".", ".."):
                raise ToolFailed("bad_url", f"{match[1]} is no part of an address")
            return quote(text, safe="")

        if not path.startswith("/") or path.startswith("//"):
            raise ToolFailed("bad_url", "the path does not begin with one slash")
        return self.base_url.rstrip("/") + _HOLE.sub(segment, path)

    def _headers(self, context: ToolContext) -> Mapping[str, str]:
        import httpx  # noqa: PLC0415 - as above

        headers = httpx.Headers(dict(self.headers))  # which knows names in any case
        if context.credential is not None:
            headers["Authorization"] = f"Bearer {context.credential.reveal()}"
        if context.effect_key is not None:
            headers["Idempotency-Key"] = context.effect_key
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What an answer means for this tool."""

    where: str
    """Verb, host and path as written: no values, no query, no headers."""

    acts: bool
    api: HttpApi
    codes: Mapping[int, str]

    def read(self, status: int, body: bytes | None) -> Any:
        says = f"{self.where}: status {status}"
        if 200 <= status < 300:  # noqa: PLR2004 - HTTP's own numbers, as below
            return self._json(body, says)
        if status in self.codes:
            raise ToolFailed(self.codes[status], says)
        if status in self.api.did_not_act | (DID_NOT_ACT if self.acts else BUSY):
            raise NotSent(f"http_{status}", says)
        if status >= 500 or (self.acts and status in BUSY):  # noqa: PLR2004
            raise Unsure(says)
        raise ToolFailed(f"http_{status}", says)

    def _json(self, body: bytes | None, says: str) -> Any:
        try:
            return json.loads(body or b"null")
        except ValueError:
            pass
        if self.acts:
            raise Unsure(f"{says}, but no JSON")
        raise ToolFailed("no_json", f"{says}, but no JSON")


@cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates once, and off the event loop: it takes a tenth of a second."""
    import httpx  # noqa: PLC0415 - as above

    return httpx.create_ssl_context()


async def _limited(response: httpx.Response) -> bytes | None:
    """Read the body; one that is too large is cut, and is no JSON then."""
    read = bytearray()
    async for chunk in response.aiter_bytes():
        read += chunk
        if len(read) > MOST_BYTES:
            return bytes(read[:MOST_BYTES]) + b"..."
    return bytes(read)
