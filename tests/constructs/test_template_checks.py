"""A synth ends where an escape hatch broke a template, and says what, where and how to go on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Acknowledgment, App, CfnResource, Environment, NestedStack, Stack, Stage, Validations
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template
from constructs import Construct, RootConstruct

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, NodeGroup, TrainingCluster
from cdk_training_cluster.validation.templates.checks import check_templates
from cluster_contract.tags import NODE_GROUP_TAG

_Group = autoscaling.CfnAutoScalingGroup

REFUSAL = """\
ERROR MinSize and DesiredCapacity of a group must not be above 0: the deployment would launch and bill nodes, even \
while the cluster is stopped, and be rolled back where EC2 has no capacity (cdk-training-cluster)
   {path} ({id}) aws-cdk-lib.aws_autoscaling.CfnAutoScalingGroup
   Suggested fix: Leave both alone: the power function brings the group to its size afterwards. See \
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/\
aws-resource-autoscaling-autoscalinggroup.html
   Acknowledge with 'cdk-training-cluster::groupSize'
"""

SIZE = """\
ERROR The template of a stack with node groups must not be larger than 1 MB (1,000,000 bytes): CloudFormation takes \
no larger one (cdk-training-cluster)
   Test/Nodes (Nodes) aws-cdk-lib.aws_autoscaling.CfnAutoScalingGroup
   Suggested fix: Give the stack suppress_template_indentation=True, use fewer node groups in one cluster, or fewer \
instance types in each, or make a second cluster in a stack of its own. See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
   Acknowledge with 'cdk-training-cluster::templateSize'
"""

RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)

CDK = Path(__file__).parents[2] / "node_modules" / ".bin" / "cdk"

QUIET = {
    "CDK_DISABLE_CLI_TELEMETRY": "1",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "CDK_VALIDATION": "false",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
}

APP = """\
from aws_cdk import App, Stack
from test_template_checks import add_group

