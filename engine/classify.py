"""What an exception of a tool means. Foreign code ends here; nothing of it travels further.

After a call that may have acted, anything but the tool's own word is *unknown*, never failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.tools.answers import ToolFailed

if TYPE_CHECKING:
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.outcome import Outcome

_SECRETS = re.compile(
    r"(?i)(bearer\s+|basic\s+|(?:password|passwd|secret|token|api[_-]?key|authorization)"
    r"[\"']?\s*[=:]\s*[\"']?|://[^/\s:@]+:)[^\s\"'@,;]+|\bsk-[A-Za-z0-9_-]{6,}"
)
_LINE_CHARS = 300
_READ_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Failure:
    """A tool call that did not return."""

    outcome: Outcome
    code: str
    says: str


def classify(spec: ToolSpec, exc: BaseException) -> Failure:
    """Sort what a tool body raised.

    `ToolFailed` is the tool's own word: its contract names the class of each code, and a code
    that it does not name is permanent. A network or operating system error of a read is worth
    another try; any other exception of a read is a defect of the tool.
    """
    if isinstance(exc, ToolFailed):
        code = redact(_text(exc.code)) or "failed"
        return Failure(spec.errors.get(code, "permanent"), code, redact(_text(exc.says)))
    code = "timeout" if isinstance(exc, TimeoutError) else type(exc).__name__
    says = redact(f"{type(exc).__name__}: {_text(exc)}")
    if spec.effect.acts:
        return Failure("unknown", code, says)
    return Failure("transient" if isinstance(exc, OSError) else "permanent", code, says)


def redact(text: str) -> str:
    """Return one line of at most 300 characters with what looks like a secret taken out.

    Example:
        >>> redact("GET https://u:pw@host failed, Authorization: Bearer abc.def")
        'GET https://u:***@host failed, Authorization: ***'
    """
    line = " ".join(text[:_READ_CHARS].encode(errors="replace").decode().split())
    line = _SECRETS.sub(lambda match: (match[1] or "") + "***", line)
    line = re.sub(
        r"(?i)(authorization: )bearer\s+\*+|(authorization: )\*\*\*\s+\S+", r"\1\2***", line
    )
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _text(foreign: object) -> str:
    try:
        return str(foreign)
    except Exception as exc:  # noqa: BLE001 - even the text of an exception is foreign code
        return f"(no text: {type(exc).__name__})"
