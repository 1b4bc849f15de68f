"""`training-cluster costs`: asks AWS what a cluster has cost, and shows it."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_training_cluster import instance_type_info
from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_cli.core.output import check_format, show
from cdk_training_cluster_cli.core.session import aws_session, refusal
from cdk_training_cluster_cli.money.costs.advice import GroupNodes
from cdk_training_cluster_cli.money.costs.bill import MAX_DAYS, ask_bill
from cdk_training_cluster_cli.money.costs.report import CostReport, first_of_month, make_report
from cdk_training_cluster_cli.money.costs.tables import document
from cdk_training_cluster_cli.money.costs.usage import Usage, ask_usage
from cdk_training_cluster_cli.money.prices.cache import cache_file, kept_prices
from cdk_training_cluster_file import ClusterFile, read_cluster_file
from cluster_contract.bill import MAX_REQUESTS, USD_A_REQUEST

if TYPE_CHECKING:
    import boto3


def run(file: Path, *, days: int, format: str, region: str | None = None, profile: str | None = None) -> None:
    """Show what a cluster has cost on standard output.

    Args:
        file: The cluster file.
        days: How many days, up to yesterday.
        format: How to show it.
        region: The region. Default: - the file's
        profile: The profile of the AWS configuration. Default: - the default one

    Raises:
        ValueError: A setting is not allowed, or AWS does not answer.
        ClusterFileError: The file is wrong.
    """
    check_format(format)
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"--days must be 1 to {MAX_DAYS}, the 13 months that Cost Explorer keeps, got {days}")
    cluster = read_cluster_file(file)
    session = aws_session("costs", profile)
    sys.stderr.write(
        f"Cost Explorer bills ${USD_A_REQUEST} a request: this makes {MAX_REQUESTS} at most "
        f"(${MAX_REQUESTS * USD_A_REQUEST}), as a rule one or two\n"
    )
    report = ask(session, cluster, days=days, today=datetime.now(UTC).date(), region=region)
    show(format, document(report, brief=format == "table"), report.values())


def ask(
    session: "boto3.Session", cluster: ClusterFile, *, days: int, today: date, region: str | None = None
) -> CostReport:
    """Ask AWS what a cluster has cost, and what its nodes did.

    Args:
        session: The user's credentials.
        cluster: What the cluster file says.
        days: How many days, up to yesterday.
        today: Today, in UTC.
        region: The region. Default: - the file's

    Raises:
        ValueError: Cost Explorer does not answer.
    """
    region = region or cluster.region
    start, groups = today - timedelta(days=days), group_nodes(cluster)
    # Cost Explorer is in one region of each partition; botocore knows which.
    explorer = session.client("ce", region_name=region)
    watch = session.client("cloudwatch", region_name=region)
    with ThreadPoolExecutor(max_workers=2) as pool:
        used = pool.submit(ask_usage, watch, cluster.name, [(each.name, each.info) for each in groups], start, today)
        bill = ask_bill(explorer, cluster.name, region, min(start, first_of_month(today)), today)
    reason = refusal(used.exception())
    usage: Usage | None = None if reason else used.result()
    unknown = [f"cloudwatch:GetMetricData was not answered ({reason}): what the nodes did is unknown"]
    book = committed_prices().updated(kept_prices(cache_file(os.environ)))
    return make_report(
        cluster.name,
        region,
        bill=bill,
        usage=usage,
        groups=groups,
        book=book,
        start=start,
        unknown=unknown if reason else (),
    )


def group_nodes(cluster: ClusterFile) -> Sequence[GroupNodes]:
    """Return the node groups of a cluster file.

    Args:
        cluster: What the file says.
    """
    extra = [facts.to_info() for facts in cluster.instance_type_facts]
    return [
        GroupNodes(
            name=group.name,
            info=(info := instance_type_info(group.instance_types[0], extra)),
            efa=group.efa is not False and info.supports_efa,
            on_demand=capacity.usage_classes == ("on-demand",)
            and not (capacity.makes_reservation or capacity.reservation_ids),
        )
        for group in cluster.node_groups
        for capacity in (group.capacity.to_capacity(),)
    ]
