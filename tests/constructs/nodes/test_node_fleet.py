"""The nodes in the template: interfaces, placement, sizes, image and tags."""

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    ClusterNetwork,
    InstanceTypeInfo,
    NodeGroup,
    Placement,
    TrainingCluster,
    TrainingFileSystem,
    instance_type_info,
)
from cluster_contract.metrics import NODE_METRICS
from synthesis import ZONE, new_stack, only, resources, warnings


def _cluster(
    stack: Stack | None = None, facts: tuple[InstanceTypeInfo, ...] = (), **settings: Any
) -> TrainingCluster:
    group = NodeGroup(**{"name": "workers", "instance_types": ["p4de.24xlarge"], "count": 8, **settings})
    return TrainingCluster(
        stack or new_stack(),
        "Cluster",
        availability_zone=ZONE,
        node_groups=[group],
        cluster_name="pod",
        instance_type_facts=facts,
    )


def _launch_data(cluster: TrainingCluster) -> dict[str, Any]:
    return dict(only(Stack.of(cluster), "AWS::EC2::LaunchTemplate")["Properties"]["LaunchTemplateData"])


def test_the_group_starts_empty_and_may_grow_to_its_count() -> None:
    properties = only(Stack.of(_cluster()), "AWS::AutoScaling::AutoScalingGroup")["Properties"]
    assert (properties["MinSize"], properties["MaxSize"]) == ("0", "8")
    assert "DesiredCapacity" not in properties


def test_a_deployment_leaves_the_sizes_as_it_finds_them() -> None:
    group = only(Stack.of(_cluster()), "AWS::AutoScaling::AutoScalingGroup")
    assert group["UpdatePolicy"] == {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}}


def test_nodes_start_when_their_way_out_is_there() -> None:
    stack = Stack.of(_cluster())
    (route,) = resources(stack, "AWS::EC2::Route", {"NatGatewayId": Match.any_value()})
    needed = {
        route,
        *resources(stack, "AWS::EC2::VPCEndpoint"),
        *resources(stack, "AWS::EC2::SecurityGroupIngress"),
        *resources(stack, "AWS::EC2::SecurityGroupEgress"),
    }
    assert len(needed) == 4
    assert needed <= set(only(stack, "AWS::AutoScaling::AutoScalingGroup")["DependsOn"])


def test_the_placement_group_is_named_on_the_group_and_not_in_the_template() -> None:
    cluster = _cluster()
    stack = Stack.of(cluster)
    (name,) = resources(stack, "AWS::EC2::PlacementGroup", {"Strategy": "cluster"})
    properties = only(stack, "AWS::AutoScaling::AutoScalingGroup")["Properties"]
    assert properties["PlacementGroup"] == {"Ref": name}
    assert "Placement" not in _launch_data(cluster)


def test_a_placement_group_never_has_tags_since_a_new_tag_would_replace_it() -> None:
    stack = new_stack()
    cluster = _cluster(stack)
    Tags.of(stack).add("team", "ml")
    assert only(stack, "AWS::EC2::PlacementGroup")["Properties"] == {"Strategy": "cluster"}
    assert {"Key": "team", "Value": "ml"} in only(stack, "AWS::EC2::LaunchTemplate")["Properties"][
        "LaunchTemplateData"
    ]["TagSpecifications"][0]["Tags"]
    assert cluster.node_group("workers").placement_group is not None


def test_a_dev_box_has_no_placement_group() -> None:
    cluster = _cluster(instance_types=["g5.xlarge"], count=1, placement=Placement.NONE)
    stack = Stack.of(cluster)
    assert resources(stack, "AWS::EC2::PlacementGroup") == {}
    assert "PlacementGroup" not in only(stack, "AWS::AutoScaling::AutoScalingGroup")["Properties"]


def test_interfaces_follow_the_layout_and_carry_the_security_group_themselves() -> None:
    cluster = _cluster()
    data = _launch_data(cluster)
    group = Stack.of(cluster).resolve(cluster.network.security_group.security_group_id)
    assert [
        (card["NetworkCardIndex"], card["DeviceIndex"], card["InterfaceType"]) for card in data["NetworkInterfaces"]
    ] == [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only"), (2, 0, "efa-only"), (3, 0, "efa-only")]
    assert all(card["Groups"] == [group] for card in data["NetworkInterfaces"])
    assert "SecurityGroupIds" not in data
    assert "SecurityGroups" not in data


def test_no_interface_asks_for_a_public_address_or_names_a_subnet() -> None:
    for card in _launch_data(_cluster())["NetworkInterfaces"]:
        assert "AssociatePublicIpAddress" not in card
        assert "SubnetId" not in card


def test_efa_can_be_turned_off() -> None:
    cluster = _cluster(efa=False)
    assert [card["InterfaceType"] for card in _launch_data(cluster)["NetworkInterfaces"]] == ["interface"]
    assert cluster.node_group("workers").efa_interfaces == 0


@pytest.mark.parametrize(
    ("name", "efa"), [("p5.48xlarge", 32), ("p6-b300.48xlarge", 16), ("trn1.32xlarge", 8), ("g5.xlarge", 0)]
)
def test_a_fleet_tells_its_efa_interfaces(name: str, efa: int) -> None:
    assert _cluster(instance_types=[name]).node_group("workers").efa_interfaces == efa


def test_the_metadata_service_wants_a_token_and_the_root_volume_is_encrypted() -> None:
    data = _launch_data(_cluster(root_volume_gib=500))
    assert data["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    assert data["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {"DeleteOnTermination": True, "Encrypted": True, "VolumeSize": 500, "VolumeType": "gp3"},
        }
    ]


