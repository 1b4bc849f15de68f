"""What a cluster whose jobs run on AWS Batch is made of."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    BatchJob,
    BatchQueue,
    BatchSettings,
    BatchTrainingQueue,
    Capacity,
    Dataset,
    NodeGroup,
    instance_type_info,
)
from cdk_training_cluster.network.interfaces import network_interfaces
from cdk_training_cluster.orchestrators.batch.commands import torchrun_command
from synthesis import ZONE, new_stack, warnings

WORKERS = NodeGroup("workers", instance_types=["p5.48xlarge"], count=4, environment={"NCCL_DEBUG": "WARN"})
RESERVED = NodeGroup(
    "reserved",
    instance_types=["p4d.24xlarge"],
    count=2,
    capacity=Capacity.reservation(end=UNTIL_CANCELLED),
    machine_image=ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"}),
)
JOB = BatchJob("train", image="repository/image:1", command=["run"], node_group="reserved", timeout=Duration.days(2))


@pytest.fixture(scope="module")
def template() -> Template:
    stack = new_stack()
    cluster = BatchTrainingQueue(
        stack,
        "Llama",
        cluster_name="llama",
        availability_zone=ZONE,
        node_groups=[WORKERS, RESERVED],
        datasets=[Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data")],
        batch=BatchSettings(
            queues=[
                BatchQueue("urgent", priority=10, node_groups=["reserved", "workers"]),
                BatchQueue("main", node_groups=["workers"], shares={"research": 0.5}),
            ],
            jobs=[JOB, BatchJob.nccl_test(image="pytorch")],
            capacity_timeout=Duration.hours(4),
            scale_down_delay=Duration.minutes(30),
        ),
    )
    cluster.make_outputs()
    # Of an image that Batch takes, no deployment takes a newer one.
    assert [said.split(" [")[0] for said in warnings(stack) if "latestImage" in said] == []
    return Template.from_stack(stack)


def test_an_environment_starts_at_zero_and_is_changed_in_place(template: Template) -> None:
    resources = {"MinvCpus": 0, "MaxvCpus": 4 * 192, "DesiredvCpus": Match.absent(), "Type": "EC2"}
    template.has_resource_properties(
        "AWS::Batch::ComputeEnvironment",
        {
            "Type": "MANAGED",
            "ReplaceComputeEnvironment": False,
            "ServiceRole": Match.absent(),
            "UpdatePolicy": {"TerminateJobsOnUpdate": False, "JobExecutionTimeoutMinutes": 24 * 60},
            "ComputeResources": {
                **resources,
                "AllocationStrategy": "BEST_FIT_PROGRESSIVE",
                "InstanceTypes": ["p5.48xlarge"],
                "Ec2Configuration": [{"ImageType": "ECS_AL2023_NVIDIA"}],
                "PlacementGroup": Match.any_value(),
                "SecurityGroupIds": Match.absent(),
                "LaunchTemplate": {
                    "Version": {"Fn::GetAtt": [Match.string_like_regexp("workers"), "LatestVersionNumber"]}
                },
                "ScalingPolicy": {"MinScaleDownDelayMinutes": 30},
            },
        },
    )
    template.has_resource_properties(
        "AWS::Batch::ComputeEnvironment",
        {"ComputeResources": {"InstanceTypes": ["p4d.24xlarge"], "Ec2Configuration": Match.absent()}},
    )
    template.resource_count_is("AWS::AutoScaling::AutoScalingGroup", 0)


def test_templates_say_what_batch_lacks_and_nothing_that_it_ignores(template: Template) -> None:
    made = template.find_resources("AWS::EC2::LaunchTemplate").values()
    data = [one["Properties"]["LaunchTemplateData"] for one in made]
    by_batch, own = sorted(data, key=lambda one: "ImageId" in one)
    for one in data:
        assert not {"InstanceType", "IamInstanceProfile", "Placement"} & set(one)
        assert "multipart/mixed" in str(one["UserData"])
        assert "ECS_CONTAINER_STOP_TIMEOUT=120s" in str(one["UserData"])
        assert "ECS_AWSVPC_BLOCK_IMDS=true" in str(one["UserData"])
        assert "JOB_ROLE" not in str(one["UserData"])
    # The container's own interface finds room on card 0, which the type's usual layout fills.
    interfaces = by_batch["NetworkInterfaces"]
    assert [one["DeviceIndex"] for one in interfaces if one["NetworkCardIndex"] == 0] == [0]
    assert [one["InterfaceType"] for one in interfaces] == ["efa", *["efa-only"] * 31]
    assert own["ImageId"] == "ami-0a1b2c3d4e5f67890"
    assert "CapacityReservationId" in str(own["CapacityReservationSpecification"])


def test_a_job_that_can_never_start_ends_with_its_reason(template: Template) -> None:
    waits = {
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE": 600,
        "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT": 600,
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": 4 * 3600,
    }
    limits = [
        {"Action": "CANCEL", "State": "RUNNABLE", "Reason": reason, "MaxTimeSeconds": seconds}
        for reason, seconds in waits.items()
    ]
    template.all_resources_properties("AWS::Batch::JobQueue", {"JobStateTimeLimitActions": limits})
    template.has_resource_properties(
        "AWS::Batch::JobQueue",
        {
            "Priority": 10,
            "SchedulingPolicyArn": Match.absent(),
            "ComputeEnvironmentOrder": [
                {"Order": 1, "ComputeEnvironment": {"Ref": Match.string_like_regexp("reserved")}},
                {"Order": 2, "ComputeEnvironment": {"Ref": Match.string_like_regexp("workers")}},
            ],
        },
    )
    template.has_resource_properties(
        "AWS::Batch::SchedulingPolicy",
        {"FairsharePolicy": {"ShareDistribution": [{"ShareIdentifier": "research", "WeightFactor": 0.5}]}},
    )


def test_a_container_has_all_of_its_node(template: Template) -> None:
    (found,) = template.find_resources(
        "AWS::Batch::JobDefinition", {"Properties": {"JobDefinitionName": "llama-train"}}
    ).values()
    properties = found["Properties"]
    nodes = properties["NodeProperties"]
    (part,) = nodes["NodeRangeProperties"]
    container = part["Container"]
    assert (nodes["NumNodes"], nodes["MainNode"], part["TargetNodes"]) == (2, 0, "0:")
    wanted = {one["Type"]: int(one["Value"]) for one in container["ResourceRequirements"]}
    assert wanted == {"VCPU": 96, "GPU": 8, "MEMORY": int(1_179_648 * 0.9)}
    linux = container["LinuxParameters"]
    assert [one["HostPath"] for one in linux["Devices"]] == [f"/dev/infiniband/uverbs{one}" for one in range(4)]
    assert linux["SharedMemorySize"] == wanted["MEMORY"] // 2
    assert {"Name": "memlock", "SoftLimit": -1, "HardLimit": -1} in container["Ulimits"]
    assert container["MountPoints"] == [{"ContainerPath": "/fsx", "SourceVolume": "fsx"}]
    assert container["Volumes"] == [{"Name": "fsx", "Host": {"SourcePath": "/fsx"}}]
    # Any condition would leave out what a failed node other than the main one looks like.
    assert properties["RetryStrategy"] == {"Attempts": 3}
    assert properties["Timeout"] == {"AttemptDurationSeconds": 2 * 24 * 3600}


def test_outputs_say_how_a_job_is_submitted(template: Template) -> None:
    outputs: dict[str, Any] = template.to_json()["Outputs"]
    assert {"JobQueueUrgent", "JobQueueMain", "SubmitTrainCommand", "SubmitNcclTestCommand"} <= set(outputs)
    assert "--job-definition llama-train" in str(outputs["SubmitTrainCommand"])


def test_the_power_function_limits_what_batch_may_run(template: Template) -> None:
    assert "batch_compute_environment+" in str(template.find_resources("AWS::Lambda::Function"))


@pytest.mark.parametrize("index", [0, 1])
def test_every_node_finds_the_main_one(tmp_path: Path, index: int) -> None:
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/bash\nprintf "%s " "$@"\n')
    torchrun.chmod(0o755)
    (tmp_path / "hostname").write_text("#!/bin/bash\necho 10.0.0.7 10.0.0.8\n")
    (tmp_path / "hostname").chmod(0o755)
    # The main node gets no address of its own from Batch.
    main = {"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "10.0.0.7"} if index else {}
    ran = subprocess.run(
        torchrun_command("/fsx/train.py", ["--lr", "1e-4"], "8"),
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "AWS_BATCH_JOB_NUM_NODES": "2",
            "AWS_BATCH_JOB_NODE_INDEX": str(index),
            **main,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == (
        f"--nnodes 2 --node_rank {index} --nproc_per_node 8 --master_addr 10.0.0.7 --master_port 29500 /fsx/train.py "
        "--lr 1e-4 "
    )


@pytest.mark.parametrize(("name", "efas"), [("p5.48xlarge", 32), ("trn2.48xlarge", 16), ("p6-b300.48xlarge", 16)])
def test_room_for_one_more_interface_costs_no_adapter(name: str, efas: int) -> None:
    info = instance_type_info(name)
    interfaces = network_interfaces(info, free_interface=True)
    assert sum(one.interface_type != "interface" for one in interfaces) == efas
    assert info.network_cards[0].has_room_for(sum(one.card == 0 for one in interfaces) + 1)
