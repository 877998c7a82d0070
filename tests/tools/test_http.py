from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typing_extensions import TypedDict

from plangate.engine.classify import classify
from plangate.plan.errors import ConfigError
from plangate.tools.answers import ToolFailed
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Secret
from plangate.tools.http import HttpApi
from plangate.tools.tool import tool

READS = ToolContext(
    run_id="r", step="S1", attempt_id="S1-A1", principal="ann", credential=Secret("hunter2")
)
ACTS = replace(READS, effect_key="KEY-1")


class Got(TypedDict):
    id: int


@tool(effect="read", errors={"gone": "business_rejection"})
def look() -> Got:
    """Look."""
    return {"id": 1}


@tool(effect="write", key="do:{n}", scope="goal", errors={"gone": "business_rejection"})
def act(n: int) -> Got:
    """Act."""
    return {"id": n}


@dataclass
class Server:
    """Answers what it is told to, and remembers what it was asked."""

    url: str
    status: int = 200
    body: bytes = b'{"id": 7}'
    drop: bool = False
    wait: threading.Event | None = None
    asked: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


class Handler(BaseHTTPRequestHandler):
    def answer(self) -> None:
        plan: Server = self.server.plan  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        plan.asked.append((self.command, self.path, dict(self.headers), body))
        if plan.wait is not None:
            plan.wait.wait(5)
        if plan.drop or plan.wait is not None:
            self.close_connection = True
            return
        self.send_response(plan.status)
        for name, value in plan.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(plan.body)))
        self.end_headers()
        self.wfile.write(plan.body)

    do_GET = do_POST = answer  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def listening() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(listening: ThreadingHTTPServer) -> Server:
    plan = Server(f"http://127.0.0.1:{listening.server_address[1]}/v1")
    listening.plan = plan  # type: ignore[attr-defined]
    return plan


async def outcome_of(api: HttpApi, context: ToolContext, **more: Any) -> tuple[str, str]:
    """Send one request as a tool would, and sort what came of it as the engine would."""
    spec = (act if context.effect_key else look).spec
    try:
        await api.send(context, "POST", "/refunds", body={"n": 1}, **more)
    except Exception as exc:  # noqa: BLE001 - any kind; classify() sorts them
        failure = classify(spec, exc)
        assert "hunter2" not in failure.says
        assert "n=" not in failure.says
        return failure.outcome, failure.code
    return "success", ""


async def test_an_acting_call_carries_its_effect_key_and_the_credential_of_the_call(server):
    api = HttpApi(base_url=server.url, headers={"idempotency-key": "mine", "x-from": "plangate"})

    got = await api.send(
        ACTS,
        "POST",
        "/orders/{id}/refunds",
        values={"id": "a/../b?x"},
        query={"q": "1&2"},
        body=[1],
    )

    [(method, path, headers, body)] = server.asked
    assert got == {"id": 7}
    assert (method, path) == ("POST", "/v1/orders/a%2F..%2Fb%3Fx/refunds?q=1%262")
    assert headers["Authorization"] == "Bearer hunter2"
    assert [v for k, v in headers.items() if k.lower() == "idempotency-key"] == ["KEY-1"]
    assert json.loads(body) == [1]


async def test_a_read_sends_no_idempotency_key(server):
    await HttpApi(base_url=server.url).send(READS, "GET", "/orders")

    assert "idempotency-key" not in {name.lower() for name in server.asked[0][2]}


@pytest.mark.parametrize(
    ("status", "read", "acting"),
    [
        (200, "success", "success"),
        (301, "permanent", "permanent"),
        (400, "permanent", "permanent"),
        (404, "business_rejection", "business_rejection"),
        (408, "transient", "unknown"),
        (409, "permanent", "permanent"),
        (418, "transient", "transient"),
        (425, "transient", "transient"),
        (429, "transient", "transient"),
        (500, "transient", "unknown"),
        (502, "transient", "unknown"),
        (503, "transient", "unknown"),
        (504, "transient", "unknown"),
    ],
)
async def test_each_status_means_one_outcome_and_is_asked_for_once(server, status, read, acting):
    api = HttpApi(base_url=server.url, did_not_act=frozenset({418}))
    server.status, server.headers = status, {"location": "/elsewhere", "retry-after": "0"}

    got = [(await outcome_of(api, each, codes={404: "gone"}))[0] for each in (READS, ACTS)]

    assert got == [read, acting]
    assert len(server.asked) == 2


@pytest.mark.parametrize("how", ["dropped", "silent", "no json", "endless"])
async def test_what_was_sent_and_not_answered_is_unknown_if_it_acts(server, how):
    server.drop = how == "dropped"
    server.wait = threading.Event() if how == "silent" else None
    server.body = {"no json": b"<html>", "endless": b"1" * 2_000_000}.get(how, b"{}")
    api = HttpApi(base_url=server.url)

    deadline_s = 0.3 if how == "silent" else 10
    outcome, _ = await outcome_of(api, replace(ACTS, deadline_s=deadline_s))
    assert outcome == "unknown"
    outcome, _ = await outcome_of(api, replace(READS, deadline_s=deadline_s))
    assert outcome == ("transient" if how in ("dropped", "silent") else "permanent")
    assert len(server.asked) == 2
    if server.wait:
        server.wait.set()


async def test_what_was_never_sent_may_be_tried_again_even_if_it_acts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        api = HttpApi(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")

        assert await outcome_of(api, ACTS) == ("transient", "not_connected")


async def test_a_call_that_is_cancelled_is_not_answered_in_its_place(server):
    server.wait = threading.Event()
    call = asyncio.create_task(HttpApi(base_url=server.url).send(ACTS, "POST", "/x"))
    while not server.asked:  # noqa: ASYNC110 - a server in a thread
        await asyncio.sleep(0.005)

    call.cancel()
    server.wait.set()

    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("value", ["", ".", ".."])
async def test_a_value_cannot_climb_out_of_its_place(server, value):
    with pytest.raises(ToolFailed, match="no part of an address"):
        await HttpApi(base_url=server.url).send(READS, "GET", "/orders/{id}", values={"id": value})

    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "bank.example", "https://u:p@x", "https://x?key=1", "https://x#a", "https://"],
)
def test_a_base_url_is_the_plain_address_of_a_server(url):
    with pytest.raises(ConfigError) as caught:
        HttpApi(base_url=url)

    assert "u:p" not in str(caught.value)
