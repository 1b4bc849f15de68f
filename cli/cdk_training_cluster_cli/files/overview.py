"""Shows in a few lines what a cluster file would make."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from aws_cdk import App
from rich.console import Console

from cdk_training_cluster import InstanceTypeInfo, NodeFleet, NodeGroup, TrainingCluster
from cdk_training_cluster.guardrails import GUARDRAILS
from cdk_training_cluster.orchestrators.eks.settings import support_problem
from cdk_training_cluster.prices import PriceBook, committed_prices
from cdk_training_cluster_cli.core.output import Table, print_paragraph, print_table, terminal
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_file.orchestrators.eks import EksSettings
from cdk_training_cluster_stacks.building import built_stacks

_WARNING = "aws:cdk:warning"


def show(cluster: ClusterFile, *, now: datetime) -> None:
    """Synthesize the stacks of a cluster file in memory and show them on standard output.

    Args:
        cluster: What the file says.
        now: The time.

    Raises:
        ValueError: A construct refuses its settings.
        RuntimeError: CDK refuses the templates.
    """
    with built_stacks(cluster, synthesize=True) as (app, stack):
        fleets = stack.training_cluster.node_groups
        warnings = [*sorted(set(_warnings(app))), *_support(cluster, now)]
        prices = [*_prices(cluster.region, stack.training_cluster)]
    console = terminal()
    print_paragraph(console, f"{cluster.name} in {cluster.availability_zone}", style="bold")
    _print_lines(console, prices)
    print_table(console, _node_groups(fleets))
    _print_lines(console, (*_jobs(stack.training_cluster), *_guardrails(stack.training_cluster), *_storage(cluster)))
    for warning in warnings:
        print_paragraph(console, f"warning: {warning}", style="yellow")


def _prices(region: str, cluster: TrainingCluster) -> Iterator[str]:
    """Say what the nodes cost an hour: of several types the dearest, and what is not known is no part of the sum."""
    book, fleets, listed = committed_prices(), cluster.node_groups, cluster.orchestrator.price_name
    names = {fleet: [listed(info.name) for info in fleet.instance_types] for fleet in fleets}
    known = {fleet: _dearest(names[fleet], region, book) for fleet in fleets}
    sums = [fleet.node_group.count * price for fleet, price in known.items() if price is not None]
    unknown = [fleet.node_group.name for fleet, price in known.items() if price is None]
    total = f"${sum(sums):,.2f} an hour" if sums else "unknown"
    rest = f" and the nodes of {' and '.join(unknown)}, whose price is not known" if sums and unknown else ""
    yield f"Price at On-Demand list prices while all nodes run: {total}{rest}"
    for fleet in fleets:
        each = "; ".join(_price(name, region, book) for name in names[fleet])
        yield f"  {fleet.node_group.name}: {fleet.node_group.count} x {each}"


def _dearest(names: Sequence[str], region: str, book: PriceBook) -> Decimal | None:
    prices = [book.on_demand.nearest(name, region) for name in names]
    known = [price.usd for price in prices if price is not None]
    return max(known) if len(known) == len(prices) else None


def _price(name: str, region: str, book: PriceBook) -> str:
    price = book.on_demand.nearest(name, region)
    if price is None:
        return f"{name}, whose price is not known"
    where = "" if price.region == region else f" (in {price.region}; that in {region} is not known)"
    return f"{name} at ${price.usd:,.2f}{where}"


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        said = line.lstrip()
        print_paragraph(console, said, first=" " * (len(line) - len(said)))


def _node_groups(fleets: tuple[NodeFleet, ...]) -> Table:
    return Table(
        title="",
        headings=("Node group", "Nodes", "Type", "Accelerators", "EFA", "Bought", "Placement"),
        rows=tuple(row for fleet in fleets for row in _rows(fleet)),
        numbers=(1,),
    )


def _rows(fleet: NodeFleet) -> Iterator[tuple[str, ...]]:
    """Yield a row for each type; the first one has what is of all of them."""
    group = fleet.node_group
    of_all = (group.name, str(group.count)), (_bought(group), _placement(fleet))
    for info in fleet.instance_types:
        before, after = of_all if info is fleet.instance_types[0] else (("", ""), ("", ""))
        yield *before, info.name, _accelerators(info), _efa(fleet, info), *after


def _accelerators(info: InstanceTypeInfo) -> str:
    each_kind = [f"{each.count} x {each.name}, {each.memory_mib / 1024:.0f} GiB" for each in info.accelerators]
    return "; ".join(each_kind) or "none"


def _efa(fleet: NodeFleet, info: InstanceTypeInfo) -> str:
    if not info.supports_efa or fleet.node_group.efa is False:
        return "none"
    # AWS's figure for the type: what its cards say is their share for IP traffic, which may be less or more.
    gbps = info.network_gbps or sum(each.baseline_gbps for each in info.network_cards if each.supports_efa)
    return f"{len(info.efa_cards)}, {gbps:,.0f} Gbps"


def _bought(group: NodeGroup) -> str:
    pool = "" if group.warm_pool is None else f"; warm pool of {group.warm_pool.size}"
    return f"{group.capacity.describe()}{pool}"


def _placement(fleet: NodeFleet) -> str:
    made = fleet.placement_group is not None
    return fleet.node_group.chosen_placement.value if made else fleet.placement_group_name or "none"


def _jobs(cluster: TrainingCluster) -> Iterator[str]:
    if cluster.orchestrator.kind.traits.runs_jobs:
        yield f"Jobs run on {cluster.orchestrator.kind.value}"
        yield from (f"  {line}" for line in cluster.orchestrator.describe())


def _guardrails(cluster: TrainingCluster) -> Iterator[str]:
    made = {type(guardrail): guardrail for guardrail in cluster.guardrails}
    for kind in GUARDRAILS:
        if kind in made:
            yield from made[kind].describe()
        elif kind.spec.absent:
            yield kind.spec.absent
    if cluster.cost_budget is not None:
        yield from cluster.cost_budget.describe()


def _storage(cluster: ClusterFile) -> Iterator[str]:
    files = cluster.file_system
    if files is None:
        yield "No file system"
        return
    what = f"of {files.to_settings().describe()}" if files.existing is None else files.existing.file_system_id
    yield f"FSx for Lustre {what}, mounted at {files.mount_point}"
    for dataset in cluster.datasets:
        bucket = dataset.bucket or "(made by the foundation)"
        directory = files.mount_point + dataset.file_system_path.rstrip("/")
        yield f"  s3://{bucket}/{dataset.prefix} appears at {directory}"


def _support(cluster: ClusterFile, now: datetime) -> Iterator[str]:
    """Say that the support of Kubernetes ends or has ended, of which synthesis has no clock."""
    eks = cluster.orchestrator.settings
    problem = support_problem(eks.kubernetes_version, now.date()) if isinstance(eks, EksSettings) else None
    if problem:
        yield f"{problem}; write the next minor version as kubernetes_version, and deploy that alone"


def _warnings(app: App) -> Iterator[str]:
    for construct in app.node.find_all():
        for entry in construct.node.metadata:
            if entry.type == _WARNING:
                # CDK adds how Python acknowledges it.
                yield re.sub(r" \[ack: [^]]*\]$", "", str(entry.data))
