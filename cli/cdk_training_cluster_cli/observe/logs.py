"""`training-cluster logs`: what the cluster's functions logged, or what a node wrote to its console."""

import re
import sys
from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from cdk_training_cluster_cli.core.output import check_format, json_text, print_paragraph, terminal
from cdk_training_cluster_cli.core.times import parse_span
from cdk_training_cluster_cli.observe.ages import LONGEST, clock, moment_text
from cdk_training_cluster_cli.observe.console import console_output, node_id
from cdk_training_cluster_cli.observe.deployed import Deployed, deployed, read_all
from cdk_training_cluster_cli.observe.records import ERRORS, Record, by_time, read_records
from cdk_training_cluster_file.problems import printable

_FORMATS = ("table", "json")
_NODE = re.compile(r"i-[0-9a-f]{8,17}")
_KIND = 14
_LEVEL = 8
_STYLES = {"ERROR": "red", "CRITICAL": "red", "WARNING": "yellow"}


def run(
    cluster: str,
    what: str | None,
    *,
    since: str,
    errors: bool,
    region: str | None,
    profile: str | None,
    output: str,
) -> None:
    """Show on standard output what was logged.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        what: A function's kind, such as `power`, or a node's id. None: all functions.
        since: How far to look back, such as `1h`; a console has no times.
        errors: Whether only what has failed is shown.
        region: The region. None: the file's, or the AWS configuration's.
        profile: The profile of the AWS configuration. None: the default one.
        output: How to show it: `table` or `json`.

    Raises:
        ValueError: A setting is not allowed, the cluster or what was named is not found, or AWS refuses.
        ClusterFileError: The file is wrong.
    """
    check_format(output, option="--output", formats=_FORMATS)
    length = parse_span("--since", since, most=LONGEST)
    asked = deployed(cluster, region=region, profile=profile, asker="logs")
    what = node_id(asked, what) if what else None
    if what is not None and _NODE.fullmatch(what):
        _show_console(asked, what, output)
        return
    kinds = tuple(asked.description.functions)
    if what is not None and what not in kinds:
        raise ValueError(
            f"logs takes {', '.join(kinds)} or a node's id such as i-0123456789abcdef0, got {what!r}: status lists "
            "the nodes"
        )
    _show_records(asked, (what,) if what else kinds, length, errors=errors, output=output)


def _show_records(asked: Deployed, kinds: tuple[str, ...], since: timedelta, *, errors: bool, output: str) -> None:
    def read(kind: str) -> list[Record]:
        found = read_records(asked, kind, since, ERRORS if errors else "")
        return [one for one in found if one.is_error or not errors]

    found, unknown = read_all({f"the {kind} function": partial(read, kind) for kind in kinds})
    if len(unknown) == len(kinds):
        raise ValueError(next(iter(unknown.values())))
    records = by_time(found)
    if output == "json":
        values = {"cluster": asked.name, "records": [_values(one) for one in records], "unknown": unknown}
        sys.stdout.write(f"{json_text(values)}\n")
        return
    console = terminal()
    for one in records:
        first = f"{clock(one.time)}  {one.kind:<{_KIND}}  {one.level:<{_LEVEL}}  "
        print_paragraph(console, one.message, first=first, style=_STYLES.get(one.level, ""))
    for source, why in unknown.items():
        print_paragraph(console, f"unknown: {source}: {why}", style="yellow")


def _values(record: Record) -> Mapping[str, object]:
    return {**vars(record), "time": moment_text(record.time)}


def _show_console(asked: Deployed, node: str, output: str) -> None:
    text = console_output(asked, node)
    if output == "json":
        sys.stdout.write(f"{json_text({'cluster': asked.name, 'node': node, 'console': text})}\n")
    elif text:
        sys.stdout.write(f"{printable(text).rstrip()}\n")
    else:
        sys.stdout.write(
            f"{node} has written nothing to its console yet: EC2 shows it some minutes after a launch.\n"
        )
