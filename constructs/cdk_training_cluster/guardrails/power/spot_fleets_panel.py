"""What EC2 reports of the Spot Fleets of a cluster, on its dashboard."""

from collections.abc import Mapping

from cdk_training_cluster.core.dashboards.rows import Line, Metric, Panel, Unit
from cluster_contract.owners import OwnerSettings


def spot_fleets_panel(fleets: Mapping[str, OwnerSettings]) -> Panel:
    """Return what EC2 reports of Spot Fleet requests.

    Args:
        fleets: The requests, by node group.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-fleet-cloudwatch-metrics.html
    """
    capacities = {
        "TargetCapacity": "wanted",
        "FulfilledCapacity": "running",
        "TerminatingCapacity": "being terminated",
    }
    return Panel(
        title="Spot Fleets",
        unit=Unit.NODES,
        lines=[
            Line.of(
                f"{group} {label}",
                Metric(
                    namespace="AWS/EC2Spot",
                    name=name,
                    dimensions={"FleetRequestId": fleet.id},
                    statistic="Maximum",
                ),
            )
            for group, fleet in fleets.items()
            for name, label in capacities.items()
        ],
    )
