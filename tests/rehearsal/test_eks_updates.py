"""No deployment lowers a running node group on EKS, whatever CloudFormation sends with an update."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack

from cdk_training_cluster import (
    EksSettings,
    EksTrainingCluster,
    GpuSharing,
    NodeGroup,
    TrainingCluster,
    WarmPool,
)
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from synthesis import ZONE

_TYPE, _COUNT = "p4de.24xlarge", 2


_WORKERS = NodeGroup("workers", instance_types=[_TYPE], count=_COUNT, warm_pool=WarmPool(size=1))


@dataclass(frozen=True)
class _Pod:
    """A cluster on EKS with one node group.

    Attributes:
        group: Settings of the node group.
        node_repair: Whether EKS repairs its nodes.
    """

    group: NodeGroup = _WORKERS
    node_repair: bool = True

    def make(self, stack: Stack, cluster_name: str = "pod") -> TrainingCluster:
        """Make the cluster."""
        return EksTrainingCluster(
            stack,
            "Cluster",
            cluster_name=cluster_name,
            availability_zone=ZONE,
            eks=EksSettings(control_plane_zone="us-east-1a", node_repair=self.node_repair),
            node_groups=[self.group],
        )


_BEFORE = _Pod()
_CHANGES = {
    "repair": replace(_BEFORE, node_repair=False),
    "warm pool": replace(_BEFORE, group=replace(_BEFORE.group, warm_pool=WarmPool(size=2))),
    "sharing": replace(_BEFORE, group=replace(_BEFORE.group, gpu_sharing=GpuSharing.time_slicing(2))),
    "count": replace(_BEFORE, group=replace(_BEFORE.group, count=3)),
}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("aws") / "log.txt") as running:
        prepare(running, [_TYPE])
        yield running


def _group(aws: LocalAws) -> dict[str, Any]:
    eks = aws.client("eks")
    groups = [
        eks.describe_nodegroup(clusterName="pod", nodegroupName=name)["nodegroup"]
        for name in eks.list_nodegroups(clusterName="pod")["nodegroups"]
    ]
    return next(each for each in groups if each["labels"]["cdk-training-cluster/node-group"] == "workers")


def test_no_update_lowers_a_running_group_and_the_next_start_sends_its_settings(
    aws: LocalAws, tmp_path: Path
) -> None:
    cluster = Deployed(aws, tmp_path, "pod")
    cluster.deploy(_BEFORE)
    assert cluster.failures == []
    cluster.say("tick")
    nodes = {each["InstanceId"] for each in cluster.nodes("workers")}
    assert len(nodes) == _COUNT
    group = _group(aws)
    assert (group["nodeRepairConfig"]["enabled"], group["warmPoolConfig"]["maxGroupPreparedCapacity"]) == (True, 1)
    for name, pod in _CHANGES.items():
        cluster.deploy(pod)
        assert cluster.failures == [], name
        assert {each["InstanceId"] for each in cluster.nodes("workers")} == nodes, name
    cluster.deploy(replace(_CHANGES["repair"], group=_CHANGES["sharing"].group))
    cluster.say("stop", reason="the test")
    cluster.say("start")
    group = _group(aws)
    assert group["nodeRepairConfig"]["enabled"] is False
    assert group["labels"]["nvidia.com/device-plugin.config"] == "workers"
    cluster.deploy(_BEFORE)
    cluster.say("stop", reason="the test")
    cluster.say("start")
    assert "nvidia.com/device-plugin.config" not in _group(aws)["labels"]