app = App()
group = add_group(Stack(app, "Test"), "Nodes")
group.min_size = "1"
app.synth()
"""


def add_group(scope: Construct, id: str) -> CfnResource:
    """Make a group as the library does."""
    template = ec2.CfnLaunchTemplate(scope, f"{id}Launch", launch_template_data={"instanceType": "p5.48xlarge"})
    group = _Group(
        scope,
        id,
        min_size="0",
        max_size="2",
        availability_zones=["us-east-1a"],
        launch_template=_Group.LaunchTemplateSpecificationProperty(
            launch_template_id=template.ref, version=template.attr_latest_version_number
        ),
        tags=[_Group.TagPropertyProperty(key=NODE_GROUP_TAG, value="workers", propagate_at_launch=True)],
    )
    group.add_override("UpdatePolicy.AutoScalingScheduledAction", {"IgnoreUnmodifiedGroupSizeProperties": True})
    check_templates(group)
    return group


def add_cluster(stack: Stack, capacity: Capacity) -> TrainingCluster:
    """Make a cluster of one node group that is bought so."""
    workers = NodeGroup("workers", instance_types=["p5.48xlarge"], count=2, capacity=capacity)
    return TrainingCluster(stack, "Cluster", availability_zone="us-east-1b", node_groups=[workers])


def break_it(group: CfnResource) -> CfnResource:
    group.add_property_override("MinSize", "1")
    return group


def refusals(app: App) -> list[str]:
    with pytest.raises(RuntimeError, match=r"^ValidationFailed: ERROR ") as refused:
        app.synth()
    lines = str(refused.value).splitlines()
    return [line.strip().partition(" ")[0] for line in lines if "aws-cdk-lib.aws_autoscaling" in line]


def test_the_cdk_cli_shows_the_finding_and_goes_no_further(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{APP}")
    done = subprocess.run(
        [CDK, "deploy", "--no-notices", "--app", f"{sys.executable} broken.py"],
        cwd=tmp_path,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(Path.home()), **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{REFUSAL.format(path='Test/Nodes', id='Nodes')}Synthesis finished with errors\n"


def test_a_sound_template_is_synthesized() -> None:
    app = App()
    add_group(Stack(app, "Test"), "Nodes")
    app.synth()


def test_the_assertions_of_other_peoples_tests_refuse_too() -> None:
    stack = Stack(App(), "Test")
    break_it(add_group(stack, "Nodes"))
    with pytest.raises(RuntimeError) as refused:
        Template.from_stack(stack)
    assert REFUSAL.format(path="Test/Nodes", id="Nodes") in str(refused.value)


def test_an_escape_hatch_on_a_fleet_of_the_library_is_refused() -> None:
    stack = Stack(App(), "Test", env=Environment(region="us-east-1"))
    group = add_cluster(stack, RESERVATION).node_group("workers").auto_scaling_group
    group.placement_group = "other"
    with pytest.raises(RuntimeError, match=r"Acknowledge with 'cdk-training-cluster::reservationUnusable'"):
        Template.from_stack(stack)


def synthesized(folder: Path, padding: int) -> int:
    """Synthesize a template with so many characters too many, and return how many bytes its file has."""
    app = App(outdir=str(folder))
    group = add_group(Stack(app, "Test"), "Nodes")
    group.add_metadata("Padding", "x" * padding)
    app.synth()
    return (folder / "Test.template.json").stat().st_size


def test_a_template_is_refused_once_its_file_is_too_large_for_cloudformation(tmp_path: Path) -> None:
    room = 1_000_000 - synthesized(tmp_path / "small", 0)
    assert synthesized(tmp_path / "largest", room) == 1_000_000
    with pytest.raises(RuntimeError) as refused:
        synthesized(tmp_path / "larger", room + 1)
    assert SIZE in str(refused.value)


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_warning_is_told_of_unless_it_is_acknowledged_and_ends_no_synth(tmp_path: Path, acknowledged: bool) -> None:
    app = App(outdir=str(tmp_path))
    cluster = add_cluster(Stack(app, "Test", env=Environment(region="us-east-1")), RESERVATION)
    reservation = cluster.node_group("workers").capacity_reservation
    assert reservation is not None
    reservation.add_property_override("InstanceMatchCriteria", "open")
    if acknowledged:
        acknowledge(reservation, "reservationOpen")
    app.synth()
    reports = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    (report,) = [report for report in reports if report["pluginName"] == "cdk-training-cluster"]
    told = [(violation["ruleName"], violation["severity"]) for violation in report["violations"]]
    assert report["conclusion"] == "success"
    assert told == ([] if acknowledged else [("reservationOpen", "warning")])


def test_a_finding_that_is_acknowledged_lets_it_pass() -> None:
    app = App()
    group = break_it(add_group(Stack(app, "Test"), "Nodes"))
    acknowledge(group, "groupSize")
    app.synth()


def test_another_finding_of_an_acknowledged_group_is_refused_still() -> None:
    app = App()
    group = break_it(add_group(Stack(app, "Test"), "Nodes"))
    acknowledge(group, "groupSize")
    group.add_deletion_override("UpdatePolicy")
    with pytest.raises(RuntimeError) as refused:
        app.synth()
    assert "Acknowledge with 'cdk-training-cluster::groupUpdatePolicy'" in str(refused.value)
    assert "Acknowledge with 'cdk-training-cluster::groupSize'" not in str(refused.value)


def acknowledge(construct: Construct, rule: str) -> None:
    Validations.of(construct).acknowledge(
        Acknowledgment(id=f"cdk-training-cluster::{rule}", reason="a test bed, on purpose")
    )


def test_the_same_finding_in_another_group_is_refused_still() -> None:
    app = App()
    stack = Stack(app, "Test")
    acknowledge(break_it(add_group(stack, "One")), "groupSize")
    break_it(add_group(stack, "Two"))
    assert refusals(app) == ["Test/Two"]


def test_each_stack_of_an_app_is_told_of_once_in_order() -> None:
    app = App()
    for name in ("B", "A"):
        stack = Stack(app, name)
        break_it(add_group(stack, "One"))
        break_it(add_group(stack, "Two"))
    Stack(app, "C")
    assert refusals(app) == ["B/One", "B/Two", "A/One", "A/Two"]


def test_stacks_of_a_stage_and_nested_stacks_are_looked_at_once_too() -> None:
    app = App()
    break_it(add_group(NestedStack(Stack(app, "Outer"), "Inner"), "Nodes"))
    break_it(add_group(Stack(Stage(app, "Prod"), "Outer"), "Nodes"))
    break_it(add_group(NestedStack(NestedStack(Stack(Stage(app, "Test"), "A"), "B"), "C"), "Nodes"))
    assert refusals(app) == ["Outer/Inner/Nodes", "Prod/Outer/Nodes", "Test/A/B/C/Nodes"]


def test_a_stack_that_is_not_to_be_checked_is_left_alone() -> None:
    app = App()
    add_group(Stack(app, "Checked"), "Nodes")
    stack = Stack(app, "Other")
    tags: list[Any] = [_Group.TagPropertyProperty(key=NODE_GROUP_TAG, value="w", propagate_at_launch=True)]
    _Group(stack, "Nodes", min_size="1", max_size="1", tags=tags)
    app.synth()


def test_looking_adds_nothing_to_a_template() -> None:
    plain, looked_at = Stack(App(), "Test"), Stack(App(), "Test")
    for stack in (plain, looked_at):
        ec2.CfnPlacementGroup(stack, "Placement")
    check_templates(looked_at)
    assert Template.from_stack(looked_at).to_json() == Template.from_stack(plain).to_json()


def test_a_tree_without_an_app_is_left_alone() -> None:
    check_templates(Stack(RootConstruct(), "Test"))
