"""The EKS cluster of a training cluster, and its managed node groups."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    Capacity,
    ClusterNetwork,
    EksSettings,
    EksTrainingCluster,
    NodeGroup,
    TrainingFileSystem,
    WarmPool,
)
from cdk_training_cluster.orchestrators.eks.add_ons import ADD_ONS
from synthesis import ZONE, new_stack

_BLOCK = "cr-0a1b2c3d4e5f67890"
_ROUTE_53 = "arn:aws:iam::111122223333:policy/route-53"
_IMAGE = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})

_GROUPS = [
    NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8, warm_pool=WarmPool(size=2)),
    NodeGroup("block", instance_types=["p5.48xlarge"], count=4, capacity=Capacity.capacity_block(_BLOCK)),
    NodeGroup(
        "reserved", instance_types=["trn1.32xlarge"], count=2, capacity=Capacity.reservation(end=UNTIL_CANCELLED)
    ),
    NodeGroup("spot", instance_types=["g5.48xlarge", "g5.24xlarge"], count=3, capacity=Capacity.spot(), efa=False),
    NodeGroup("own", instance_types=["g6e.48xlarge"], count=1, machine_image=_IMAGE),
]


@pytest.fixture(scope="module")
def template() -> Template:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    EksTrainingCluster(
        stack,
        "Pod",
        cluster_name="pod",
        eks=EksSettings(
            control_plane_zone="us-east-1a",
            release_version="1.36.0-20260818",
            add_ons=["cert-manager", "external-dns"],
            add_on_policies={"external-dns": [_ROUTE_53]},
            private_access_cidrs=["10.8.0.0/16"],
        ),
        network=network,
        file_system=TrainingFileSystem(stack, "Files", network=network),
        encryption_key=kms.Key(stack, "Key"),
        node_groups=_GROUPS,
    ).make_outputs()
    return Template.from_stack(stack)


def _groups(template: Template) -> dict[str, dict[str, Any]]:
    found = template.find_resources("AWS::EKS::Nodegroup").values()
    return {each["Properties"]["Labels"]["cdk-training-cluster/node-group"]: each["Properties"] for each in found}


def _launch(template: Template, group: Mapping[str, Any]) -> dict[str, Any]:
    made = template.to_json()["Resources"][group["LaunchTemplate"]["Id"]["Ref"]]
    return dict(made["Properties"]["LaunchTemplateData"])


def test_nothing_but_the_reservation_is_a_custom_resource(template: Template) -> None:
    types = {each["Type"] for each in template.to_json()["Resources"].values()}
    custom = [each for each in types if each.startswith(("Custom::", "AWS::CloudFormation::"))]
    assert custom == ["Custom::CapacityReservation"]


def test_the_control_plane_is_private_encrypted_logged_and_knows_access_entries_alone(template: Template) -> None:
    template.has_resource_properties(
        "AWS::EKS::Cluster",
        {
            "Name": "pod",
            "Version": "1.36",
            "AccessConfig": {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False},
            "BootstrapSelfManagedAddons": False,
            "EncryptionConfig": [{"Resources": ["secrets"], "Provider": Match.any_value()}],
            "Logging": {"ClusterLogging": {"EnabledTypes": [{"Type": each} for each in _LOGS]}},
            "ResourcesVpcConfig": {
                "EndpointPrivateAccess": True,
                "EndpointPublicAccess": False,
                "SubnetIds": Match.any_value(),
            },
            "ComputeConfig": Match.absent(),
        },
    )
    template.has_resource_properties("AWS::Logs::LogGroup", {"LogGroupName": "/aws/eks/pod/cluster"})
    template.has_resource_properties(
        "AWS::EKS::AccessEntry",
        {"AccessPolicies": [{"AccessScope": {"Type": "cluster"}, "PolicyArn": Match.any_value()}]},
    )


def test_the_private_api_lets_in_the_ranges_that_are_named_beside_the_nodes(template: Template) -> None:
    cluster = next(iter(template.find_resources("AWS::EKS::Cluster")))
    found = template.find_resources(
        "AWS::EC2::SecurityGroupIngress",
        {"Properties": {"GroupId": {"Fn::GetAtt": [cluster, "ClusterSecurityGroupId"]}}},
    ).values()
    rules = [{name: each["Properties"].get(name) for name in ("CidrIp", "FromPort", "ToPort")} for each in found]
    assert rules == [{"CidrIp": "10.8.0.0/16", "FromPort": 443, "ToPort": 443}]


_LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def test_the_control_plane_has_a_second_zone_in_a_range_that_nothing_else_uses(template: Template) -> None:
    subnets = template.find_resources("AWS::EC2::Subnet").values()
    ranges = {each["Properties"]["CidrBlock"]: each["Properties"]["AvailabilityZone"] for each in subnets}
    assert ranges == {"10.0.0.0/24": ZONE, "10.0.128.0/17": ZONE, "10.0.1.0/24": "us-east-1a"}


def test_pods_fill_a_node_before_the_next_and_accelerators_count_most(template: Template) -> None:
    cluster = next(iter(template.find_resources("AWS::EKS::Cluster").values()))["Properties"]
    strategy = cluster["KubeSchedulerConfig"]["NodeResourcesFit"]["ScoringStrategy"]
    assert strategy["Type"] == "MostAllocated"
    weights = {each["Name"]: each["Weight"] for each in strategy["Resources"]}
    assert weights["nvidia.com/gpu"] > weights["cpu"] > 0


def test_groups_are_made_with_no_nodes_and_with_sizes_that_never_follow_their_count(template: Template) -> None:
    groups = _groups(template)
    del groups["system"]
    assert {str(each["ScalingConfig"]) for each in groups.values()} == {
        str({"DesiredSize": 0, "MaxSize": 450, "MinSize": 0})
    }


def test_types_and_images_stand_in_one_place_each(template: Template) -> None:
    said = {
        name: (
            each["CapacityType"],
            each.get("InstanceTypes"),
            each.get("AmiType"),
            each.get("ReleaseVersion"),
            _launch(template, each).get("InstanceType"),
            "ImageId" in _launch(template, each),
        )
        for name, each in _groups(template).items()
        if name != "system"
    }
    release = "1.36.0-20260818"
    assert said == {
        "workers": ("ON_DEMAND", ["p4de.24xlarge"], "AL2023_x86_64_NVIDIA", release, None, False),
        "block": ("CAPACITY_BLOCK", None, "AL2023_x86_64_NVIDIA", release, "p5.48xlarge", False),
        "reserved": ("ON_DEMAND", ["trn1.32xlarge"], "AL2023_x86_64_NEURON", release, None, False),
        "spot": ("SPOT", ["g5.48xlarge", "g5.24xlarge"], "AL2023_x86_64_NVIDIA", release, None, False),
        "own": ("ON_DEMAND", ["g6e.48xlarge"], None, None, None, True),
    }


def test_a_deployment_updates_system_nodes_as_well(template: Template) -> None:
    system = _groups(template)["system"]
    assert (system["Version"], system["ReleaseVersion"]) == ("1.36", "1.36.0-20260818")


def test_launch_templates_hold_what_eks_takes_and_nothing_that_it_refuses(template: Template) -> None:
    cluster = next(iter(template.find_resources("AWS::EKS::Cluster")))
    for name, group in _groups(template).items():
        if name == "system":
            continue
        launch = _launch(template, group)
        assert "IamInstanceProfile" not in launch, name
        for interface in launch["NetworkInterfaces"]:
            assert "SubnetId" not in interface, name
            assert {"Fn::GetAtt": [cluster, "ClusterSecurityGroupId"]} in interface["Groups"], name
        assert launch["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvda", name
        text = json.dumps(launch["UserData"])
        assert "MIME-Version: 1.0" in text, name
        # Only a node with an image of its own has to be told which cluster it joins.
        assert ("apiServerEndpoint" in text) == (name == "own"), name
        assert "LAUNCH_HOOK=''" in text, name
        # A node that was stopped would not join the cluster again with them.
        assert ("localStorage" in text) == (name != "workers"), name
        # One program takes them: nodeadm fails on disks in use, before the kubelet.
        assert ("DISKS_TAKEN" in text) == ("localStorage" in text), name
    assert "CapacityReservationId" in str(_launch(template, _groups(template)["reserved"]))
    assert "GroupName" in str(_launch(template, _groups(template)["workers"])["Placement"])


def test_system_nodes_are_no_nodes_of_the_cluster_to_the_functions(template: Template) -> None:
    groups = _groups(template)
    tagged = {
        name for name, group in groups.items() if "cdk-training-cluster:cluster" in str(_launch(template, group))
    }
    assert tagged == set(groups) - {"system"}


def test_labels_and_taints_say_what_a_node_is_for(template: Template) -> None:
    taints = {
        name: [(each["Key"], each["Effect"]) for each in group.get("Taints", [])]
        for name, group in _groups(template).items()
    }
    gpu = ("nvidia.com/gpu", "NO_SCHEDULE")
    assert taints == {
        "system": [],
        "workers": [gpu],
        "block": [gpu],
        "reserved": [("aws.amazon.com/neuron", "NO_SCHEDULE")],
        "spot": [gpu, ("cdk-training-cluster/spot", "NO_SCHEDULE")],
        "own": [gpu],
    }
    labels = {name: group["Labels"].get("nvidia.com/gpu.present") for name, group in _groups(template).items()}
    assert [name for name, label in labels.items() if label == "true"] == ["workers", "block", "spot", "own"]


def test_nothing_that_an_update_of_its_configuration_sends_follows_a_setting_of_a_group(template: Template) -> None:
    # CloudFormation might send DesiredSize 0 with it, which ends all nodes.
    configuration = ("ScalingConfig", "Labels", "Taints", "NodeRepairConfig", "UpdateConfig", "WarmPoolConfig")
    group = _groups(template)["workers"]
    taint = {"Key": "nvidia.com/gpu", "Value": "present", "Effect": "NO_SCHEDULE"}
    assert {key: group.get(key) for key in configuration} == {
        "ScalingConfig": {"MinSize": 0, "DesiredSize": 0, "MaxSize": 450},
        "Labels": {"cdk-training-cluster/node-group": "workers", "nvidia.com/gpu.present": "true"},
        "Taints": [taint],
        "NodeRepairConfig": None,
        "UpdateConfig": {"MaxUnavailablePercentage": 100, "UpdateStrategy": "MINIMAL"},
        "WarmPoolConfig": None,
    }
    template.resource_count_is("AWS::AutoScaling::LifecycleHook", 0)


def test_the_power_function_gets_what_it_sends_with_sizes(template: Template) -> None:
    power = next(
        str(each["Properties"]["Environment"])
        for each in template.find_resources("AWS::Lambda::Function").values()
        if each["Properties"]["Handler"].startswith("cluster_power.")
    )
    assert [power.count(option) for option in (" repair=nvidia warm=2", " repair=nvidia", " repair=on")] == [1, 4, 1]


def test_add_ons_are_there_before_the_nodes_that_need_them(template: Template) -> None:
    made = template.find_resources("AWS::EKS::Addon")
    names = {each["Properties"]["AddonName"]: each for each in made.values()}
    wanted = {name for name, each in ADD_ONS.items() if each.wanted.value != "by choice"}
    assert set(names) == wanted | {"cert-manager", "external-dns"}
    assert all("AddonVersion" not in each["Properties"] for each in names.values())
    nodes = template.find_resources("AWS::EKS::Nodegroup")
    cni = next(key for key, each in made.items() if each["Properties"]["AddonName"] == "vpc-cni")
    assert all(cni in each["DependsOn"] for each in nodes.values())
    assert next(key for key in nodes if "SystemNodes" in key) in names["coredns"]["DependsOn"]


def test_the_agent_that_sees_xid_errors_runs_on_tainted_nodes_and_nodes_keep_few_addresses(
    template: Template,
) -> None:
    made = [each["Properties"] for each in template.find_resources("AWS::EKS::Addon").values()]
    configured = {
        each["AddonName"]: json.loads(each["ConfigurationValues"]) for each in made if "ConfigurationValues" in each
    }
    assert configured == {
        "eks-node-monitoring-agent": {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}},
        "vpc-cni": {"env": {"MINIMUM_IP_TARGET": "16", "WARM_IP_TARGET": "4"}},
    }


def test_the_driver_of_the_file_system_may_look_at_it_and_make_none(template: Template) -> None:
    actions = {
        action
        for each in template.find_resources("AWS::IAM::Policy").values()
        for statement in each["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        if action.startswith("fsx:") and "awsfsxcsidriver" in str(each["Properties"]["Roles"])
    }
    assert actions == {"fsx:DescribeFileSystems"}
    template.has_resource_properties(
        "AWS::EKS::Addon",
        {
            "AddonName": "aws-fsx-csi-driver",
            "PodIdentityAssociations": [{"ServiceAccount": "fsx-csi-controller-sa", "RoleArn": Match.any_value()}],
        },
    )


def test_an_add_on_may_do_what_the_policies_that_are_named_for_it_allow(template: Template) -> None:
    (add_on,) = template.find_resources("AWS::EKS::Addon", {"Properties": {"AddonName": "external-dns"}}).values()
    (association,) = add_on["Properties"]["PodIdentityAssociations"]
    role = template.to_json()["Resources"][association["RoleArn"]["Fn::GetAtt"][0]]
    assert role["Properties"]["ManagedPolicyArns"] == [_ROUTE_53]


def test_the_functions_know_node_groups_by_cluster_and_name(template: Template) -> None:
    group = next(iter(template.find_resources("AWS::EKS::Nodegroup", {"Properties": {"CapacityType": "SPOT"}})))
    text = str(template.find_resources("AWS::Lambda::Function"))
    assert "eks_nodegroup" in text
    assert f"'Ref': '{group}'" in text


def test_an_output_says_how_kubectl_gets_in(template: Template) -> None:
    (output,) = template.find_outputs("KubeconfigCommand").values()
    assert "aws eks update-kubeconfig" in str(output)
    assert "--role-arn" in str(output)


def test_no_pod_reaches_the_metadata_service_of_its_node(template: Template) -> None:
    templates = template.find_resources("AWS::EC2::LaunchTemplate").values()
    assert len(templates) == len(_GROUPS) + 1
    metadata = [each["Properties"]["LaunchTemplateData"]["MetadataOptions"] for each in templates]
    assert metadata == [{"HttpTokens": "required", "HttpPutResponseHopLimit": 1}] * len(templates)


def test_nodes_with_gpus_give_a_pod_those_of_its_request_alone(template: Template) -> None:
    first = {
        name: str(_launch(template, group).get("UserData")).partition("SCRIPTS_BEFORE=(")[2].partition(")")[0]
        for name, group in _groups(template).items()
    }
    assert {name for name, scripts in first.items() if "gpu_access.sh" in scripts} == {
        "workers",
        "block",
        "spot",
        "own",
    }
