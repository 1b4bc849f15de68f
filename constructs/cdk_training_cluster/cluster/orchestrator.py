"""What an orchestrator that runs jobs adds to a cluster.

`TrainingCluster` makes all that does not depend on the orchestrator; an `Orchestrator` makes the rest. To add one:

1. `nodes/orchestrator_kind.py` and `nodes/legality.py`: its row in each.
2. `orchestrators/<name>/settings.py`: a frozen dataclass of the orchestrator's settings, such as `SlurmSettings`.
3. `orchestrators/<name>/<name>_orchestrator.py`: a subclass of `Orchestrator` that takes these settings, and nothing
   else, so that a cluster file's rules can make one without an app. It overrides what differs, and keeps what it
   makes as attributes. One object belongs to one cluster. `TrainingCluster` calls it in this order:

   - `problems(together)` and `warnings(together)`, before anything is made: the orchestrator's own rules, a table
     `Rules[...]` in `orchestrators/<name>/rules.py`. What the kind of owner excludes stands in `legality.py`
     already. A problem of the orchestrator's own settings is at `("<name>", "<setting>")`, one of a group at
     `("node_groups", number, "<setting>")`.
   - `make_role(base)`: the nodes' role. Make constructs in `base.scope`, with ids of their own.
   - `make_job_role(base, role)`: the jobs' role.
   - `make_control(base, shared, together)`: what must be there before nodes, such as the cluster of the service.
   - for each node group `dialect(group)`, `node_setup(fleet)`, `security_groups(fleet)` and
     `make_owner(fleet, launches, reserved)`: see `FleetOwners`. `NodeFleet` makes placement group, reservation,
     launch templates, tags and warnings, and makes the owner depend on the way to the internet.
   - `make_rest(base, shared, fleets)`: what needs the nodes' owners, such as queues, login nodes and add-ons.
   - `rows()`, `hourly_units()`, `billing_starts()`, `node_units(fleet)`, `describe()` and `outputs(cluster_name)`:
     dashboard, costs, what people read, and stack outputs. `price_name(type)` where nodes have other prices than
     EC2's. Units are named in `prices/units.py`; a price that no document states is left out of the price list.
4. `orchestrators/<name>/<name>_cluster.py`: the public construct:

       class SlurmCluster(TrainingCluster):
           @checked
           def __init__(
               self, scope: Construct, id: str, *, slurm: SlurmSettings | None = None,
               **arguments: Unpack[TrainingClusterArguments],
           ) -> None:
               super().__init__(scope, id, _orchestrator=SlurmOrchestrator(slurm or SlurmSettings()), **arguments)

   Export it and its settings in `cdk_training_cluster/__init__.py`, the construct among those that are imported when
   they are asked for.
5. `orchestrators/<name>.py` of the cluster file: the same settings as a cluster file gives them, and their name in
   `orchestrators/choice.py`.

Functions reach nodes through `MadeOwner.settings` alone; no other place switches on kinds.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from aws_cdk import aws_iam as iam

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.core.dashboards.rows import DashboardRow
from cdk_training_cluster.nodes.fleet_owners import AutoScaling, FleetOwners
from cdk_training_cluster.nodes.job_role import make_job_role
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.validation.rule import Problem
from cluster_contract.prices import VOLUME_PRICE, on_demand_price_name
from cluster_contract.spend import HOURS_OF_A_MONTH


@dataclass(frozen=True, kw_only=True)
class Output:
    """An output of the stack.

    Attributes:
        name: Its name.
        value: Its value.
        description: What it is for.
    """

    name: str
    value: str
    description: str


class Orchestrator(FleetOwners):
    """Make what an orchestrator adds to a cluster; the module says what is called when."""

    @property
    @abstractmethod
    def kind(self) -> OrchestratorKind:
        """Which orchestrator it is; the legality table has a column for each."""

    def problems(self, together: ClusterContext) -> Iterator[Problem]:  # noqa: ARG002 - for those that have rules
        """Yield what is wrong with the orchestrator's settings, by themselves and beside the node groups.

        Args:
            together: The node groups, with what holds for them.
        """
        yield from ()

    def warnings(self, together: ClusterContext) -> Iterator[Problem]:  # noqa: ARG002 - for those that have rules
        """Yield what is allowed and will surprise, one sentence a rule.

        Args:
            together: The node groups, with what holds for them.
        """
        yield from ()

    def make_role(self, base: ClusterBase) -> iam.Role:
        """Make the nodes' role; its id is `NodeRole`.

        Args:
            base: What the cluster has.
        """
        return make_node_role(base.scope)

    def make_job_role(self, base: ClusterBase, role: iam.Role) -> iam.Role:
        """Make the jobs' role, or return the nodes' role where jobs have none of their own.

        Args:
            base: What the cluster has.
            role: The nodes' role.
        """
        return make_job_role(base.scope, node_role=role) if self.serves_job_role else role

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:
        """Make what must be there before the nodes' owners.

        Args:
            base: What the cluster has.
            shared: What its nodes share.
            together: Its node groups, with what holds for them.
        """

    def make_rest(self, base: ClusterBase, shared: SharedParts, fleets: Mapping[str, NodeFleet]) -> None:
        """Make what needs the nodes' owners.

        Args:
            base: What the cluster has.
            shared: What its nodes share.
            fleets: The nodes of every group, by its name.
        """

    def rows(self) -> Sequence[DashboardRow]:
        """Return the orchestrator's rows of the dashboard."""
        return ()

    def hourly_units(self) -> Mapping[str, Decimal]:
        """Return what the orchestrator bills by the hour whether or not nodes run, by the names of prices.

        Its own nodes are instances (`own_nodes`) without the cluster's tag, by which the spend function finds nodes.
        """
        return {}

    def billing_starts(self) -> Mapping[str, datetime]:
        """Return from when on units of `hourly_units` are billed that are not billed from the deployment on."""
        return {}

    def node_units(self, fleet: NodeFleet) -> Mapping[str, Decimal]:  # noqa: ARG002 - most bill nothing
        """Return what the orchestrator bills by the hour for each node that runs, by the names in the price list.

        Args:
            fleet: The node group.
        """
        return {}

    def describe(self) -> Iterator[str]:
        """Yield what the orchestrator is made of, a line each, for people."""
        yield from ()

    def outputs(self, cluster_name: str) -> Iterator[Output]:  # noqa: ARG002 - for those that have some
        """Yield the outputs that say how to reach the orchestrator.

        Args:
            cluster_name: The cluster's name.
        """
        yield from ()


def own_nodes(instance_type: str, count: int, *, volume_gib: int = 0) -> dict[str, Decimal]:
    """Return what an orchestrator's own nodes bill by the hour: instances and root volumes.

    Args:
        instance_type: The type of the nodes.
        count: How many there are.
        volume_gib: The size of each one's gp3 root volume, in GiB. Default: - none is billed.
    """
    volumes = Decimal(count * volume_gib) / HOURS_OF_A_MONTH
    units = {on_demand_price_name(instance_type): Decimal(count), VOLUME_PRICE: volumes}
    return {name: units_an_hour for name, units_an_hour in units.items() if units_an_hour}


class NoOrchestrator(AutoScaling, Orchestrator):
    """Launch nodes with Auto Scaling groups and Spot Fleets, and leave jobs to the user."""

    @property
    def kind(self) -> OrchestratorKind:
        """None."""
        return OrchestratorKind.NONE
