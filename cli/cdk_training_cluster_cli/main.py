"""The commands of `training-cluster`: each module declares those of one family, and this one assembles them.

A command ends with one of these statuses:

- 0: it is so, or it is done.
- 1: the answer is no: `check` found problems, a line of `preflight` fails, a data set has failed, nodes that were
  waited for are missing, or the CDK CLI failed.
- 2: what was given cannot be used (an option, a cluster file, credentials, a name), or AWS refuses to answer.
- 3: neither proven nor refuted: S3 keeps of a checkpoint sizes alone, or lines of `preflight` are unknown and none
  fails.
- 70: a defect of this program; a file that it names has the traceback.
- 130: it was interrupted with Ctrl-C.

Modules here only declare. What a command needs is imported by that command, so that help and version come at once.
"""

import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.data import commands as data
from cdk_training_cluster_cli.deploy import commands as deploy
from cdk_training_cluster_cli.files import commands as files
from cdk_training_cluster_cli.money import commands as money
from cdk_training_cluster_cli.observe import commands as observe
from cdk_training_cluster_cli.operate import commands as operate
from cdk_training_cluster_cli.pictures import commands as pictures
from cdk_training_cluster_cli.prepare import commands as prepare

_MISUSED = 2
_INTERRUPTED = 130

# What typer raises for every misuse; the name that it has in each release of typer is another.
_Misuse = cast(type[Exception], typer.BadParameter.__mro__[2])


class _PlainCommands(TyperGroup):
    """Say of each misuse one sentence, and of an interrupt one line."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **named: Any) -> Any:  # type: ignore[override]  # noqa: ANN401 - called by keywords
        """Run the command line, and end the program with its status."""
        with plain_errors():
            try:
                status = super().main(args, standalone_mode=False, **named)
            except _Misuse as misuse:
                sys.stderr.write(_sentence(misuse))
                status = _MISUSED
            except typer.Abort:
                status = _INTERRUPTED
        if status == _INTERRUPTED:
            sys.stderr.write("interrupted\n")
        if not standalone_mode:
            return status
        sys.exit(status)


def _sentence(misuse: Any) -> str:  # noqa: ANN401 - see _Misuse
    said = misuse.format_message().strip()
    if type(misuse).__name__ == "NoArgsIsHelpError":
        return f"{said}\n" if said else ""
    said = " ".join(re.sub(r"\. Did you mean (.*)\?", r"; did you mean \1?", said).split()).rstrip(".")
    command = misuse.ctx.command_path if misuse.ctx else "training-cluster"
    return f"error: {said[:1].lower()}{said[1:]}; see {command} --help\n"


training_cluster = typer.Typer(
    cls=_PlainCommands,
    name="training-cluster",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"training-cluster {version('cdk-training-cluster')}\n")
        raise typer.Exit


@training_cluster.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Cluster files for cdk-training-cluster: a GPU or Trainium cluster in one YAML file."""


for _family in (prepare, files, money, data, observe, pictures, operate, deploy):
    training_cluster.add_typer(_family.commands)
