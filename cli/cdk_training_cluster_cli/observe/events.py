"""`training-cluster events`: what happened, and who did it."""

import sys

from cdk_training_cluster_cli.core.output import check_format, json_text, print_paragraph, terminal
from cdk_training_cluster_cli.core.times import parse_span
from cdk_training_cluster_cli.observe.ages import LONGEST, clock, moment_text
from cdk_training_cluster_cli.observe.deployed import deployed
from cdk_training_cluster_cli.observe.history import read_history

_FORMATS = ("table", "json")
_SOURCE = 14


def run(cluster: str, *, since: str, region: str | None, profile: str | None, output: str) -> None:
    """Show on standard output what happened to a cluster.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        since: How far to look back, such as `24h`.
        region: The region. None: the file's, or the AWS configuration's.
        profile: The profile of the AWS configuration. None: the default one.
        output: How to show it: `table` or `json`.

    Raises:
        ValueError: A setting is not allowed, or the cluster is not found.
        ClusterFileError: The file is wrong.
    """
    check_format(output, option="--output", formats=_FORMATS)
    length = parse_span("--since", since, most=LONGEST)
    asked = deployed(cluster, region=region, profile=profile, asker="events")
    history = read_history(asked, length)
    if output == "json":
        events = [{**vars(one), "time": moment_text(one.time)} for one in history.happenings]
        sys.stdout.write(f"{json_text({'cluster': asked.name, 'events': events, 'unknown': history.unknown})}\n")
        return
    console = terminal()
    for one in history.happenings:
        source = one.source.removeprefix("the ").removesuffix(" function")
        who = f" ({one.who})" if one.who else ""
        first = f"{clock(one.time)}  {source:<{_SOURCE}}  "
        print_paragraph(console, f"{one.what}{who}", first=first, style="red" if one.failed else "")
    if not history.happenings:
        print_paragraph(console, f"Nothing is known to have happened in the last {since}.")
    for source, why in history.unknown.items():
        print_paragraph(console, f"unknown: {source}: {why}", style="yellow")
