"""The security group by which nodes are found: every launch template of a node has it, whoever launches the node."""

from typing import Any

import pytest
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import Capacity, Dataset, NodeGroup, TrainingCluster
from cluster_contract.tags import CLUSTER_TAG
from cluster_plans import ORCHESTRATORS, existing_network
from synthesis import ZONE, new_stack, only, resources

_HYDRATION = {"Handler": "cluster_hydration.handler.handler"}
_DESCRIPTION = {"Name": "/training-cluster/pod/description"}


@pytest.mark.parametrize(
    ("orchestrator", "capacity", "existing"),
    [
        ("none", Capacity.on_demand(), False),
        ("none", Capacity.on_demand(), True),
        ("none", Capacity.spot(), False),
        ("none", Capacity.spot_fleet(), False),
        ("slurm", Capacity.on_demand(), False),
        ("slurm", Capacity.on_demand(), True),
        ("eks", Capacity.on_demand(), False),
        ("batch", Capacity.on_demand(), False),
        ("batch", Capacity.on_demand(), True),
    ],
)
def test_all_nodes_are_in_the_security_group_by_which_they_are_found(
    orchestrator: str, capacity: Capacity, existing: bool
) -> None:
    stack = new_stack(account="111122223333")
    cluster = TrainingCluster(
        stack,
        "Cluster",
        cluster_name="pod",
        **({"network": existing_network(stack)} if existing else {"availability_zone": ZONE}),
        node_groups=[NodeGroup("workers", instance_types=["g6.48xlarge"], count=2, capacity=capacity)],
        datasets=[Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data", preload=True)],
        _orchestrator=ORCHESTRATORS[orchestrator](),
    )
    group = stack.resolve(cluster.network.security_group.security_group_id)
    function = only(stack, "AWS::Lambda::Function", _HYDRATION)["Properties"]["Environment"]["Variables"]
    assert _named(function["CLUSTER_HYDRATION_SETTINGS"]) == group
    assert _named(only(stack, "AWS::SSM::Parameter", _DESCRIPTION)["Properties"]["Value"]) == group
    launched = [
        interface["Groups"]
        for one in resources(stack, "AWS::EC2::LaunchTemplate").values()
        if CLUSTER_TAG in str(one["Properties"]["LaunchTemplateData"]["TagSpecifications"])
        for interface in one["Properties"]["LaunchTemplateData"]["NetworkInterfaces"]
    ]
    assert launched
    assert all(group in groups for groups in launched)
    # Nothing launches nodes without a launch template.
    assert not resources(stack, "AWS::EC2::Instance")


def _named(value: dict[str, Any]) -> Any:
    """Return the security group in a JSON text that CloudFormation joins."""
    parts = value["Fn::Join"][1]
    (place,) = (number for number, part in enumerate(parts) if str(part).endswith('"security_group":"'))
    return parts[place + 1]
