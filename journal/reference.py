"""How the journal names what it stores beside the log."""

from __future__ import annotations

from typing import TypeAlias

Ref: TypeAlias = str
"""Reference to an artifact: `sha256:<64 hex digits>`."""
