"""The nodes in the template: interfaces, image, volumes, tags, and what they wait for."""

from dataclasses import replace

import pytest
from aws_cdk import Tags
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import Placement, instance_type_info
from cdk_training_cluster.nodes.bootstrap import Mount
from cluster_contract.metrics import NODE_METRICS, node_namespace
from fleet_scene import GROUP, PLACEMENT, TEMPLATE, FleetScene, bought, bought_each, cards
from node_group_cases import OWN_IMAGE
from synthesis import new_stack, resources, warnings

_DLAMI = "/aws/service/deeplearning/ami"
_NVIDIA = "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
_NEURON = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


@pytest.fixture(scope="module")
def workers() -> FleetScene:
    """Return a node group of p4de.24xlarge as most people make it."""
    return bought(instance_types=["p4de.24xlarge"])


def test_nodes_start_when_their_way_out_is_there(workers: FleetScene) -> None:
    (route,) = resources(workers.stack, "AWS::EC2::Route", {"NatGatewayId": Match.any_value()})
    needed = {
        route,
        *resources(workers.stack, "AWS::EC2::VPCEndpoint"),
        *resources(workers.stack, "AWS::EC2::SecurityGroupIngress"),
        *resources(workers.stack, "AWS::EC2::SecurityGroupEgress"),
    }
    assert len(needed) == 4
    (group,) = workers.all(GROUP).values()
    assert needed <= set(group["DependsOn"])


def test_a_placement_group_never_has_tags_since_a_new_tag_would_replace_it() -> None:
    stack = new_stack()
    scene = bought(stack)
    Tags.of(stack).add("team", "ml")
    assert scene.only(PLACEMENT)[1] == {"Strategy": "cluster"}
    assert {"Key": "team", "Value": "ml"} in scene.launch_data()["TagSpecifications"][0]["Tags"]


def test_interfaces_follow_the_layout_and_carry_the_security_group_themselves(workers: FleetScene) -> None:
    data = workers.launch_data()
    group = workers.stack.resolve(workers.network.security_group.security_group_id)
    assert cards(data) == [
        (0, 0, "interface"),
        *((0, 1, "efa-only"), (1, 0, "efa-only"), (2, 0, "efa-only"), (3, 0, "efa-only")),
    ]
    assert workers.fleet.efa_interfaces == 4
    assert {"SecurityGroupIds", "SecurityGroups"}.isdisjoint(data)
    for card in data["NetworkInterfaces"]:
        assert card["Groups"] == [group]
        # Neither asks for a public address nor names the subnet, which is the group's.
        assert {"AssociatePublicIpAddress", "SubnetId"}.isdisjoint(card)
        assert "NetworkCardIndex" in card


def test_the_metadata_service_wants_a_token_and_efa_volume_image_and_device_are_choices() -> None:
    scene = bought(efa=False, root_volume_gib=500, machine_image=OWN_IMAGE, root_device_name="/dev/sda1")
    data = scene.launch_data()
    assert cards(data) == [(0, 0, "interface")]
    assert scene.fleet.efa_interfaces == 0
    assert data["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    assert data["ImageId"] == "ami-0a1b2c3d4e5f67890"
    assert data["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/sda1",
            "Ebs": {"DeleteOnTermination": True, "Encrypted": True, "VolumeSize": 500, "VolumeType": "gp3"},
        }
    ]
    assert not [text for text in warnings(scene.stack) if "latestImage" in text]


# Of each type the parameter of the image, and the root device and its size in GiB that suit it.
_IMAGES = {
    "p4de.24xlarge": (f"{_DLAMI}/x86_64/{_NVIDIA}", "/dev/xvda", 200),
    "g5g.xlarge": (f"{_DLAMI}/arm64/{_NVIDIA}", "/dev/xvda", 200),
    "trn1.32xlarge": (_NEURON, "/dev/sda1", 512),
    "inf2.xlarge": (_NEURON, "/dev/sda1", 512),
}


