"""The commands that act on a deployed cluster."""

import sys
from datetime import UTC, datetime
from time import sleep
from typing import Annotated, TypeAlias

import typer

from cdk_training_cluster_cli.core.aws_errors import plain_errors
from cdk_training_cluster_cli.core.options import Output, Profile, Region, Target

commands = typer.Typer()


def _check_node(context: typer.Context, node: str) -> str:
    from cdk_training_cluster_cli.operate.nodes import node_problem  # noqa: PLC0415 - see the package

    problem = node_problem(node)
    if problem and not context.resilient_parsing:
        raise typer.BadParameter(problem)
    return node


def _check_nodes(context: typer.Context, nodes: list[str] | None) -> list[str]:
    return [_check_node(context, node) for node in nodes or ()]


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
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.sizes import Asked, run  # noqa: PLC0415 - see the package

    with plain_errors():
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
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.sizes import Asked, run  # noqa: PLC0415 - see the package

    with plain_errors():
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
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.sizes import Asked, terminate  # noqa: PLC0415 - see the package

    with plain_errors():
        asks = not yes and sys.stdin.isatty()
        asked = Asked(reason=reason, wait=wait, timeout=timeout, output=output, pause=sleep, asks=asks)
        target = resolve(cluster, region=region, profile=profile, asker="terminate")
        raise typer.Exit(terminate(target, asked, node))


@commands.command()
def keep(
    cluster: Target,
    node: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE...]", help="Nodes, such as workers/0, in place of groups.", callback=_check_nodes
        ),
    ] = None,
    *,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Until then, such as 12h or 2026-12-24T18:00Z.", show_default=False),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Keep them no longer.")] = False,
    node_group: _Groups = None,
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Keep nodes, or whole node groups, from being stopped for being idle or for the budget, until a time."""
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.keep import Keep, run  # noqa: PLC0415 - see the package
    from cdk_training_cluster_cli.operate.power import PowerFunction  # noqa: PLC0415

    with plain_errors():
        wanted = Keep.read(until, off=off, now=datetime.now(UTC))
        power = PowerFunction(target=resolve(cluster, region=region, profile=profile, asker="keep"), pause=sleep)
        run(power, wanted, node_groups=node_group or [], nodes=node or [], output=output)


@commands.command()
def connect(
    cluster: Target,
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="An instance id, or workers/0: the first of a group.", callback=_check_node
        ),
    ],
    *,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Open a shell on a node with Session Manager: no key, no open port. Needs the AWS CLI and its plugin."""
    from cdk_training_cluster_cli.core.cdk_cli import call  # noqa: PLC0415
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.connect import run  # noqa: PLC0415 - see the package

    with plain_errors():
        target = resolve(cluster, region=region, profile=profile, asker="connect")
        raise typer.Exit(run(target, node, profile=profile, call=call))


@commands.command(name="exec")
def execute(
    cluster: Target,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="One text for the shell, or a program and its words.")
    ],
    *,
    node_group: _Groups = None,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="NODE", help="Only this node; give it again for more.", callback=_check_nodes),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long the command may run.")] = "10m",
    region: Region = None,
    profile: Profile = None,
    output: Output = "table",
) -> None:
    """Run a command on all nodes, or on some, with Run Command. Exits with 1 if it fails on one of them."""
    from cdk_training_cluster_cli.core.target import resolve  # noqa: PLC0415
    from cdk_training_cluster_cli.operate.run import Execution  # noqa: PLC0415 - see the package

    with plain_errors():
        target = resolve(cluster, region=region, profile=profile, asker="exec")
        execution = Execution(target=target, words=command, timeout=timeout, output=output, pause=sleep)
        raise typer.Exit(execution.run(node_group or [], node or []))
