"""Stores of checkpoints on the local AWS: they deploy, outlive their stack, and the deployed function reads them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import Stack

from cdk_training_cluster import (
    CheckpointStore,
    ClusterNetwork,
    ExportedCheckpoints,
    ExpressCheckpoints,
    NodeGroup,
    TrainingCluster,
    TrainingFileSystem,
)
from cluster_contract.checkpoints import CheckpointPlace, place_parameter
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal import readback

# The name of use1-az4 in the local AWS.
_ZONE = "us-east-1d"


class _Plan:
    def __init__(self, kind: type[CheckpointStore], zone: str = _ZONE) -> None:
        self._kind, self._zone = kind, zone

    def make(self, stack: Stack, name: str) -> None:
        network = ClusterNetwork(stack, "Network", availability_zone=self._zone)
        store: CheckpointStore
        if self._kind is ExportedCheckpoints:
            files = TrainingFileSystem(stack, "Files", network=network)
            store = ExportedCheckpoints(stack, "Checkpoints", file_system=files)
        else:
            store = ExpressCheckpoints(stack, "Checkpoints", network=network)
        group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
        TrainingCluster(stack, "Cluster", cluster_name=name, network=network, checkpoints=store, node_groups=[group])


def _work(aws: LocalAws, cluster: str, minutes: int) -> None:
    now = datetime.now(UTC)
    for ago in range(0, minutes, 5):
        datum = {
            "MetricName": "nvidia_smi_utilization_gpu",
            "Dimensions": [{"Name": "Cluster", "Value": cluster}],
            "Timestamp": now - timedelta(minutes=ago),
            "Value": 97.0,
        }
        aws.client("cloudwatch").put_metric_data(Namespace=f"CdkTrainingCluster/Nodes/{cluster}", MetricData=[datum])


@pytest.mark.parametrize("kind", [ExportedCheckpoints, ExpressCheckpoints])
def test_the_deployed_function_sees_a_new_checkpoint_and_the_bucket_outlives_the_stack(
    aws: LocalAws, tmp_path: Path, kind: type[CheckpointStore]
) -> None:
    name = kind.__name__.lower()
    prepare(aws, ["g5.xlarge"])
    cluster = Deployed(aws, tmp_path, name)
    cluster.deploy(cast(Any, _Plan(kind)))
    assert (cluster.failures, cluster.status) == ([], "CREATE_COMPLETE")
    said = aws.client("ssm").get_parameter(Name=place_parameter(name))["Parameter"]["Value"]
    place = CheckpointPlace.parse(said)
    s3 = aws.client("s3express")
    if kind is ExpressCheckpoints:
        assert s3.get_bucket_lifecycle_configuration(Bucket=place.bucket)["Rules"]
        assert "lifecycle.s3.amazonaws.com" in s3.get_bucket_policy(Bucket=place.bucket)["Policy"]
    general = [bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]]
    assert (place.bucket in general) == (kind is ExportedCheckpoints)
    ((configuration, code),) = (
        one
        for one in readback.functions(aws.client, name, aws.account, aws.region)
        if one[0]["Handler"].startswith("cluster_checkpoints.")
    )
    function = DeployedFunction(configuration, code, tmp_path, aws.environment())
    _work(aws, name, 40)
    s3.put_object(Bucket=place.bucket, Key="step-1/w.pt", Body=b"w")
    report = function({"action": "tick"})
    assert (report["newest_checkpoint"], report["accelerators_work"]) == (None, True)
    assert report["minutes_of_work_without_checkpoint"] >= 30
    s3.put_object(Bucket=place.bucket, Key="step-1/.metadata", Body=b"m")
    report = function({"action": "tick"})
    assert report["newest_checkpoint"]["name"] == "step-1"
    assert report["minutes_of_work_without_checkpoint"] == 0
    cluster.destroy()
    assert not cluster.exists, cluster.failures
    listed = s3.list_objects_v2(Bucket=place.bucket)["Contents"]
    assert {one["Key"] for one in listed} == {"step-1/w.pt", "step-1/.metadata"}


def test_a_zone_without_s3_express_fails_the_deployment_and_leaves_nothing(aws: LocalAws, tmp_path: Path) -> None:
    cluster = Deployed(aws, tmp_path, "elsewhere")
    cluster.deploy(cast(Any, _Plan(ExpressCheckpoints, "us-east-1b")))
    assert cluster.status == "ROLLBACK_COMPLETE"
    assert any("The specified location-constraint is not valid" in failure for failure in cluster.failures)
