"""What a cluster whose jobs run on Slurm is made of."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    Capacity,
    Dataset,
    GpuSharing,
    LoginNodes,
    NodeGroup,
    SlurmCluster,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)
from cluster_contract.tags import CLUSTER_TAG
from synthesis import ZONE, new_stack

RESERVED = NodeGroup(
    "reserved", instance_types=["p5.48xlarge"], count=8, capacity=Capacity.reservation(end=UNTIL_CANCELLED)
)
SPOT = NodeGroup("extra", instance_types=["p4d.24xlarge"], count=4, capacity=Capacity.spot())
BLOCK = NodeGroup(
    "block", instance_types=["p5.48xlarge"], count=4, capacity=Capacity.capacity_block("cr-0a1b2c3d4e5f67890")
)

DIVIDED = NodeGroup("cut", instance_types=["p5.48xlarge"], count=1, efa=False, gpu_sharing=GpuSharing.mig("1g.10gb"))


def cluster(groups: Sequence[NodeGroup], **slurm: Any) -> SlurmCluster:
    return SlurmCluster(
        new_stack(),
        "Llama",
        cluster_name="llama",
        availability_zone=ZONE,
        node_groups=groups,
        slurm=SlurmSettings(**slurm),
    )


@pytest.fixture(scope="module")
def template() -> Template:
    stack = new_stack()
    SlurmCluster(
        stack,
        "Llama",
        cluster_name="llama",
        availability_zone=ZONE,
        node_groups=[RESERVED, SPOT, BLOCK],
        datasets=[Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data")],
        slurm=SlurmSettings(
            queues=[SlurmQueue("train", node_groups=["reserved", "block"]), SlurmQueue("spare")], accounting_days=90
        ),
    )
    return Template.from_stack(stack)


def group(template: Template, name: str) -> dict[str, Any]:
    [found] = template.find_resources("AWS::PCS::ComputeNodeGroup", {"Properties": {"Name": name}}).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def test_no_deployment_waits_for_capacity_and_none_takes_a_node_from_a_job(template: Template) -> None:
    scaling = {
        name: group(template, name)["ScalingConfiguration"] for name in ("reserved", "extra", "block", "login")
    }
    sizes = {name: (each["MinInstanceCount"], each["MaxInstanceCount"]) for name, each in scaling.items()}
    assert sizes == {"reserved": (0, 8), "extra": (0, 4), "block": (0, 4), "login": (1, 1)}


def test_the_records_of_jobs_are_kept_as_long_as_the_settings_say(template: Template) -> None:
    accounting = {"Mode": "STANDARD", "DefaultPurgeTimeInDays": 90}
    configuration = Match.object_like({"Accounting": accounting})
    template.has_resource_properties("AWS::PCS::Cluster", {"SlurmConfiguration": configuration})


def test_each_group_is_bought_as_its_capacity_says(template: Template) -> None:
    options = {name: group(template, name)["PurchaseOption"] for name in ("reserved", "extra", "block")}
    assert options == {"reserved": "ONDEMAND", "extra": "SPOT", "block": "CAPACITY_BLOCK"}
    # PCS looks for the type in the template of a Capacity Block alone.
    template.has_resource_properties(
        "AWS::EC2::LaunchTemplate",
        {
            "LaunchTemplateData": Match.object_like(
                {"InstanceType": "p5.48xlarge", "InstanceMarketOptions": {"MarketType": "capacity-block"}}
            )
        },
    )
    template.has_resource_properties(
        "AWS::EC2::LaunchTemplate",
        {
            "LaunchTemplateData": Match.object_like(
                {
                    "InstanceType": Match.absent(),
                    "CapacityReservationSpecification": {
                        "CapacityReservationTarget": {"CapacityReservationId": Match.any_value()}
                    },
                }
            )
        },
    )


def test_nodes_may_join_and_pcs_takes_their_role(template: Template) -> None:
    template.has_resource_properties("AWS::IAM::Role", {"Path": "/aws-pcs/"})
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with(
                    [{"Action": "pcs:RegisterComputeNodeGroupInstance", "Effect": "Allow", "Resource": "*"}]
                )
            }
        },
    )


def test_every_interface_has_the_clusters_security_group(template: Template) -> None:
    for resource in template.find_resources("AWS::EC2::LaunchTemplate").values():
        data = resource["Properties"]["LaunchTemplateData"]
        assert all(len(each["Groups"]) == 1 for each in data["NetworkInterfaces"])
        assert "SecurityGroupIds" not in data
        assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"


def test_homes_are_on_the_file_system_of_every_node(template: Template) -> None:
    for resource in template.find_resources("AWS::EC2::LaunchTemplate").values():
        assert " home.sh" in str(resource["Properties"]["LaunchTemplateData"]["UserData"])


def test_the_functions_know_what_ends_nodes(template: Template) -> None:
    assert str(template.to_json()).count("pcs_compute_node_group") >= 3


def test_the_functions_do_not_take_login_nodes_for_nodes_of_the_cluster(template: Template) -> None:
    tagged = {
        name: CLUSTER_TAG in str(each["Properties"]["LaunchTemplateData"]["TagSpecifications"])
        for name, each in template.find_resources("AWS::EC2::LaunchTemplate").items()
    }
    assert [is_tagged for name, is_tagged in tagged.items() if "Login" in name] == [False]
    assert sum(tagged.values()) == 3


def test_logs_of_scheduler_and_jobs_are_delivered(template: Template) -> None:
    kinds = [each["Properties"]["LogType"] for each in template.find_resources("AWS::Logs::DeliverySource").values()]
    assert kinds == ["PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS"]
    deliveries = template.find_resources("AWS::Logs::Delivery")
    assert any(first in deliveries[second]["DependsOn"] for first, second in permutations(deliveries))


def test_queues_and_the_smallest_controller_with_room(template: Template) -> None:
    template.has_resource_properties("AWS::PCS::Cluster", {"Size": "SMALL", "Scheduler": {"Version": "25.11"}})
    queues = {
        each["Properties"]["Name"]: len(each["Properties"]["ComputeNodeGroupConfigurations"])
        for each in template.find_resources("AWS::PCS::Queue").values()
    }
    assert queues == {"train": 2, "spare": 3}


@pytest.mark.parametrize(
    ("groups", "slurm", "sentence"),
    [
        (
            [NodeGroup("many", instance_types=["p5.48xlarge"], count=40)],
            {"size": SlurmSize.SMALL},
            "the size SMALL of AWS PCS has at most 32 nodes, got 41: leave size out",
        ),
        (
            [NodeGroup("many", instance_types=["p5.48xlarge"], count=2048)],
            {},
            "the size LARGE of AWS PCS has at most 2048 nodes, got 2049: make two clusters",
        ),
        (
            [NodeGroup("dear", instance_types=["p5.48xlarge"], count=1, capacity=Capacity.spot(max_price=30))],
            {},
            "max_price must be left out on AWS PCS",
        ),
        (
            [
                NodeGroup(
                    "mixed",
                    instance_types=["p5.48xlarge", "p5en.48xlarge"],
                    count=1,
                    capacity=Capacity.spot(),
                )
            ],
            {},
            "instance_types on AWS PCS must have the same network interfaces, got p5.48xlarge, p5en.48xlarge",
        ),
        (
            [DIVIDED],
            {},
            "use version 26.05, or give Sockets",
        ),
        (
            [NodeGroup("chips", instance_types=["trn2.48xlarge"], count=1)],
            {},
            "AWS publishes no image for trn2.48xlarge on AWS PCS: give your own machine_image",
        ),
        (
            [NodeGroup("older", instance_types=["p3.16xlarge"], count=1, efa=False)],
            {},
            "AWS publishes no Deep Learning image for p3.16xlarge",
        ),
    ],
)
def test_what_aws_pcs_cannot_have_is_refused(
    groups: Sequence[NodeGroup], slurm: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", "[(]")):
        cluster(groups, **slurm)


def test_login_nodes_on_graviton_have_an_image_of_their_architecture() -> None:
    made = cluster([DIVIDED], version=SlurmVersion.V26_05, login=LoginNodes(instance_type="c7g.xlarge"))
    parameters = Template.from_stack(made.pcs_cluster.stack).to_json()["Parameters"].values()
    assert "/aws/service/pcs/ami/dlami-base-ubuntu2404/arm64/latest/ami-id" in {
        each.get("Default") for each in parameters
    }


def test_partitions_of_gpus_run_on_26_05_and_login_nodes_may_be_left_out() -> None:
    made = cluster(
        [DIVIDED],
        version=SlurmVersion.V26_05,
        login=LoginNodes(count=0),
    )
    [only] = Template.from_stack(made.pcs_cluster.stack).find_resources("AWS::PCS::ComputeNodeGroup").values()
    slurm = only["Properties"]["SlurmConfiguration"]
    assert slurm["GresCustomSettings"] == [{"AutoDetect": "nvml"}]
    assert {"ParameterName": "Gres", "ParameterValue": "gpu:1g.10gb:56"} in slurm["SlurmCustomSettings"]
