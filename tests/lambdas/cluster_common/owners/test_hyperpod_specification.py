"""What a new instance count leaves of an instance group that UpdateCluster takes as a whole."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.hyperpod_instance_groups import KEPT
from cluster_contract.owners import OwnerKind
from stubbed_owners import NOW, StubbedAws

ARN = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
GROUP = {"InstanceGroupName": "workers", "ExecutionRole": "arn:aws:iam::111122223333:role/nodes"}
SOON = NOW + timedelta(days=1)
DATES = {"CurrentPatchSchedule": {"NextPatchDate": NOW}, "DesiredPatchSchedule": {"NextPatchDate": SOON}}
IMAGES = {"CurrentImageId": "ami-11111111", "DesiredImageId": "ami-22222222"}
TYPES = ["ml.p5.48xlarge", "ml.p5en.48xlarge"]

# The members that are described by other names: what is described, and what is sent with 3 nodes.
RENAMED: dict[str, tuple[dict[str, Any], Any]] = {
    "MinInstanceCount": ({"MinCount": 5}, 3),
    "ImageId": (IMAGES, "ami-22222222"),
    "ImageReleaseVersion": ({"DesiredImageReleaseVersion": "1.2.3", **IMAGES}, "1.2.3"),
    "AutoPatchConfig": (
        {"AutoPatchConfig": {"PatchingStrategy": "WhenIdle", **DATES}},
        {"PatchingStrategy": "WhenIdle", "PatchSchedule": {"NextPatchDate": SOON}},
    ),
    "InstanceRequirements": ({"InstanceRequirements": {"DesiredInstanceTypes": TYPES}}, {"InstanceTypes": TYPES}),
    "KubernetesConfig": ({"KubernetesConfig": {"DesiredLabels": {"team": "a"}}}, {"Labels": {"team": "a"}}),
}


@pytest.mark.parametrize("member", RENAMED)
def test_what_is_described_by_another_name_is_kept(member: str) -> None:
    aws, (described, sent) = StubbedAws(), RENAMED[member]
    groups = [{**GROUP, "TargetCount": 8, **described}]
    answer = {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": groups}
    aws.expect("sagemaker.describe_cluster", {"ClusterName": "pod"}, answer)
    update = {"ClusterName": "pod", "InstanceGroups": [{**GROUP, "InstanceCount": 3, member: sent}]}
    aws.expect("sagemaker.update_cluster", update, {"ClusterArn": ARN})
    group = OwnedGroup(name="pod/workers", node_group="workers", desired=8, minimum=0, maximum=8, in_service=0)
    aws.owner(OwnerKind.HYPERPOD_INSTANCE_GROUP, "pod/workers").set_size(group, 3)
    aws.check()


def test_nothing_that_update_cluster_takes_is_left_out() -> None:
    model = StubbedAws().client("sagemaker").meta.service_model
    assert set(model.shape_for("ClusterInstanceGroupSpecification").members) == {*KEPT, *RENAMED, "InstanceCount"}
