"""The app of typed classes that is generated from templates gives the same templates back."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aws_cdk import (
    App,
    Aws,
    CfnAutoScalingReplacingUpdate,
    CfnCondition,
    CfnDeletionPolicy,
    CfnMapping,
    CfnOutput,
    CfnParameter,
    CfnResource,
    CfnUpdatePolicy,
    Environment,
    Fn,
    RemovalPolicy,
    Stack,
    Tags,
    Token,
)
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from benchmarks.assembly import differences, stacks_of
from benchmarks.typed_app import source, write
from examples import run_app


def _given_back(app: App, directory: Path) -> list[str]:
    """Return in what the generated app's templates differ from those of an app."""
    app.synth()
    return differences(Path(app.outdir), _run(write(Path(app.outdir), directory / "typed"), directory / "again"))


def _run(file: Path, output: Path) -> Path:
    ended = subprocess.run(
        [sys.executable, file],
        env={**os.environ, "CDK_OUTDIR": str(output)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return output


def _app(directory: Path, make: Callable[[Stack], object]) -> App:
    app = App(outdir=str(directory / "first"))
    make(Stack(app, "Test", env=Environment(region="us-east-1")))
    return app


def _network(stack: Stack) -> None:
    vpc = ec2.CfnVPC(stack, "Vpc", cidr_block="10.0.0.0/16")
    vpc.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    ranges = Fn.cidr(vpc.attr_cidr_block, 4, "8")
    subnet = ec2.CfnSubnet(
        stack,
        "Subnet",
        vpc_id=vpc.ref,
        cidr_block=Fn.select(1, ranges),
        availability_zone=Fn.select(0, Fn.get_azs("")),
    )
    subnet.add_dependency(CfnResource(stack, "Topic", type="AWS::SNS::Topic"))
    subnet.cfn_options.deletion_policy = CfnDeletionPolicy.RETAIN_EXCEPT_ON_CREATE
    Tags.of(stack).add("team", "ml")


def _functions(stack: Stack) -> None:
    names = CfnMapping(stack, "Names", mapping={"us-east-1": {"Name": "east"}})
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:Get*"], resources=[f"arn:{Aws.PARTITION}:s3:::all/*"]))
    topic = sns.CfnTopic(stack, "Alerts", display_name=names.find_in_map(Aws.REGION, "Name"))
    CfnOutput(stack, "Arn", value=topic.attr_topic_arn, description="Where alerts go")
    CfnOutput(
        stack,
        "Link",
        value=Fn.sub("https://${Host}/${Alerts.TopicName}", {"Host": Fn.import_value("elsewhere")}),
        export_name=Fn.join("-", [Aws.STACK_NAME, "link"]),
    )
    CfnOutput(stack, "Last", value=Fn.select(5, Fn.split(":", topic.ref)))


def _conditions(stack: Stack) -> None:
    size = CfnParameter(stack, "Size", type="Number", default=2, min_value=1, description="How many")
    zones = CfnParameter(stack, "Zones", type="List<AWS::EC2::AvailabilityZone::Name>")
    image = CfnParameter(stack, "Image", allowed_values=["one", "two"], no_echo=True)
    one = CfnCondition(stack, "One", expression=Fn.condition_equals(image.value_as_string, "one"))
    elsewhere = Fn.condition_equals(Aws.REGION, "there")
    # CDK's own documents pass conditions on; its stubs lack a member.
    here = CfnCondition(stack, "Here", expression=Fn.condition_and(one, Fn.condition_not(elsewhere)))  # type: ignore[arg-type]
    CfnCondition(stack, "Any", expression=Fn.condition_or(one, here))  # type: ignore[arg-type]
    bucket = s3.CfnBucket(
        stack,
        "Bucket",
        bucket_name=Token.as_string(Fn.condition_if("One", "first", Aws.NO_VALUE)),
        versioning_configuration=Fn.condition_if("Here", {"Status": "Enabled"}, {"Status": "Suspended"}),
    )
    bucket.cfn_options.condition = here
    cloudwatch.CfnAlarm(
        stack,
        "Alarm",
        comparison_operator="GreaterThanThreshold",
        evaluation_periods=size.value_as_number,
        threshold=Token.as_number(Fn.condition_if("One", 1, 2)),
        actions_enabled=Fn.condition_if("One", True, False),
        alarm_actions=Token.as_list(Fn.condition_if("One", [], ["arn:aws:sns:us-east-1:111122223333:alerts"])),
    )
    group = autoscaling.CfnAutoScalingGroup(
        stack, "Group", min_size="0", max_size="1", availability_zones=zones.value_as_list
    )
    group.cfn_options.update_policy = CfnUpdatePolicy(
        auto_scaling_replacing_update=CfnAutoScalingReplacingUpdate(will_replace=True)
    )
    group.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3010"]}})


@pytest.mark.parametrize("make", [_network, _functions, _conditions])
def test_the_generated_app_gives_the_templates_back(make: Callable[[Stack], object], tmp_path: Path) -> None:
    assert _given_back(_app(tmp_path, make), tmp_path) == []


def test_references_between_stacks_are_references_again(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path / "first"))
    # Named so that the order of names is not the order of the deployment.
    kept = Stack(app, "Second", env=Environment(account="111122223333", region="us-east-1"), description="It keeps")
    vpc = ec2.CfnVPC(kept, "Vpc", cidr_block="10.0.0.0/16")
    nodes = Stack(app, "First", env=Environment(account="111122223333", region="us-east-1"), stack_name="nodes")
    ec2.CfnSecurityGroup(nodes, "Group", group_description="Nodes", vpc_id=vpc.attr_vpc_id)
    assert _given_back(app, tmp_path) == []
    written = (tmp_path / "typed" / "typed_stacks.py").read_text()
    assert "vpc_id=Second_Vpc.attr_vpc_id" in written
    assert "import_value" not in written


@pytest.mark.parametrize("example", ["p4de", pytest.param("p5-reservation", marks=pytest.mark.sweep)])
def test_what_is_measured_is_given_back(example: str, tmp_path: Path) -> None:
    first = tmp_path / "first"
    ended = run_app(f"clusters/{example}.yaml", first)
    assert ended.returncode == 0, ended.stderr
    for files in (False, True):
        again = tmp_path / f"again-{files}"
        file = write(first, tmp_path / f"typed-{files}", files=files)
        ended = run_app(f"clusters/{example}.yaml", again, app=file)
        assert ended.returncode == 0, ended.stderr
        assert differences(first, again) == []
        uploaded = sum(len(stack.files) for stack in stacks_of(again))
        assert uploaded == (sum(len(stack.files) for stack in stacks_of(first)) if files else 0)


def test_properties_are_typed_classes(tmp_path: Path) -> None:
    app = _app(tmp_path, _conditions)
    app.synth()
    written = source(Path(app.outdir))
    assert "cdk.CfnUpdatePolicy(auto_scaling_replacing_update=cdk.CfnAutoScalingReplacingUpdate(" in written
    first = tmp_path / "template"
    ended = run_app("clusters/p4de.yaml", first)
    assert ended.returncode == 0, ended.stderr
    assert "aws_fsx.CfnFileSystem.LustreConfigurationProperty(" in source(first)
    assert "aws_ec2.CfnLaunchTemplate.NetworkInterfaceProperty(" in source(first)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    app = _app(tmp_path, lambda stack: CfnResource(stack, "Own", type="AWS::Own::Thing", properties={"Size": 1}))
    app.synth()
    with pytest.raises(NotImplementedError, match=r"^aws_cdk has no class for AWS::Own::Thing$"):
        source(Path(app.outdir))


def test_a_property_that_the_class_lacks_is_told(tmp_path: Path) -> None:
    def make(stack: Stack) -> None:
        ec2.CfnVPC(stack, "Vpc").add_property_override("Colour", "red")

    app = _app(tmp_path, make)
    app.synth()
    with pytest.raises(NotImplementedError, match=r"^aws_ec2\.CfnVPC of aws_cdk does not know Colour$"):
        source(Path(app.outdir))


def _change(directory: Path, old: str, new: str) -> Path:
    app = _app(directory, _network)
    app.synth()
    again = _run(write(Path(app.outdir), directory / "typed"), directory / "again")
    template = again / "Test.template.json"
    text = template.read_text()
    assert old in text
    template.write_text(text.replace(old, new, 1))
    return again


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"10.0.0.0/16"', '"10.1.0.0/16"', '/Test/Resources/Vpc/Properties/CidrBlock: "10.0.0.0/16" and'),
        ('"Subnet": {', '"Other": {', "/Test/Resources/Other is in one of them only"),
        ('"Type": "AWS::SNS::Topic"', '"Type": "AWS::SQS::Queue"', "/Test/Resources/Topic/Type: "),
        ('"Default": "/cdk', '"Default": "/other', "/Test/Parameters/BootstrapVersion/Default: "),
    ],
    ids=["a value", "a logical id", "a type", "a parameter"],
)
def test_a_difference_is_told(old: str, new: str, told: str, tmp_path: Path) -> None:
    again = _change(tmp_path, old, new)
    assert any(line.startswith(told) for line in differences(tmp_path / "first", again))


def test_the_order_of_dependencies_is_no_difference_and_a_type_is_one(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    for directory, depends, value in ((first, ["A", "B"], 1), (again, ["B", "A"], True)):
        directory.mkdir()
        artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "T.json"}}
        (directory / "manifest.json").write_text(json.dumps({"artifacts": {"T": artifact}}))
        resources = {"C": {"Type": "AWS::SNS::Topic", "DependsOn": depends, "Properties": {"Fifo": value}}}
        (directory / "T.json").write_text(json.dumps({"Resources": resources}))
    assert differences(first, again) == ["/T/Resources/C/Properties/Fifo: 1 and true"]
