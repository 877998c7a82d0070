"""What an exception of a tool means, or a fault of a model. Foreign code ends here, for good.

After a call that may have acted, anything but the tool's own word is *unknown*, never failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plangate.models.retry import Retry
from plangate.plan.secrets import MASK, masked
from plangate.tools.answers import NotSent, Refused, ToolFailed

if TYPE_CHECKING:
    from plangate.models.fault import Fault
    from plangate.plan.catalog import ToolSpec
    from plangate.plan.outcome import Outcome

# An error may lose a word too many, unlike a result.
_SECRETS = re.compile(
    r"(?i)(bearer\s+|(?:password|passwd|secret|token|api[_-]?key)[\"']?\s*[=:]\s*[\"']?)"
    r"(?!secret://)[^\s\"'@,;]+"
)
_LINE_CHARS = 300
_READ_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that did not return what it should."""

    outcome: Outcome
    code: str
    says: str
    after_s: float = 0.0
    """How long the outside asks us to wait before another try."""


def classify(spec: ToolSpec, exc: BaseException) -> Failure:
    """Sort what a tool body raised.

    `ToolFailed` is the tool's own word: its contract names the class of each code, and a code
    that it does not name is permanent. `NotSent` and `Refused` say that the outside was not reached
    at all. A network or operating system error of a read is worth
    another try; any other exception of a read is a defect of the tool.
    """
    if isinstance(exc, ToolFailed):
        code = redact(_text(exc.code)) or "failed"
        return Failure(spec.errors.get(code, "permanent"), code, redact(_text(exc.says)))
    if isinstance(exc, NotSent):
        outcome: Outcome = "denied" if isinstance(exc, Refused) else "transient"
        return Failure(outcome, redact(_text(exc.code)), redact(_text(exc.says)))
    code = "timeout" if isinstance(exc, TimeoutError) else type(exc).__name__
    says = redact(f"{type(exc).__name__}: {_text(exc)}")
    if spec.effect.acts:
        return Failure("unknown", code, says)
    return Failure("transient" if isinstance(exc, OSError) else "permanent", code, says)


def classify_fault(model: str, fault: Fault) -> Failure:
    """Sort how a model failed. It has changed nothing, so nothing is unknown."""
    retry = Retry()
    waits = f", retry after {fault.after_s:.0f} s" if fault.after_s else ""
    says = redact(f"model {model!r}: {fault.code}{waits}. {fault.hint}")
    outcome: Outcome = "transient" if retry.wants(fault) else "permanent"
    return Failure(outcome, fault.code, says, after_s=fault.after_s)


def redact(text: str) -> str:
    """Return one line of at most 300 characters with what looks like a secret taken out.

    Example:
        >>> redact("GET https://u:pw@host failed, Authorization: Bearer abc.def")
        'GET https://u:***@host failed, Authorization: Bearer ***'
    """
    line = " ".join(text[:_READ_CHARS].encode(errors="replace").decode().split())
    line = _SECRETS.sub(rf"\1{MASK}", masked(line))
    return line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…"


def _text(foreign: object) -> str:
    try:
        return str(foreign)
    except Exception as exc:  # noqa: BLE001 - even the text of an exception is foreign code
        return f"(no text: {type(exc).__name__})"
