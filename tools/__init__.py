"""What an agent can do: functions with a declared contract; importing one registers nothing."""

from plangate.tools.answers import Found, Operation, ToolFailed
from plangate.tools.context import ToolContext

__all__ = ["Found", "Operation", "ToolContext", "ToolFailed"]
