"""A group of commands that another room holds: known by name, loaded when it is asked for.

So that help costs nothing, and that the door imports nothing to its right.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click


class Later(click.Group):
    """Stands for a group elsewhere.

    Args:
        name: Of the group.
        home: Where it is, as `module:attribute`.
        help: Its help, word for word (a test compares them).
    """

    def __init__(self, name: str, home: str, **more: Any) -> None:
        super().__init__(name, **more)
        self._home = home

    @property
    def meant(self) -> click.Group:
        """The group itself."""
        module, _, attribute = self._home.partition(":")
        found: click.Group = getattr(import_module(module), attribute)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name its commands."""
        return self.meant.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one of them."""
        return self.meant.get_command(ctx, cmd_name)
