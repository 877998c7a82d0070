"""A scripted server that speaks OpenAI's chat completions, on 127.0.0.1."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.models.billing import Books

USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 300,
    "total_tokens": 1500,
    "prompt_tokens_details": {"cached_tokens": 1000},
    "completion_tokens_details": {"reasoning_tokens": 100},
}


@dataclass(frozen=True)
class Said:
    """One scripted answer."""

    content: str | None = "{}"
    status: int = 200
    finish: str = "stop"
    refusal: str | None = None
    usage: dict[str, Any] | None = field(default_factory=lambda: USAGE)
    headers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    delay_s: float = 0.0
    drop: bool = False


@dataclass
class Fake:
    """What the server was asked, and what it still has to say; the last answer is repeated."""

    url: str
    script: list[Said]
    books: Books | None = None
    """Where given, usage is what is billed; errors are not, a dropped connection is."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    def next(self, request: dict[str, Any]) -> Said:
        self.requests.append(request)
        self.at.append(time.monotonic())
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if self.books is None or said.status >= 400:
            return said
        answer = None if said.drop else (said.content or said.refusal or "")
        billed = self.books.bill(request, answer)
        return said if said.usage is None else replace(said, usage=billed)


@contextmanager
def serving(*script: Said, books: Books | None = None) -> Iterator[Fake]:
    """Serve the script on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    fake = Fake(f"http://127.0.0.1:{server.server_address[1]}/v1", list(script), books)
    server.fake = fake  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        said = self.server.fake.next(json.loads(body))  # type: ignore[attr-defined]
        time.sleep(said.delay_s)
        if said.drop:
            self.close_connection = True
            return
        sent = json.dumps(_error(said) if said.status >= 400 else _completion(said)).encode()
        self.send_response(said.status)
        for name, value in {"content-type": "application/json", **said.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(sent)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        pass


def _completion(said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.content, "refusal": said.refusal}
    choice = {"index": 0, "message": message, "finish_reason": said.finish, "logprobs": None}
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-mini",
        "choices": [choice],
    }
    return whole if said.usage is None else {**whole, "usage": said.usage}


def _error(said: Said) -> dict[str, Any]:
    return {"error": said.error or {"message": "no", "type": "server_error", "code": None}}
