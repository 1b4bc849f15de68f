"""What a cluster on SageMaker HyperPod is made of, and what it refuses."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, DefaultStackSynthesizer, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    Capacity,
    ClusterNetwork,
    DeepHealthCheck,
    HyperPodCluster,
    HyperPodOrchestration,
    HyperPodSettings,
    NodeGroup,
    NodeRecovery,
    TrainingFileSystem,
)
from cluster_plans import existing_network
from hyperpod_settings import ARN, EKS, GROUP, WORKERS
from max_seconds import MAX_SECONDS
from synthesis import ZONE, new_stack

IMAGE = "ami-0a1b2c3d4e5f67890"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/llama"
PLANNED = NodeGroup("planned", instance_types=["p5.48xlarge"], count=4, capacity=Capacity.training_plan(PLAN))
SPOT = NodeGroup("extra", instance_types=["g6e.48xlarge"], count=2, capacity=Capacity.spot())
BOX = NodeGroup("box", instance_types=["g5.xlarge"], count=1)


def _made(
    groups: list[NodeGroup],
    *,
    name: str = "llama",
    files: bool = False,
    encryption_key: str | None = None,
    **hyperpod: Any,
) -> Template:
    stack = new_stack()
    if hyperpod.get("orchestrator") is HyperPodOrchestration.EKS:
        network = existing_network(stack)
    else:
        network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    HyperPodCluster(
        stack,
        "Llama",
        cluster_name=name,
        network=network,
        file_system=TrainingFileSystem(stack, "Files", network=network, storage_capacity_gib=4800) if files else None,
        node_groups=groups,
        encryption_key=None if encryption_key is None else kms.Key.from_key_arn(stack, "Key", encryption_key),
        hyperpod=HyperPodSettings(**hyperpod),
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def on_slurm() -> Template:
    return _made(
        [WORKERS, PLANNED],
        files=True,
        login_type="ml.m5.xlarge",
        partitions={"workers": "train"},
        deep_health_checks=[DeepHealthCheck.STRESS],
    )


@pytest.fixture(scope="module")
def on_eks() -> Template:
    return _made(
        [WORKERS, SPOT],
        **EKS,
        tiered_storage_percent=20,
        priority_classes={"research": 10, "production": 100},
        node_recovery=NodeRecovery.NONE,
    )


def _cluster(template: Template) -> dict[str, Any]:
    (cluster,) = template.find_resources("AWS::SageMaker::Cluster").values()
    properties: dict[str, Any] = cluster["Properties"]
    return properties


def power_statements(template: Template) -> list[dict[str, Any]]:
    """Return the statements of the power function's role."""
    return [
        statement
        for name, policy in template.find_resources("AWS::IAM::Policy").items()
        if "PowerFunctionServiceRole" in name or "PowerFunctionRole" in name
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def _groups(template: Template) -> dict[str, dict[str, Any]]:
    return {each["InstanceGroupName"]: each for each in _cluster(template)["InstanceGroups"]}


def test_slurm_has_one_controller_and_a_partition_for_each_group(on_slurm: Template) -> None:
    groups = _groups(on_slurm)
    assert {name: each["SlurmConfig"] for name, each in groups.items()} == {
        "controller": {"NodeType": "Controller"},
        "login": {"NodeType": "Login"},
        "workers": {"NodeType": "Compute", "PartitionNames": ["train"]},
        "planned": {"NodeType": "Compute", "PartitionNames": ["planned"]},
    }
    assert groups["planned"]["TrainingPlanArn"] == PLAN
    assert all(
        each["InstanceStorageConfigs"][0]["FsxLustreConfig"]["MountPath"] == "/fsx" for each in groups.values()
    )


def test_no_deployment_waits_for_nodes_rolls_back_for_one_or_ends_those_that_run(
    on_slurm: Template, on_eks: Template
) -> None:
    counts = {"controller": 1, "login": 1, "workers": 8, "planned": 4, "extra": 2}
    for template in (on_slurm, on_eks):
        assert _cluster(template)["NodeProvisioningMode"] == "Continuous"
        for name, group in _groups(template).items():
            assert group["InstanceCount"] == counts[name]
            assert "MinInstanceCount" not in group
    # Continuous provisioning refuses any strategy for Slurm's configuration.
    assert "Orchestrator" not in _cluster(on_slurm)


def test_nodes_on_slurm_are_extended_and_nodes_on_eks_are_set_up(on_slurm: Template, on_eks: Template) -> None:
    assert set(_groups(on_slurm)["workers"]["LifeCycleConfig"]) == {"SourceS3Uri", "OnInitComplete"}
    assert "LifeCycleConfig" not in _groups(on_slurm)["controller"]
    assert set(_groups(on_eks)["workers"]["LifeCycleConfig"]) == {"SourceS3Uri", "OnCreate"}
    assert "SlurmConfig" not in _groups(on_eks)["workers"]


def test_eks_brings_spot_tiered_storage_and_task_governance(on_eks: Template) -> None:
    cluster = _cluster(on_eks)
    assert cluster["Orchestrator"] == {"Eks": {"ClusterArn": ARN}}
    assert cluster["TieredStorageConfig"] == {"Mode": "Enable", "InstanceMemoryAllocationPercentage": 20}
    assert cluster["NodeRecovery"] == "None"
    assert _groups(on_eks)["extra"]["CapacityRequirements"] == {"Spot": {}}
    on_eks.has_resource_properties(
        "AWS::SageMaker::ClusterSchedulerConfig",
        {
            "SchedulerConfig": {
                "FairShare": "Enabled",
                "PriorityClasses": [{"Name": "production", "Weight": 100}, {"Name": "research", "Weight": 10}],
            }
        },
    )


def test_nothing_is_launched_from_a_template_or_into_a_placement_group(on_slurm: Template) -> None:
    for kind in ("AWS::EC2::LaunchTemplate", "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::PlacementGroup"):
        on_slurm.resource_count_is(kind, 0)
    on_slurm.has_resource_properties(
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": {
                "Statement": [Match.object_like({"Principal": {"Service": "sagemaker.amazonaws.com"}})]
            }
        },
    )


