"""What an agent can do: functions with a declared contract; importing one registers nothing."""

from plangate.tools.answers import Found, NotSent, Operation, Refused, ToolFailed
from plangate.tools.child import Limits
from plangate.tools.context import ToolContext
from plangate.tools.credentials import Granted, Secret, Wanted

__all__ = [
    "Found",
    "Granted",
    "Limits",
    "NotSent",
    "Operation",
    "Refused",
    "Secret",
    "ToolContext",
    "ToolFailed",
    "Wanted",
]
