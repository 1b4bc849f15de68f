"""The arguments and options that several commands share, each declared once."""

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from cdk_training_cluster_file.regions import REGION

_SUFFIXES = (".yaml", ".yml")


def names_file(text: str) -> bool:
    """Say whether a user means a cluster file, and not the name of a deployed cluster.

    Args:
        text: What was given.
    """
    return text.endswith(_SUFFIXES) or "/" in text or os.sep in text or _is_file(text)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # longer than the system allows
        return False


def complete_file(incomplete: str) -> Iterator[str]:
    """Yield the cluster files, and the directories that may hold some, which begin as a user has typed.

    Args:
        incomplete: What is typed so far.
    """
    directory = Path(incomplete).parent if not incomplete.endswith(os.sep) else Path(incomplete)
    for path in sorted(directory.glob("*")):
        shown = f"{path}{os.sep}" if path.is_dir() else str(path)
        if shown.startswith(incomplete) and not path.name.startswith(".") and shown.endswith((*_SUFFIXES, os.sep)):
            yield shown


def _check_file(context: typer.Context, file: Path) -> Path:
    # Of a name that was taken for a file, AWS would be asked by other commands.
    if context.resilient_parsing or names_file(str(file)):
        return file
    raise typer.BadParameter(
        f"{context.info_name} reads a cluster file, whose name ends in .yaml, and takes no name of a deployed "
        f"cluster, got {str(file)!r}"
    )


def _check_region(context: typer.Context, region: str | None) -> str | None:
    if context.resilient_parsing or region is None or re.fullmatch(REGION, region):
        return region
    import boto3  # noqa: PLC0415 - for its list of regions, in this sentence only

    near = get_close_matches(region, boto3.session.Session().get_available_regions("ec2"), n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise typer.BadParameter(f"must be the name of a region, such as us-east-1, got {region!r}{hint}")


def number(help: str) -> Any:  # noqa: ANN401 - what typer itself returns
    """Return an option that is read as text, so that whatever is wrong with its number is one sentence, and exact.

    Args:
        help: What the number is.
    """
    return typer.Option(metavar="NUMBER", help=help, show_default=False)


File: TypeAlias = Annotated[
    Path,
    typer.Argument(
        help="The cluster file.",
        metavar="FILE",
        show_default=False,
        callback=_check_file,
        autocompletion=complete_file,
    ),
]
Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="The cluster file, or the name of a deployed cluster.",
        metavar="FILE_OR_NAME",
        show_default=False,
        autocompletion=complete_file,
    ),
]
Region: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The region. Default: the cluster file's, or the AWS configuration's.",
        show_default=False,
        callback=_check_region,
    ),
]
Profile: TypeAlias = Annotated[
    str | None, typer.Option(help="The profile of the AWS configuration.", show_default=False)
]
Output: TypeAlias = Annotated[str, typer.Option("--output", metavar="table|json", help="The output format.")]
# Plans, bills and lists of checkpoints go into pull requests and reports.
OutputOrMarkdown: TypeAlias = Annotated[
    str, typer.Option("--output", metavar="table|json|markdown", help="The output format.")
]
# What --output was called before.
Format: TypeAlias = Annotated[str | None, typer.Option("--format", hidden=True)]