def test_a_new_version_of_the_scripts_leaves_the_hyperpod_cluster_as_it_is(on_slurm: Template) -> None:
    """Their place stands in a parameter: an update of the cluster would send the sizes of all groups."""
    (scripts,) = {
        str(each["Properties"]["Value"]).partition("SCRIPTS=")[2][:200]
        for each in on_slurm.find_resources("AWS::SSM::Parameter").values()
        if each["Properties"].get("Name") == "/cdk-training-cluster/llama/hyperpod/workers"
    }
    key = scripts.rpartition("/")[2].partition(".zip")[0]
    assert len(key) == 64
    assert key not in json.dumps(_cluster(on_slurm))


@pytest.mark.parametrize("reachable", [True, False])
def test_the_lifecycle_script_never_fails(tmp_path: Path, *, reachable: bool) -> None:
    from cdk_training_cluster.orchestrators.hyperpod import lifecycle  # noqa: PLC0415 - its template alone

    for folder in ("bin", "opt", "var/log"):
        (tmp_path / folder).mkdir(parents=True)
    script = tmp_path / "set_up.sh"
    script.write_text(lifecycle.SCRIPT % {"parameter": "/p", "namespace": "N", "metric": "[]"})
    answers = "echo 'echo ran; exit 7'" if reachable else "exit 255"
    fakes = {
        "aws": f'echo "$*" >>{tmp_path}/calls; [ "$1" = ssm ] || exit 0; {answers}',
        "curl": "echo us-east-1",
        "sleep": "exit 0",
    }
    for name, body in fakes.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "ROOT": str(tmp_path)}
    done = subprocess.run(["bash", script], env=environment, check=False, timeout=MAX_SECONDS)
    assert done.returncode == 0
    calls = (tmp_path / "calls").read_text()
    log = (tmp_path / "var/log/cdk-training-cluster.log").read_text()
    assert ("ran" in log, "put-metric-data" in calls) == (reachable, not reachable)


