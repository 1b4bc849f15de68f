"""Every way to buy and place nodes, with every orchestrator: taken, refused in one sentence, or warned of."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, InterfaceLayout, NodeGroup, Placement, WarmPool
from cdk_training_cluster.nodes.legality import LEGALITY, Choice
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules import (
    ORCHESTRATOR_RULES,
    NodeGroupContext,
    node_group_problems,
    node_group_warnings,
)
from cdk_training_cluster.validation.words import CLUSTER_FILE

_ID = "cr-0a1b2c3d4e5f67890"
_PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama"

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "on_demand": {"capacity": Capacity.on_demand()},
    "reservation": {"capacity": Capacity.reservation(end=UNTIL_CANCELLED)},
    "from_reservation": {"capacity": Capacity.from_reservation(_ID)},
    "capacity_block": {"capacity": Capacity.capacity_block(_ID)},
    "training_plan": {"capacity": Capacity.training_plan(_PLAN)},
    "prioritized": {"capacity": Capacity.prioritized(reservations=[_ID])},
    "spot": {"capacity": Capacity.spot()},
    "spot_fleet": {"capacity": Capacity.spot_fleet()},
    "cluster_placement": {"placement": Placement.CLUSTER},
    "bandwidth_optimised": {"interface_layout": InterfaceLayout.BANDWIDTH_OPTIMISED},
    "warm_pool": {"warm_pool": WarmPool(size=2)},
}

_YES, _NO, _INFERRED = "yes", "no", "inferred"

# Columns: none, slurm, eks, hyperpod on slurm, hyperpod on eks, batch.
_TABLE = {
    "on_demand": (_YES, _YES, _YES, _YES, _YES, _YES),
    "reservation": (_YES, _YES, _YES, _NO, _NO, _INFERRED),
    "from_reservation": (_YES, _YES, _YES, _NO, _NO, _INFERRED),
    "capacity_block": (_YES, _YES, _YES, _NO, _NO, _INFERRED),
    "training_plan": (_NO, _NO, _NO, _YES, _YES, _NO),
    "prioritized": (_YES, _NO, _NO, _NO, _NO, _NO),
    "spot": (_YES, _YES, _YES, _NO, _YES, _NO),
    "spot_fleet": (_YES, _NO, _NO, _NO, _NO, _NO),
    "cluster_placement": (_YES, _YES, _YES, _NO, _NO, _YES),
    "bandwidth_optimised": (_YES, _YES, _YES, _NO, _NO, _YES),
    "warm_pool": (_YES, _NO, _YES, _NO, _NO, _NO),
}

_CELLS = [
    pytest.param(kind, name, expected, id=f"{kind.name.lower()}-{name}")
    for name, row in _TABLE.items()
    for kind, expected in zip(OrchestratorKind, row, strict=True)
]


def _context(kind: OrchestratorKind, name: str, **words: Any) -> NodeGroupContext:
    group = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8, **_SETTINGS[name])
    return NodeGroupContext.of(group, orchestrator=kind, **words)


@pytest.mark.parametrize(("kind", "name", "expected"), _CELLS)
def test_an_orchestrator_takes_what_its_service_takes(kind: OrchestratorKind, name: str, expected: str) -> None:
    context = _context(kind, name)
    refused = node_group_problems(context, ORCHESTRATOR_RULES)
    warned = node_group_warnings(context, ORCHESTRATOR_RULES)
    assert (len(refused), len(warned)) == {_YES: (0, 0), _NO: (1, 0), _INFERRED: (0, 1)}[expected]
    for problem in refused:
        assert kind.value in problem.message


_SENTENCES = {
    ("slurm", "prioritized"): "capacity must not be Capacity.prioritized() with AWS PCS, which buys the nodes of a "
    "group in one way; make a node group for each way to buy, and let Slurm prefer one",
    ("slurm", "spot_fleet"): "capacity must not be Capacity.spot_fleet() with AWS PCS, which launches no Spot Fleet; "
    "use Capacity.spot()",
    ("slurm", "warm_pool"): "warm_pool must not be given with AWS PCS, which keeps no stopped nodes; leave warm_pool "
    "out",
    ("eks", "prioritized"): "capacity must not be Capacity.prioritized() with Amazon EKS, which buys the nodes of a "
    "group in one way; make a node group for each way to buy, and let Kueue prefer one",
    ("hyperpod_eks", "capacity_block"): "capacity must not be Capacity.capacity_block() with SageMaker HyperPod on "
    "EKS, which launches into capacity that SageMaker reserves; buy a training plan and use Capacity.training_plan()",
    ("hyperpod_slurm", "spot"): "capacity must not be Capacity.spot() with SageMaker HyperPod on Slurm, which buys "
    "Spot Instances on EKS alone; use Capacity.on_demand(), or HyperPod on EKS",
    ("hyperpod_slurm", "cluster_placement"): "placement must not be Placement.CLUSTER with SageMaker HyperPod on "
    "Slurm, which places nodes itself; leave placement out",
    ("hyperpod_eks", "bandwidth_optimised"): "interface_layout must not be InterfaceLayout.BANDWIDTH_OPTIMISED with "
    "SageMaker HyperPod on EKS, which gives each network card an interface efa or efa-only; leave interface_layout "
    "out",
    ("batch", "prioritized"): "capacity must not be Capacity.prioritized() with AWS Batch, which gets one compute "
    "environment a node group from this library, with one way to buy its nodes; make a node group for each way to "
    "buy, and list them in a queue, the best first",
    ("batch", "spot"): "capacity must not be Capacity.spot() with AWS Batch, which runs no multi-node jobs on Spot "
    "Instances; use Capacity.on_demand()",
}


@pytest.mark.parametrize(("cell", "sentence"), _SENTENCES.items(), ids=map("-".join, _SENTENCES))
def test_a_refusal_says_what_to_use_instead(cell: tuple[str, str], sentence: str) -> None:
    kind, name = cell
    (problem,) = node_group_problems(_context(OrchestratorKind[kind.upper()], name), ORCHESTRATOR_RULES)
    assert problem.message == sentence


def test_a_file_is_answered_in_its_own_words() -> None:
    (problem,) = node_group_problems(_context(OrchestratorKind.BATCH, "spot", words=CLUSTER_FILE), ORCHESTRATOR_RULES)
    assert problem.message == (
        "capacity must not be spot with AWS Batch, which runs no multi-node jobs on Spot Instances; use on_demand"
    )


@pytest.mark.parametrize("kind", OrchestratorKind)
def test_a_cell_of_the_page_begins_with_no_if_a_rule_refuses(kind: OrchestratorKind) -> None:
    cells = LEGALITY[kind]
    assert {choice for choice in Choice if re.match(r"no\b", cells[choice].how)} == {
        choice for choice in Choice if cells[choice].instead
    }


def test_what_no_document_says_is_a_warning() -> None:
    found = node_group_warnings(_context(OrchestratorKind.BATCH, "reservation"), ORCHESTRATOR_RULES)
    assert found == {
        "batchReservation": "node group 'workers': capacity is Capacity.reservation(), and no document of AWS says "
        "that AWS Batch takes it: try it with one node before you rely on it"
    }


def test_the_table_is_whole() -> None:
    assert all({*cells} == {*Choice} for cells in LEGALITY.values())
