"""The `plangate` command: parse, call the library, print. No decision is made here.

Nothing heavy is imported before a command needs it; `plangate --help` is a matter of milliseconds.
"""

from __future__ import annotations

import click

from plangate.cli.approve import approve
from plangate.cli.cancel import cancel
from plangate.cli.demo import demo
from plangate.cli.doctor import doctor
from plangate.cli.effects import effects
from plangate.cli.effects_change import compensate, reconcile, settle
from plangate.cli.later import Later
from plangate.cli.options import root_journal_option
from plangate.cli.plan import plan
from plangate.cli.policy import policy
from plangate.cli.retention import delete, prune
from plangate.cli.revise import revise
from plangate.cli.run import run
from plangate.cli.shell import EPILOG, Shell


@click.group(cls=Shell, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plangate", message="plangate %(version)s")
@root_journal_option
def cli() -> None:
    """Agents whose plan is data: checked, priced, approved, run as approved, verified.

    Data goes to stdout, talk to stderr. NO_COLOR is respected.
    """


for change in (settle, reconcile, compensate):
    effects.add_command(change)
for ending in (cancel, delete, prune, revise):
    run.add_command(ending)
evaluate = Later(
    "eval",
    "plangate.evals.commands:evaluate",
    help="Measure whether plangate keeps what it says.",
)
for command in (demo, plan, policy, run, approve, effects, evaluate, doctor):
    cli.add_command(command)


def main() -> None:
    """Run the command line."""
    cli()