def test_the_image_fits_architecture_and_accelerator_and_the_root_volume_the_image() -> None:
    scenes = bought_each([{"instance_types": [name], "placement": Placement.NONE} for name in _IMAGES])
    images = Template.from_stack(scenes[0].stack).find_parameters(
        "*", {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"}
    )
    for scene, (parameter, root, gib) in zip(scenes, _IMAGES.values(), strict=True):
        data = scene.launch_data()
        assert images[data["ImageId"]["Ref"]]["Default"] == parameter
        (device,) = data["BlockDeviceMappings"]
        assert (device["DeviceName"], device["Ebs"]["VolumeSize"]) == (root, gib)


def test_the_newest_image_is_a_choice_that_warns(workers: FleetScene) -> None:
    (warning,) = warnings(workers.stack)
    assert warning == (
        "node group 'workers' takes the newest image of /aws/service/deeplearning/ami/x86_64/"
        "base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id: a later deployment may move drivers under a "
        "running fleet. Pin the image you have tested with machine_image. [ack: cdk-training-cluster:latestImage]"
    )


@pytest.mark.parametrize(
    ("name", "mount", "warned"),
    [("trn1.32xlarge", "/fsx", True), ("trn1.32xlarge", None, False), ("p4de.24xlarge", "/fsx", False)],
)
def test_the_newest_ubuntu_image_may_have_outrun_the_lustre_client(
    name: str, mount: str | None, warned: bool
) -> None:
    mounted = mount and Mount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdev", mount_point=mount)
    (scene,) = bought_each([{"instance_types": [name]}], mount=mounted or None)
    told = [text for text in warnings(scene.stack) if "[ack: cdk-training-cluster:lustreClient]" in text]
    assert [text.partition(". Pin")[0] for text in told] == [
        "node group 'workers' mounts a file system, and the newest image of "
        "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id has no Lustre client: each node installs the "
        "one for its kernel at first boot, and cannot be set up while FSx for Lustre has none for a newer kernel"
    ] * warned


@pytest.mark.parametrize(
    ("name", "over_tcp"), [("p5.48xlarge", False), ("trn1.32xlarge", False), ("p4d.24xlarge", True)]
)
def test_nodes_reach_a_file_system_with_efa_over_it_or_say_that_they_do_not(name: str, over_tcp: bool) -> None:
    mount = Mount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdev", efa=True)
    (scene,) = bought_each([{"instance_types": [name]}], mount=mount)
    assert ("MOUNT_EFA" in str(scene.launch_data()["UserData"])) is not over_tcp
    told = [text for text in warnings(scene.stack) if "[ack: cdk-training-cluster:fileSystemOverTcp]" in text]
    assert [text.partition(",")[0] for text in told] == [
        f"node group 'workers' reaches the EFA-enabled file system over TCP on {name}"
    ] * over_tcp


def test_instances_and_volumes_carry_the_tags_by_which_they_are_found(workers: FleetScene) -> None:
    specifications = workers.launch_data()["TagSpecifications"]
    assert [specification["ResourceType"] for specification in specifications] == ["instance", "volume"]
    for specification in specifications:
        assert {tag["Key"]: tag["Value"] for tag in specification["Tags"]} == {
            "Name": "pod/workers",
            "cdk-training-cluster:node-group": "workers",
        }
    tags = workers.only(GROUP)[1]["Tags"]
    assert ("cdk-training-cluster:node-group", "workers", True) in {
        (tag["Key"], tag["Value"], tag["PropagateAtLaunch"]) for tag in tags
    }


def test_facts_of_a_type_newer_than_the_catalog_are_taken() -> None:
    facts = replace(instance_type_info("p5.48xlarge"), name="p9.48xlarge")
    (scene,) = bought_each([{"instance_types": ["p9.48xlarge"]}], instance_type_facts=[facts])
    assert scene.launch_data()["InstanceType"] == "p9.48xlarge"
    assert len(scene.all(TEMPLATE)) == 1
    assert scene.fleet.efa_interfaces == 32


@pytest.mark.parametrize(
    ("name", "metric"),
    [("p4de.24xlarge", NODE_METRICS.gpu_utilization), ("trn1.32xlarge", NODE_METRICS.neuron_core_utilization)],
)
def test_utilization_is_read_where_the_nodes_report_it(name: str, metric: str) -> None:
    read = bought(instance_types=[name]).fleet.metric_gpu_utilization()
    assert (read.namespace, read.metric_name) == (node_namespace("pod"), metric)
    assert read.dimensions == {"Cluster": "pod", "NodeGroup": "workers"}
