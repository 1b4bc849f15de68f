"""Tags of managed node groups, which a later deployment does not change."""

from typing import Any

from aws_cdk import Tags
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterNetwork, EksSettings, EksTrainingCluster, NodeGroup
from synthesis import ZONE, new_stack


def _template(**tags: str) -> Template:
    stack = new_stack()
    cluster = EksTrainingCluster(
        stack,
        "Pod",
        cluster_name="pod",
        eks=EksSettings(control_plane_zone="us-east-1a"),
        network=ClusterNetwork(stack, "Network", availability_zone=ZONE),
        node_groups=[NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8)],
    )
    for key, value in tags.items():
        Tags.of(stack).add(key, value)
        Tags.of(cluster).add(f"{key}-of-the-cluster", value, priority=1000)
    return Template.from_stack(stack)


def _groups(template: Template) -> dict[str, dict[str, Any]]:
    found = template.find_resources("AWS::EKS::Nodegroup").values()
    return {each["Properties"]["Labels"]["cdk-training-cluster/node-group"]: each["Properties"] for each in found}


def test_a_tag_of_the_user_is_on_nodes_and_never_on_their_managed_node_group() -> None:
    # A change of it might take the running group to the template's DesiredSize, 0.
    template = _template(team="llama")
    fixed = {"Name": "pod/workers", "cdk-training-cluster:cluster": "pod"}
    assert {name: group["Tags"] for name, group in _groups(template).items()} == {
        "workers": {**fixed, "cdk-training-cluster:node-group": "workers"},
        "system": {"cdk-training-cluster:cluster": "pod"},
    }
    for group in _groups(template).values():
        launch = template.to_json()["Resources"][group["LaunchTemplate"]["Id"]["Ref"]]["Properties"]
        specifications = launch["LaunchTemplateData"]["TagSpecifications"]
        (tags,) = [each["Tags"] for each in specifications if each["ResourceType"] == "instance"]
        assert {"team", "team-of-the-cluster"} <= {tag["Key"] for tag in tags}


def test_another_tag_of_the_user_changes_nothing_of_a_managed_node_group_but_its_launch_template() -> None:
    assert _groups(_template(team="llama")) == _groups(_template(team="gemma"))
