"""The one place that turns an error into words and an exit code.

An expected error is one line and a hint, its issues indented below it; a bug keeps its traceback.
Exit codes are those of `plangate.plan.errors`; they are printed at the end of `plangate --help`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from plangate.cli.exits import DRAINED
from plangate.cli.terminal import visible
from plangate.plan.errors import PlangateError, PlanRejected

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
"""As shells have it: 128 + SIGINT."""

EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "ok"),
    (1, "a bug, with its traceback"),
    (2, "wrong usage or set-up"),
    (3, "the plan has issues"),
    (4, "a new plan may do more than the old one"),
    (5, "a replay would act otherwise"),
    (6, "an effect or the goal is unknown"),
    (7, "the journal or its database"),
    (8, "a model failed"),
    (9, "denied: a rule or a person said no, or a check failed"),
    (10, "a budget would be passed"),
    (11, "waiting for a person"),
    (INTERRUPTED, "interrupted"),
    (DRAINED, "drained after SIGTERM; the run can be resumed"),
)
EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {what}" for code, what in EXIT_CODES)


class Shell(click.Group):
    """A click group whose errors all leave through one door."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT002 - click's signature
        **extra: Any,
    ) -> NoReturn:
        """Run a command and end the process with its exit code."""
        del standalone_mode
        _print_anything()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except PlangateError as error:
            _explain(error)
            sys.exit(error.exit_code)
        except click.UsageError as error:
            _explain_usage(error)
            sys.exit(error.exit_code)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            click.echo("interrupted; what was done is in the journal", err=True)
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def _print_anything() -> None:
    """A terminal that lacks a letter gets its code; a command must not die of an accent."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _explain(error: PlangateError) -> None:
    click.echo(f"error[{error.code}]: {visible(str(error))}", err=True)
    if isinstance(error, PlanRejected):
        for issue in error.issues:
            where = ".".join(part for part in (issue.step or "plan", issue.field) if part)
            click.echo(visible(f"  {where}: {issue.says} [{issue.code}]"), err=True)
            if issue.hint:
                click.echo(visible(f"    hint: {issue.hint}"), err=True)
    if error.hint:
        click.echo(f"hint: {visible(error.hint)}", err=True)


def _explain_usage(error: click.UsageError) -> None:
    if error.ctx is not None and error.message == error.ctx.get_help():
        click.echo(error.message, err=True)  # a group without a command: the help says it all
        return
    click.echo(f"error[usage]: {visible(error.format_message())}", err=True)
    path = error.ctx.command_path if error.ctx else "plangate"
    click.echo(f"hint: see {path} --help", err=True)