@pytest.mark.parametrize(
    ("name", "parameter", "root"),
    [
        (
            "p4de.24xlarge",
            "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id",
            "/dev/xvda",
        ),
        (
            "g5g.xlarge",
            "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id",
            "/dev/xvda",
        ),
        ("trn1.32xlarge", "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id", "/dev/sda1"),
        ("trn2.48xlarge", "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id", "/dev/sda1"),
        ("inf2.xlarge", "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id", "/dev/sda1"),
    ],
)
def test_the_image_fits_architecture_and_accelerator(name: str, parameter: str, root: str) -> None:
    cluster = _cluster(instance_types=[name], placement=Placement.NONE)
    stack = Stack.of(cluster)
    images = Template.from_stack(stack).find_parameters(
        "*", {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"}
    )
    assert [image["Default"] for image in images.values()] == [parameter]
    data = _launch_data(cluster)
    assert data["ImageId"] == {"Ref": next(iter(images))}
    assert data["BlockDeviceMappings"][0]["DeviceName"] == root


@pytest.mark.parametrize(("name", "gib"), [("p4de.24xlarge", 200), ("trn1.32xlarge", 512)])
def test_the_root_volume_holds_what_the_image_needs(name: str, gib: int) -> None:
    (mapping,) = _launch_data(_cluster(instance_types=[name]))["BlockDeviceMappings"]
    assert mapping["Ebs"]["VolumeSize"] == gib


def test_the_newest_image_is_a_choice_that_warns() -> None:
    (warning,) = warnings(Stack.of(_cluster()))
    assert warning == (
        "node group 'workers' takes the newest image of /aws/service/deeplearning/ami/x86_64/"
        "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id: a later deployment may move drivers under a "
        "running fleet. Pin the image you have tested with machine_image. [ack: cdk-training-cluster:latestImage]"
    )


@pytest.mark.parametrize(
    ("name", "mounts", "warned"),
    [("trn1.32xlarge", True, True), ("trn1.32xlarge", False, False), ("p4de.24xlarge", True, False)],
)
def test_the_newest_ubuntu_image_may_have_outrun_the_lustre_client(name: str, mounts: bool, warned: bool) -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    TrainingCluster(
        stack,
        "Llama",
        network=network,
        node_groups=[NodeGroup("workers", instance_types=[name], count=2)],
        file_system=TrainingFileSystem(stack, "Files", network=network, storage_capacity_gib=1200)
        if mounts
        else None,
    )
    told = [text for text in warnings(stack) if "[ack: cdk-training-cluster:lustreClient]" in text]
    assert [text.partition(". Pin")[0] for text in told] == [
        "node group 'workers' mounts a file system, and the newest image of "
        "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id has no Lustre client: each node installs the "
        "one for its kernel at first boot, and cannot be set up while FSx for Lustre has none for a newer kernel"
    ] * warned


def test_an_image_of_one_s_own_is_taken_as_it_is() -> None:
    image = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})
    cluster = _cluster(machine_image=image, root_device_name="/dev/sda1")
    data = _launch_data(cluster)
    assert data["ImageId"] == "ami-0a1b2c3d4e5f67890"
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"
    assert warnings(Stack.of(cluster)) == []


def test_instances_and_volumes_carry_the_tags_by_which_they_are_found() -> None:
    specifications = _launch_data(_cluster())["TagSpecifications"]
    assert [specification["ResourceType"] for specification in specifications] == ["instance", "volume"]
    for specification in specifications:
        assert {tag["Key"]: tag["Value"] for tag in specification["Tags"]} == {
            "Name": "pod/workers",
            "cdk-training-cluster:cluster": "pod",
            "cdk-training-cluster:node-group": "workers",
        }


def test_the_group_carries_them_too() -> None:
    tags = only(Stack.of(_cluster()), "AWS::AutoScaling::AutoScalingGroup")["Properties"]["Tags"]
    assert {(tag["Key"], tag["Value"], tag["PropagateAtLaunch"]) for tag in tags} >= {
        ("cdk-training-cluster:cluster", "pod", True),
        ("cdk-training-cluster:node-group", "workers", True),
    }


def test_facts_of_a_type_newer_than_the_catalog_are_taken() -> None:
    facts = replace(instance_type_info("p5.48xlarge"), name="p9.48xlarge")
    cluster = _cluster(facts=(facts,), instance_types=["p9.48xlarge"])
    assert _launch_data(cluster)["InstanceType"] == "p9.48xlarge"
    assert cluster.node_group("workers").efa_interfaces == 32


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("p4de.24xlarge", NODE_METRICS.gpu_utilization),
        ("trn1.32xlarge", NODE_METRICS.neuron_core_utilization),
    ],
)
def test_utilization_is_read_where_the_nodes_report_it(name: str, metric: str) -> None:
    cluster = _cluster(instance_types=[name])
    fleet = cluster.node_group("workers").metric_gpu_utilization()
    assert (fleet.namespace, fleet.metric_name) == (NODE_METRICS.namespace, metric)
    assert fleet.dimensions == {"Cluster": "pod", "NodeGroup": "workers"}
    whole = cluster.metric_gpu_utilization(statistic="Maximum")
    assert (whole.metric_name, whole.dimensions, whole.statistic) == (metric, {"Cluster": "pod"}, "Maximum")
