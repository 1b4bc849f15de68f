"""What a cluster's dashboard shows of its nodes: what the CloudWatch agent on them reports."""

from collections.abc import Sequence

from cdk_training_cluster.core.dashboards.rows import DashboardRow, LineForEach, Panel, Unit
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.utilization import utilization_command
from cluster_contract.metrics import NODE_METRICS, node_namespace

_GROUP, _NODE = NODE_METRICS.node_group_dimension, NODE_METRICS.instance_id_dimension
_LEAST_BUSY = 50
_ALL = 100


def accelerator_row(cluster_name: str, fleets: Sequence[NodeFleet]) -> DashboardRow | None:
    """Describe the use of accelerators and networks of a cluster. None: no node reports any.

    Neuron reports neither memory, power nor temperature here: the agent has no plug-in for it.

    Args:
        cluster_name: The cluster's name.
        fleets: The nodes of each group.
    """
    gpus = any(fleet.instance_type.has_nvidia_gpus for fleet in fleets)
    neuron = any(fleet.instance_type.has_neuron_devices for fleet in fleets)
    others = any(utilization_command(fleet.node_group, fleet.instance_type) for fleet in fleets)
    panels = [
        *(_utilization(cluster_name, "GPUs", NODE_METRICS.gpu_utilization) if gpus else ()),
        *(_utilization(cluster_name, "NeuronCores", NODE_METRICS.neuron_core_utilization) if neuron else ()),
        *(_utilization(cluster_name, "other accelerators", NODE_METRICS.accelerator_utilization) if others else ()),
    ]
    if gpus:
        panels += [
            _by_group(cluster_name, title, unit, metric, statistic=statistic)
            for title, unit, metric, statistic in (
                ("Memory of the fullest GPU", Unit.MEBIBYTES, NODE_METRICS.gpu_memory_used, "Maximum"),
                ("Power of a GPU on average", Unit.WATTS, NODE_METRICS.gpu_power, "Average"),
                ("Temperature of the hottest GPU", Unit.CELSIUS, NODE_METRICS.gpu_temperature, "Maximum"),
            )
        ]
    if any(fleet.reports_efa_traffic for fleet in fleets):
        panels += _efa(cluster_name)
    return DashboardRow(title="Accelerators and network", panels=panels) if panels else None


def _utilization(cluster_name: str, what: str, metric: str) -> list[Panel]:
    each = LineForEach(
        metric=metric,
        cluster_name=cluster_name,
        by=(_GROUP, _NODE),
        statistic="Average",
        namespace=node_namespace(cluster_name),
        lowest=_LEAST_BUSY,
    )
    title = f"Use of {what}, the {_LEAST_BUSY} least busy nodes"
    return [
        Panel(title=title, unit=Unit.PERCENT, lines=[each], maximum=_ALL),
        _by_group(cluster_name, f"Use of {what} by group", Unit.PERCENT, metric, statistic="Average", maximum=_ALL),
    ]


def _by_group(
    cluster_name: str, title: str, unit: Unit, metric: str, *, statistic: str, maximum: float | None = None
) -> Panel:
    line = LineForEach(
        metric=metric,
        cluster_name=cluster_name,
        by=(_GROUP,),
        statistic=statistic,
        namespace=node_namespace(cluster_name),
    )
    return Panel(title=title, unit=unit, lines=[line], maximum=maximum)


def _efa(cluster_name: str) -> list[Panel]:
    """Return what goes over EFA: the agent's plug-in takes no dimension of the cluster, which the namespace names."""

    def each(metric: str, label: str = "") -> LineForEach:
        return LineForEach(
            metric=metric,
            cluster_name=None,
            by=(_NODE,),
            statistic="Sum",
            namespace=node_namespace(cluster_name),
            label=label,
        )

    received, sent = NODE_METRICS.efa_traffic
    return [
        Panel(
            title="EFA traffic in a period",
            unit=Unit.BYTES,
            lines=[each(received, "received"), each(sent, "sent")],
        ),
        Panel(
            title="EFA retransmits in a period",
            unit=Unit.BYTES,
            lines=[each(NODE_METRICS.efa_retransmits)],
        ),
    ]