def test_nodes_on_eks_are_in_the_security_group_of_the_eks_cluster(on_eks: Template, on_slurm: Template) -> None:
    own, group = _cluster(on_eks)["VpcConfig"]["SecurityGroupIds"]
    assert group == GROUP
    assert "Fn::GetAtt" in own  # the cluster's own group, for EFA and the file system
    assert len(_cluster(on_slurm)["VpcConfig"]["SecurityGroupIds"]) == 1


def test_a_group_runs_an_image_of_the_users_own() -> None:
    own = NodeGroup(
        "own",
        instance_types=["p5.48xlarge"],
        count=1,
        machine_image=ec2.MachineImage.generic_linux({"us-east-1": IMAGE}),
    )
    template = _made([WORKERS, own])
    assert {name: each.get("ImageId") for name, each in _groups(template).items()} == {
        "controller": None,
        "workers": None,
        "own": IMAGE,
    }
    statements = power_statements(template)
    for action in ("ec2:DescribeImages", "ec2:ModifyImageAttribute", "ec2:ModifySnapshotAttribute"):
        assert action in str(statements)


def test_root_volumes_have_the_users_key() -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-0a1b-4c3d-8a1b-0a1b2c3d4e5f"
    template = _made([WORKERS], encryption_key=key)
    for group in _groups(template).values():
        volumes = [each["EbsVolumeConfig"] for each in group["InstanceStorageConfigs"] if "EbsVolumeConfig" in each]
        assert volumes == [{"RootVolume": True, "VolumeKmsKeyId": key}]
    assert "kms:CreateGrant" in str(power_statements(template))


def test_the_role_lists_its_scripts_with_and_without_a_slash_at_the_end(on_slurm: Template) -> None:
    """How HyperPod spells the prefix is not documented."""
    statements = [
        each
        for policy in on_slurm.find_resources("AWS::IAM::Policy").values()
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        if each["Action"] == "s3:ListBucket" and "hyperpod-" in str(each)
    ]
    for each in statements:
        bare, below = each["Condition"]["StringLike"]["s3:prefix"]
        assert below == f"{bare}/*"
    assert len(statements) == 2


def test_nodes_on_eks_read_the_parameter_of_their_group_and_list_none(on_eks: Template) -> None:
    policies = on_eks.find_resources("AWS::IAM::Policy").values()
    statements = [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]
    asked = [each for each in statements if "SetUp" in json.dumps(each["Resource"])]
    assert asked
    assert {json.dumps(each["Action"]) for each in asked} == {'"ssm:GetParameter"'}


def test_the_cluster_waits_for_the_permissions_of_its_role(on_slurm: Template) -> None:
    (cluster,) = on_slurm.find_resources("AWS::SageMaker::Cluster").values()
    policies = on_slurm.find_resources("AWS::IAM::Policy")
    [own] = [name for name, each in policies.items() if "CreateNetworkInterfacePermission" in json.dumps(each)]
    assert own in cluster["DependsOn"]


@pytest.mark.parametrize("name", ["a" * 64, "under_score", "dash-"])
def test_a_name_that_sagemaker_refuses_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"cluster_name must be known .* 63 letters, digits and hyphens"):
        _made([WORKERS], name=name)


def test_a_synthesizer_that_cannot_publish_the_script_is_refused_in_one_sentence() -> None:
    stack = Stack(App(), "Own", synthesizer=DefaultStackSynthesizer(qualifier="own"))
    with pytest.raises(
        ValueError, match=r"^synthesizer must be left out of a stack with HyperPod.*bootstrapQualifier$"
    ):
        HyperPodCluster(stack, "Llama", cluster_name="llama", availability_zone=ZONE, node_groups=[WORKERS])
