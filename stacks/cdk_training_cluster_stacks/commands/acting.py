"""The commands that act on a deployed cluster."""

import sys
from time import sleep
from typing import Annotated, TypeAlias

import typer

from cdk_training_cluster_stacks.commands.options import Output, Profile, Region, Target
from cdk_training_cluster_stacks.problems import plain_errors

commands = typer.Typer()


def _check_nodes(context: typer.Context, nodes: list[str]) -> list[str]:
    from cdk_training_cluster_stacks.acting.nodes import node_problem  # noqa: PLC0415 - see the package

    problems = [problem for problem in map(node_problem, nodes) if problem]
    if problems and not context.resilient_parsing:
        raise typer.BadParameter(problems[0])
    return nodes


_Groups: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--node-group", metavar="NAME", help="Only this node group; give it again for more."),
]
_Reason: TypeAlias = Annotated[
    str | None, typer.Option(help="Why; it is in the messages and the log, behind who asks.", show_default=False)
]
_Wait: TypeAlias = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show how far it is.")]
_Timeout: TypeAlias = Annotated[str, typer.Option(metavar="TIME", help="How long to wait, such as 90s, 30m or 2h.")]
_Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Ask no question before nodes are terminated.")]
_Nodes: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE...", help="An instance id, or workers/0: the first of a group.", callback=_check_nodes
    ),
]


@commands.command()
def start(
    cluster: Target,
    *,
    node_group: _Groups = None,
    reason: _Reason = None,
    wait: _Wait = False,
    timeout: _Timeout = "30m",
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Start node groups. Exits with 1 if --wait ends without the nodes."""
    from cdk_training_cluster_stacks.acting.sizes import Asked, run  # noqa: PLC0415 - see the package
    from cdk_training_cluster_stacks.target import resolve  # noqa: PLC0415

    with plain_errors(status=2):
        asked = Asked(reason=reason, wait=wait, timeout=timeout, output=output, pause=sleep)
        target = resolve(cluster, region=region, profile=profile, asker="start")
        raise typer.Exit(run("start", target, asked, node_group or []))


@commands.command()
def stop(
    cluster: Target,
    *,
    node_group: _Groups = None,
    reason: _Reason = None,
    wait: _Wait = False,
    timeout: _Timeout = "30m",
    yes: _Yes = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Stop node groups until a start: their nodes are terminated. Asks first, on a terminal."""
    from cdk_training_cluster_stacks.acting.sizes import Asked, run  # noqa: PLC0415 - see the package
    from cdk_training_cluster_stacks.target import resolve  # noqa: PLC0415

    with plain_errors(status=2):
        asks = not yes and sys.stdin.isatty()
        asked = Asked(reason=reason, wait=wait, timeout=timeout, output=output, pause=sleep, asks=asks)
        target = resolve(cluster, region=region, profile=profile, asker="stop")
        raise typer.Exit(run("stop", target, asked, node_group or []))


@commands.command(name="terminate")
def terminate_nodes(
    cluster: Target,
    node: _Nodes,
    *,
    reason: _Reason = None,
    wait: _Wait = False,
    timeout: _Timeout = "30m",
    yes: _Yes = False,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Terminate single nodes; their group stays smaller until a start. Asks first, on a terminal."""
    from cdk_training_cluster_stacks.acting.sizes import Asked, terminate  # noqa: PLC0415 - see the package
    from cdk_training_cluster_stacks.target import resolve  # noqa: PLC0415

    with plain_errors(status=2):
        asks = not yes and sys.stdin.isatty()
        asked = Asked(reason=reason, wait=wait, timeout=timeout, output=output, pause=sleep, asks=asks)
        target = resolve(cluster, region=region, profile=profile, asker="terminate")
        raise typer.Exit(terminate(target, asked, node))
