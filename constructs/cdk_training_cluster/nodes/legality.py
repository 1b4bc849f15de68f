"""Which ways to buy and place nodes each orchestrator takes, as a table of which the rules are made.

What an orchestrator takes under conditions of its own, such as equal vCPUs, is in the orchestrator's own rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind


class Choice(Enum):
    """A choice about nodes that not every orchestrator takes; the value is what the table calls it."""

    ON_DEMAND = "Capacity.on_demand()"
    RESERVATION = "Capacity.reservation()"
    FROM_RESERVATION = "Capacity.from_reservation()"
    CAPACITY_BLOCK = "Capacity.capacity_block()"
    TRAINING_PLAN = "Capacity.training_plan()"
    PRIORITIZED = "Capacity.prioritized()"
    SPOT = "Capacity.spot()"
    SPOT_FLEET = "Capacity.spot_fleet()"
    CLUSTER_PLACEMENT = "Placement.CLUSTER"
    BANDWIDTH_OPTIMISED = "InterfaceLayout.BANDWIDTH_OPTIMISED"
    WARM_POOL = "warm_pool"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What an orchestrator does with a choice.

    Attributes:
        how: How it takes it, in a few words; of what it does not take "no", and what goes instead.
        instead: Why it does not, and what to use. Empty: it takes it.
        source: Where AWS says so.
        inferred: Whether no document says that it does: the rule is a warning.
    """

    how: str
    instead: str = ""
    source: str = ""
    inferred: bool = False


def _takes(how: str = "yes", source: str = "") -> Cell:
    return Cell(how=how, source=source)


def _refuses(instead: str, source: str, how: str = "no") -> Cell:
    return Cell(how=how, instead=instead, source=source)


def _inferred(how: str, source: str) -> Cell:
    return Cell(how=how, source=source, inferred=True)


_PCS = "https://docs.aws.amazon.com/pcs/latest"
_PCS_GROUP = f"{_PCS}/APIReference/API_CreateComputeNodeGroup.html"
_EKS = "https://docs.aws.amazon.com/eks/latest"
_EKS_GROUP = f"{_EKS}/APIReference/API_CreateNodegroup.html"
_HYPERPOD = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html"
_HYPERPOD_CAPACITY = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterCapacityRequirements.html"
_HYPERPOD_INTERFACE = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterNetworkInterface.html"
_BATCH = "https://docs.aws.amazon.com/batch/latest"
_BATCH_TEMPLATES = f"{_BATCH}/userguide/launch-templates.html"
_BATCH_RESOURCES = f"{_BATCH}/APIReference/API_ComputeResource.html"
_MULTI_NODE = f"{_BATCH}/userguide/mnp-ce.html"

_PLAN = "launches into capacity that SageMaker reserves; buy a training plan and use {training_plan}"
_NO_PLAN = "launches no nodes of a SageMaker training plan; use HyperPod, or {on_demand}"
_PLANS = "https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html"
_IN_TURN = (
    "buys the nodes of a group in one way; make a node group for each way to buy, and let {scheduler} prefer one"
)
_SPOT_INSTEAD = "launches no Spot Fleet; use {spot}"
_NO_WARM_POOL = "keeps no stopped nodes; leave warm_pool out"

_TAKES_ALL = dict.fromkeys(Choice, _takes()) | {Choice.TRAINING_PLAN: _refuses(_NO_PLAN, _PLANS)}

_ON_HYPERPOD: Mapping[Choice, Cell] = {
    Choice.ON_DEMAND: _takes(),
    Choice.RESERVATION: _refuses(_PLAN, _HYPERPOD, "no: training plan"),
    Choice.FROM_RESERVATION: _refuses(_PLAN, _HYPERPOD, "no: training plan"),
    Choice.CAPACITY_BLOCK: _refuses(_PLAN, _HYPERPOD, "no: training plan"),
    Choice.TRAINING_PLAN: _takes(),
    Choice.PRIORITIZED: _refuses(_PLAN, _HYPERPOD, "no: training plan"),
    Choice.SPOT_FLEET: _refuses("launches no Spot Fleet; use {on_demand}", _HYPERPOD_CAPACITY),
    Choice.CLUSTER_PLACEMENT: _refuses("places nodes itself; leave placement out", _HYPERPOD),
    Choice.BANDWIDTH_OPTIMISED: _refuses(
        "gives each network card an interface efa or efa-only; leave interface_layout out",
        _HYPERPOD_INTERFACE,
        "no: efa or efa-only",
    ),
    Choice.WARM_POOL: _refuses(_NO_WARM_POOL, _HYPERPOD),
}

