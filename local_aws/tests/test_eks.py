"""EKS of the local AWS: node groups launch nodes from the template, and change as EKS changes them."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster.orchestrators.eks import template_rules
from cdk_training_cluster.validation.templates.rules import broken_rules
from eks_template import eks_template
from local_aws import LocalAws
from local_aws_scene import Stacks
from wrong_eks import WRONG, Wrong

assert template_rules

_MISMATCH = {
    **{"nodeMonitoringCondition": "AcceleratedHardwareReady", "nodeUnhealthyReason": "NvidiaDeviceCountMismatch"},
    **{"minRepairWaitTimeMins": 5, "repairAction": "Replace"},
}


def _nodes(aws: LocalAws, name: str) -> list[dict[str, Any]]:
    states = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    found = aws.client("ec2").describe_instances(
        Filters=[{"Name": "tag:eks:nodegroup-name", "Values": [name]}, states]
    )
    return [instance for each in found["Reservations"] for instance in each["Instances"]]


def test_a_node_group_launches_nodes_and_follows_its_sizes(aws: LocalAws, stacks: Stacks) -> None:
    template = eks_template()
    stack = stacks.create(template)
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    place, eks = stacks.physical_ids(stack)["Nodes"], aws.client("eks")
    cluster, _, name = place.partition("/")
    assert _nodes(aws, name) == []
    eks.update_nodegroup_config(clusterName=cluster, nodegroupName=name, scalingConfig={"desiredSize": 2})
    nodes = _nodes(aws, name)
    assert [len(each["NetworkInterfaces"]) for each in nodes] == [5, 5]
    assert {each["InstanceType"] for each in nodes} == {"p4de.24xlarge"}
    assert all(each["Placement"]["GroupName"] for each in nodes)
    tags = {tag["Key"]: tag["Value"] for tag in nodes[0]["Tags"]}
    assert (tags["cdk-training-cluster:node-group"], tags["eks:cluster-name"]) == ("workers", "pod")
    # Another launch template replaces them.
    template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]["EbsOptimized"] = True
    stacks.update(stack, template)
    assert stacks.status(stack) == "UPDATE_COMPLETE", stacks.reasons(stack)
    renewed = _nodes(aws, name)
    assert len(renewed) == 2
    assert not {each["InstanceId"] for each in renewed} & {each["InstanceId"] for each in nodes}
    eks.update_nodegroup_config(clusterName=cluster, nodegroupName=name, scalingConfig={"desiredSize": 0})
    assert _nodes(aws, name) == []
    stacks.api.delete_stack(StackName=stack)
    assert stack not in {each["StackName"] for each in stacks.api.describe_stacks()["Stacks"]}
    with pytest.raises(ClientError, match="No cluster found for name: pod"):
        eks.describe_cluster(name="pod")


@pytest.mark.parametrize(
    "change",
    [
        {"Labels": {"team": "llama"}},
        {"Taints": []},
        {"NodeRepairConfig": {"Enabled": False}},
        {"UpdateConfig": {"MaxUnavailable": 2}},
        {"WarmPoolConfig": {"Enabled": True}},
        {"ScalingConfig": {"MinSize": 0, "DesiredSize": 0, "MaxSize": 9}},
        {"Tags": {"team": "llama"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_update_of_a_setting_may_take_a_group_to_the_size_of_the_template(
    aws: LocalAws, stacks: Stacks, change: dict[str, Any]
) -> None:
    template, eks = eks_template(), aws.client("eks")
    stack = stacks.create(template)
    cluster, _, name = stacks.physical_ids(stack)["Nodes"].partition("/")
    eks.update_nodegroup_config(clusterName=cluster, nodegroupName=name, scalingConfig={"desiredSize": 2})
    template["Resources"]["Nodes"]["Properties"].update(change)
    stacks.update(stack, template)
    assert stacks.status(stack) == "UPDATE_COMPLETE", stacks.reasons(stack)
    assert _nodes(aws, name) == []


@pytest.mark.parametrize(
    "change", [{"Tags": {"team": "llama"}}, {"Labels": {"team": "llama"}}, {"UpdateConfig": {"MaxUnavailable": 2}}]
)
def test_another_launch_template_is_combined_with_no_other_update(stacks: Stacks, change: dict[str, Any]) -> None:
    template = eks_template()
    stack = stacks.create(template)
    template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]["EbsOptimized"] = True
    template["Resources"]["Nodes"]["Properties"].update(change)
    stacks.update(stack, template)
    # The way back combines the same: https://github.com/aws/containers-roadmap/issues/1258
    assert stacks.status(stack) == "UPDATE_ROLLBACK_FAILED"
    reasons = " ".join(stacks.reasons(stack).values())
    assert "Version and ReleaseVersion updates cannot be combined with other updates" in reasons


def test_tags_of_a_group_follow_the_template(aws: LocalAws, stacks: Stacks) -> None:
    template, eks = eks_template(), aws.client("eks")
    stack = stacks.create(template)
    cluster, _, name = stacks.physical_ids(stack)["Nodes"].partition("/")
    template["Resources"]["Nodes"]["Properties"]["Tags"] = {"team": "llama"}
    stacks.update(stack, template)
    arn = eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]["nodegroupArn"]
    tags = eks.list_tags_for_resource(resourceArn=arn)["tags"]
    assert {key: value for key, value in tags.items() if not key.startswith("aws:")} == {"team": "llama"}


def test_a_size_that_is_taken_out_of_the_template_changes_nothing(aws: LocalAws, stacks: Stacks) -> None:
    template, eks = eks_template(), aws.client("eks")
    stack = stacks.create(template)
    cluster, _, name = stacks.physical_ids(stack)["Nodes"].partition("/")
    eks.update_nodegroup_config(clusterName=cluster, nodegroupName=name, scalingConfig={"desiredSize": 2})
    del template["Resources"]["Nodes"]["Properties"]["ScalingConfig"]["DesiredSize"]
    stacks.update(stack, template)
    assert len(_nodes(aws, name)) == 2


def test_a_group_is_made_with_all_sizes_or_none(stacks: Stacks) -> None:
    template = eks_template()
    del template["Resources"]["Nodes"]["Properties"]["ScalingConfig"]["DesiredSize"]
    stack = stacks.create(template)
    assert "All or none of minSize" in " ".join(stacks.reasons(stack).values())


def test_a_control_plane_is_at_most_three_minor_versions_ahead_of_its_nodes(aws: LocalAws, stacks: Stacks) -> None:
    template = eks_template()
    name = stacks.physical_ids(stacks.create(template))["Nodes"].partition("/")[2]
    eks = aws.client("eks")
    for version in ("1.37", "1.38", "1.39"):
        eks.update_cluster_version(name="pod", version=version)
    with pytest.raises(ClientError, match=f"Nodegroups {name} must be updated to match cluster version 1.39"):
        eks.update_cluster_version(name="pod", version="1.40")
    eks.update_nodegroup_version(clusterName="pod", nodegroupName=name, version="1.39")
    eks.update_cluster_version(name="pod", version="1.40")


def test_a_version_without_support_is_refused(stacks: Stacks) -> None:
    template = eks_template()
    template["Resources"]["Cluster"]["Properties"]["Version"] = "1.31"
    assert "unsupported Kubernetes version 1.31" in " ".join(stacks.reasons(stacks.create(template)).values())


def test_a_repair_of_a_reason_that_is_not_documented_is_refused(stacks: Stacks) -> None:
    repair = eks_template()["Resources"]["Nodes"]["Properties"]["NodeRepairConfig"]
    template = eks_template()
    override = {"NodeMonitoringCondition": "AcceleratedHardwareReady", "NodeUnhealthyReason": "NvidiaXID46Error"}
    template["Resources"]["Nodes"]["Properties"]["NodeRepairConfig"] = {
        **repair,
        "NodeRepairConfigOverrides": [{**override, "MinRepairWaitTimeMins": 5, "RepairAction": "Reboot"}],
    }
    assert "Invalid nodeUnhealthyReason" in " ".join(stacks.reasons(stacks.create(template)).values())


@pytest.mark.parametrize(
    ("config", "refusal"),
    [
        (
            {"maxUnhealthyNodeThresholdCount": 4, "maxUnhealthyNodeThresholdPercentage": 20},
            "Only one of maxUnhealthyNodeThresholdCount and maxUnhealthyNodeThresholdPercentage",
        ),
        (
            {"maxParallelNodesRepairedCount": 1, "maxParallelNodesRepairedPercentage": 20},
            "Only one of maxParallelNodesRepairedCount and maxParallelNodesRepairedPercentage",
        ),
        (
            {"nodeRepairConfigOverrides": [{"nodeUnhealthyReason": "NvidiaXID64Error"}]},
            "All values must be specified in nodeRepairConfigOverrides",
        ),
        # The guide of EKS calls it an event, on which EKS does not act.
        ({"nodeRepairConfigOverrides": [_MISMATCH]}, "Invalid nodeUnhealthyReason NvidiaDeviceCountMismatch"),
    ],
    ids=["two limits", "two counts", "half an override", "a reason of an event"],
)
def test_an_update_is_refused_as_a_whole_for_its_repair(
    config: dict[str, Any], refusal: str, aws: LocalAws, stacks: Stacks
) -> None:
    stacks.create(eks_template())
    eks = aws.client("eks")
    [name] = eks.list_nodegroups(clusterName="pod")["nodegroups"]
    named = {"clusterName": "pod", "nodegroupName": name}
    with pytest.raises(ClientError, match=refusal):
        eks.update_nodegroup_config(**named, scalingConfig={"desiredSize": 1}, nodeRepairConfig=config)
    assert eks.describe_nodegroup(**named)["nodegroup"]["scalingConfig"]["desiredSize"] == 0


def test_zones_without_a_control_plane_are_refused(aws: LocalAws, stacks: Stacks) -> None:
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    refused = next(each["ZoneName"] for each in zones if each["ZoneId"] == "use1-az3")
    template = eks_template()
    template["Resources"]["Second"]["Properties"]["AvailabilityZone"] = refused
    stack = stacks.create(template)
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    said = " ".join(stacks.reasons(stack).values())
    assert f"because {refused}, the targeted availability zone" in said
    assert "us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1f" in said


@pytest.mark.parametrize("wrong", WRONG, ids=[each.name for each in WRONG])
def test_eks_refuses_a_wrong_template_and_synth_only_by_a_rule_of_its_own(stacks: Stacks, wrong: Wrong) -> None:
    template = eks_template()
    assert list(broken_rules(template)) == []
    wrong.change(template["Resources"])
    assert [found.id for found, _ in broken_rules(template)] == ([wrong.rule] if wrong.rule else [])
    stack = stacks.create(template)
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    assert wrong.refusal in " ".join(stacks.reasons(stack).values())
