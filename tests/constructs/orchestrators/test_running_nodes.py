"""Which orchestrator reboots nodes, which empties idle groups itself, and what sets the size of a group in each."""

import json
from typing import NamedTuple

import pytest
from aws_cdk.assertions import Template

from cdk_training_cluster import NodeGroup, TrainingCluster
from cluster_contract.owners import OwnerKind
from cluster_plans import ORCHESTRATORS, existing_network
from synthesis import ZONE, new_stack


class _Row(NamedTuple):
    """What an orchestrator does with nodes that run.

    `repairs` is the setting by which AWS reboots nodes, on EKS what the power function sends: AWS PCS replaces a node
    that reboots, and of Auto Scaling groups and AWS Batch nothing is set. `empties` says whether idle nodes go
    without the idle function.
    """

    sizes: str
    owner: OwnerKind | None = None
    empties: bool = False
    repairs: str = ""


_HYPERPOD = _Row("sagemaker:UpdateCluster", OwnerKind.HYPERPOD_INSTANCE_GROUP, repairs='"NodeRecovery": "Automatic"')
_TABLE = {
    "none": _Row("autoscaling:SetDesiredCapacity"),
    "slurm": _Row("pcs:UpdateComputeNodeGroup", OwnerKind.PCS_COMPUTE_NODE_GROUP, empties=True),
    "eks": _Row("eks:UpdateNodegroupConfig", OwnerKind.EKS_NODEGROUP, repairs=" repair=nvidia"),
    "hyperpod_slurm": _HYPERPOD,
    "hyperpod_eks": _HYPERPOD,
    "batch": _Row("batch:UpdateComputeEnvironment", OwnerKind.BATCH_COMPUTE_ENVIRONMENT, empties=True),
}


@pytest.mark.parametrize("name", ORCHESTRATORS)
def test_what_an_orchestrator_does_with_nodes_that_run(name: str) -> None:
    row, stack = _TABLE[name], new_stack(account="111122223333")
    groups = [NodeGroup("workers", instance_types=["p5.48xlarge"], count=2)]
    orchestrator = ORCHESTRATORS[name]()
    of_eks = name == "hyperpod_eks"
    cluster = TrainingCluster(
        stack,
        "Cluster",
        availability_zone=None if of_eks else ZONE,
        network=existing_network(stack) if of_eks else None,
        node_groups=groups,
        cluster_name="pod",
        _orchestrator=orchestrator,
    )
    owner = cluster.node_groups[0].owner_settings
    found = (None, False) if owner is None else (owner.kind, owner.scheduler_sized)
    assert found == (row.owner, row.empties)
    template = json.dumps(Template.from_stack(stack).to_json())
    assert [each for each in {one.sizes for one in _TABLE.values()} if f'"{each}"' in template] == [row.sizes]
    repairs = {one.repairs for one in _TABLE.values() if one.repairs}
    assert [each for each in repairs if each in template] == [row.repairs] * bool(row.repairs)