LEGALITY: Mapping[OrchestratorKind, Mapping[Choice, Cell]] = {
    OrchestratorKind.NONE: _TAKES_ALL,
    OrchestratorKind.SLURM: {
        **_TAKES_ALL,
        Choice.RESERVATION: _takes("launch template", f"{_PCS}/userguide/capacity-reservations-odcr.html"),
        Choice.FROM_RESERVATION: _takes("launch template", f"{_PCS}/userguide/capacity-reservations-odcr.html"),
        Choice.CAPACITY_BLOCK: _takes(
            "yes, at most the block's instances", f"{_PCS}/userguide/capacity-blocks-configure-cng.html"
        ),
        Choice.PRIORITIZED: _refuses(_IN_TURN.format(scheduler="Slurm"), _PCS_GROUP, "no: groups and Weight"),
        Choice.SPOT: _takes("equal vCPUs and GPUs", f"{_PCS}/userguide/working-with_cng_create.html"),
        Choice.SPOT_FLEET: _refuses(_SPOT_INSTEAD, _PCS_GROUP),
        Choice.CLUSTER_PLACEMENT: _takes("launch template", f"{_PCS}/userguide/working-with_launch-templates.html"),
        Choice.WARM_POOL: _refuses(_NO_WARM_POOL, _PCS_GROUP),
    },
    OrchestratorKind.EKS: {
        **_TAKES_ALL,
        Choice.RESERVATION: _takes("launch template", f"{_EKS}/userguide/ml-node-groups.html"),
        Choice.FROM_RESERVATION: _takes("launch template", f"{_EKS}/userguide/ml-node-groups.html"),
        Choice.CAPACITY_BLOCK: _takes("yes, created with no nodes", f"{_EKS}/userguide/capacity-blocks-mng.html"),
        Choice.PRIORITIZED: _refuses(_IN_TURN.format(scheduler="Kueue"), _EKS_GROUP, "no: groups and Kueue flavours"),
        Choice.SPOT_FLEET: _refuses(_SPOT_INSTEAD, _EKS_GROUP),
        Choice.CLUSTER_PLACEMENT: _takes("launch template", f"{_EKS}/userguide/launch-templates.html"),
        Choice.WARM_POOL: _takes("with EKS's own images", f"{_EKS}/userguide/warm-pools-managed-node-groups.html"),
    },
    OrchestratorKind.HYPERPOD_SLURM: {
        **_ON_HYPERPOD,
        Choice.SPOT: _refuses(
            "buys Spot Instances on EKS alone; use {on_demand}, or HyperPod on EKS",
            _HYPERPOD_CAPACITY,
            "no: EKS only",
        ),
    },
    OrchestratorKind.HYPERPOD_EKS: {
        **_ON_HYPERPOD,
        Choice.SPOT: _takes("yes, not for elastic jobs", _HYPERPOD_CAPACITY),
    },
    OrchestratorKind.BATCH: {
        **_TAKES_ALL,
        Choice.RESERVATION: _inferred("launch template", _BATCH_TEMPLATES),
        Choice.FROM_RESERVATION: _inferred("launch template", _BATCH_TEMPLATES),
        # The page says that Batch ignores market options; AWS's own example for P6 sets them:
        # https://github.com/aws-samples/awsome-distributed-training/tree/main/1.architectures/3.aws-batch
        Choice.CAPACITY_BLOCK: _inferred("launch template", _BATCH_TEMPLATES),
        # The library's own choice: one launch template, which names what is reserved, and one type an environment.
        Choice.PRIORITIZED: _refuses(
            "gets one compute environment a node group from this library, with one way to buy its nodes; make a node "
            "group for each way to buy, and list them in a queue, the best first",
            _BATCH_RESOURCES,
            "no: groups in a queue's order",
        ),
        Choice.SPOT: _refuses("runs no multi-node jobs on Spot Instances; use {on_demand}", _MULTI_NODE),
        Choice.SPOT_FLEET: _refuses("runs no multi-node jobs on Spot Instances; use {on_demand}", _MULTI_NODE),
        Choice.CLUSTER_PLACEMENT: _takes("compute environment", _MULTI_NODE),
        Choice.BANDWIDTH_OPTIMISED: _takes(
            "yes, with the devices in the job definition", f"{_BATCH}/userguide/efa.html"
        ),
        Choice.WARM_POOL: _refuses(_NO_WARM_POOL, _BATCH_RESOURCES),
    },
}
"""For each orchestrator, each choice."""
