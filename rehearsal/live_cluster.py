"""What `make live` deploys: the library's own two stacks, in which nothing may start a node, and its questions."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from aws_cdk import App
from aws_cdk import aws_events as events
from aws_cdk import aws_scheduler as scheduler
from pydantic import ValidationError

from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.explaining import explain
from cdk_training_cluster_file.problems import ClusterFileError, Problem
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from rehearsal.live_eks import EKS_PRICES, EksQuestion, make_eks_stack
from rehearsal.live_questions import make_questions

_PROJECT = Path(__file__).parents[1]

NAME = "live-check"
"""The cluster's name, in the names of its stacks and in a tag on all that it is made of."""

RESERVED_TYPE = "g4dn.xlarge"
"""What is reserved: the cheapest type of the catalog that goes into a cluster placement group."""

_PLAIN = "plain"
_CAPACITY_GIB = 1200
_FILE_SYSTEM = "fsx-persistent-2-125"
_HOURS_A_MONTH = 730


def live_file(zone: str, *, account: str | None = None, reserved_until: datetime | None = None) -> ClusterFile:
    """Return the cluster file of the check: the smallest file system, and groups that stay empty.

    The cluster's own stack has the group `plain` alone. The others have stacks of their own: see `live_questions`.

    Args:
        zone: The Availability Zone.
        account: The account. Default: - that of the credentials.
        reserved_until: When EC2 ends the reservation, whatever becomes of the check. Default: - never.

    Raises:
        ClusterFileError: The zone is none.
    """
    try:
        return _file(zone, account, reserved_until)
    except ValidationError as error:
        problems = [Problem(message=message) for _, message in explain(error)]
        raise ClusterFileError("--availability-zone", problems) from error


def _file(zone: str, account: str | None, reserved_until: datetime | None) -> ClusterFile:
    end = "until_cancelled" if reserved_until is None else f"{reserved_until:%Y-%m-%dT%H:%M:%SZ}"
    return ClusterFile.model_validate(
        {
            "name": NAME,
            "availability_zone": zone,
            **({} if account is None else {"account": account}),
            "file_system": {"storage_capacity_gib": _CAPACITY_GIB, "throughput_mbps_per_tib": 125},
            "termination_protection": False,
            "node_groups": [
                {"name": _PLAIN, "instance_types": [RESERVED_TYPE], "count": 1, "image": "latest"},
                {"name": "p5", "instance_types": ["p5.48xlarge"], "count": 1, "image": "latest"},
                {
                    "name": "extras",
                    "instance_types": ["g5.48xlarge", "g6.48xlarge"],
                    "count": 1,
                    "image": "latest",
                    "capacity": {"spot_fleet": {"max_price": 9.5}},
                },
                {
                    "name": "held",
                    "instance_types": [RESERVED_TYPE],
                    "count": 1,
                    "image": "latest",
                    "capacity": {"reservation": {"end": end}},
                },
            ],
        }
    )


def prices(region: str, *, eks: bool = False) -> Mapping[str, Decimal]:
    """Return what the check costs an hour while it is there, in USD, by what costs it.

    Args:
        region: Where it is made. A price of another region is named as such.
        eks: Whether it asks about EKS too.

    Raises:
        ValueError: A price is not known.
    """
    book = committed_prices()
    billed = [
        (f"FSx for Lustre, {_CAPACITY_GIB} GiB", book.units, _FILE_SYSTEM, Decimal(_CAPACITY_GIB) / _HOURS_A_MONTH),
        ("NAT gateway", book.units, "nat-gateway", Decimal(1)),
        ("its address", book.units, "public-ipv4", Decimal(1)),
        (f"two reservations of one {RESERVED_TYPE}", book.on_demand, RESERVED_TYPE, Decimal(2)),
    ]
    costs = dict(EKS_PRICES if eks else {})
    for what, figures, name, count in billed:
        price = figures.nearest(name, region)
        if price is None:
            raise ValueError(f"the price of {name} is not known: name another zone")
        where = "" if price.region == region else f", at the price in {price.region}"
        costs[f"{what}{where}"] = count * price.usd
    return costs


def write_assembly(cluster: ClusterFile, directory: Path, eks: EksQuestion | None = None) -> None:
    """Synthesize the stacks with every schedule and rule turned off: no function runs, so no group gets a node.

    Args:
        cluster: The cluster file.
        directory: Where the cloud assembly is written to.
        eks: What is asked about EKS. Default: - nothing.
    """
    context = json.loads((_PROJECT / "cdk.json").read_text(encoding="utf-8"))["context"]
    app = App(outdir=str(directory), context=context, analytics_reporting=False)
    foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
    plain = [group for group in cluster.node_groups if group.name == _PLAIN]
    ClusterStack(
        app,
        cluster.cluster_stack_name,
        cluster=cluster.model_copy(update={"node_groups": plain}),
        foundation=foundation,
    )
    make_questions(app, cluster, foundation.network)
    if eks is not None:
        make_eks_stack(app, cluster, eks)
    for construct in app.node.find_all():
        if isinstance(construct, scheduler.CfnSchedule | events.CfnRule):
            construct.state = "DISABLED"
    app.synth()
