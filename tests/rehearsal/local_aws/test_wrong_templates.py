"""A table of templates that AWS refuses: each fails to deploy for its reason and leaves nothing behind."""

from collections.abc import Callable
from typing import Any

import pytest
from local_aws_scene import Stacks, Template, imported, interface

Change = Callable[[Template], object]


def _launch(**data: Any) -> Change:
    """Change launch data; None takes a key away."""

    def change(template: Template) -> None:
        launch = template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]
        for key, value in data.items():
            if value is None:
                launch.pop(key, None)
            else:
                launch[key] = value

    return change


def _properties(logical_id: str, **properties: Any) -> Change:
    return lambda template: template["Resources"][logical_id]["Properties"].update(properties)


def _lustre(capacity: int | str | None, **configuration: Any) -> Change:
    def change(template: Template) -> None:
        files = template["Resources"]["Files"]["Properties"]
        files["StorageCapacity"] = capacity
        files["LustreConfiguration"] = configuration

    return change


def _add(logical_id: str, kind: str, **properties: Any) -> Change:
    def change(template: Template) -> None:
        template["Resources"] = {logical_id: {"Type": kind, "Properties": properties}}
        template.pop("Outputs", None)

    return change


def _second_link(path: str, repository: str) -> Change:
    def change(template: Template) -> None:
        template["Resources"]["Second"] = {
            "Type": "AWS::FSx::DataRepositoryAssociation",
            "DependsOn": "Link",
            "Properties": {
                "FileSystemId": {"Ref": "Files"},
                "FileSystemPath": path,
                "DataRepositoryPath": {"Fn::Join": ["", ["s3://", imported("Bucket"), repository]]},
            },
        }

    return change


def _all(*changes: Change) -> Change:
    return lambda template: [change(template) for change in changes]


def _mixed(template: Template) -> None:
    nodes = template["Resources"]["Nodes"]["Properties"]
    nodes["MixedInstancesPolicy"] = {"LaunchTemplate": {"LaunchTemplateSpecification": nodes.pop("LaunchTemplate")}}


PRIMARY = interface(0, 0, "interface")
PERSISTENT_2 = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
TRUST = {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]}
ASSIST = "lambda:InvokeFunction"

# id, the change that makes the template wrong, the resource that fails, and words of its reason.
WRONG = [
    ("a type that it does not know", _add("Fleet", "AWS::EC2::SpotFleet"), "Fleet", "the local AWS has no AWS::EC2::SpotFleet"),
    ("a custom resource", _add("Own", "Custom::Thing", ServiceToken="x"), "Own", "the local AWS has no Custom::Thing"),
    # Interfaces
    ("efa-only as the primary", _launch(NetworkInterfaces=[interface(0, 0, "efa-only")]), "Nodes", "(EC2 error code: InvalidParameterCombination)"),
    ("EFA on a type without it", _launch(InstanceType="g5.xlarge", NetworkInterfaces=[interface(0, 0, "efa")]), "Nodes", "g5.xlarge instances do not support Elastic Fabric Adapters. (EC2 error code: InvalidParameterCombination)"),
    ("EFA on a card that has none", _launch(InstanceType="p6-b300.48xlarge", NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only")]), "Nodes", "(EC2 error code: AttachmentLimitExceeded)"),
    ("more EFA than the type has", _launch(InstanceType="i7ie.48xlarge", NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only"), interface(1, 0, "efa-only")]), "Nodes", "EFA interfaces count 2 exceeds allowed limit for i7ie.48xlarge: 1 (EC2 error code: AttachmentLimitExceeded)"),
    ("a card that is not there", _launch(NetworkInterfaces=[PRIMARY, interface(4, 0, "efa-only")]), "Nodes", "The specified number '4' for the network card index"),
    ("more interfaces than a card has", _launch(InstanceType="hpc6id.32xlarge", NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only")]), "Nodes", "(EC2 error code: AttachmentLimitExceeded)"),
    ("a device that a card has not", _launch(InstanceType="p5.48xlarge", NetworkInterfaces=[PRIMARY, interface(1, 7, "efa-only")]), "Nodes", "The specified number '7' for the device index exceeds the maximum number of network interfaces"),
    ("a device twice", _launch(NetworkInterfaces=[PRIMARY, PRIMARY]), "Nodes", "Each network interface requires a unique device index."),
    ("no primary interface", _launch(NetworkInterfaces=[interface(1, 0, "efa")]), "Nodes", "you must include a device at index 0 and network card at index 0"),
    ("a public address with several", _launch(NetworkInterfaces=[PRIMARY | {"AssociatePublicIpAddress": True}, interface(0, 1, "efa-only")]), "Nodes", "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces. (EC2 error code: InvalidParameterCombination)"),
    ("security groups at both levels", _launch(SecurityGroupIds=[imported("Group")]), "Nodes", "When a network interface is provided, the security groups must be a part of it."),
    ("a subnet in an interface", _launch(NetworkInterfaces=[PRIMARY | {"SubnetId": imported("Subnet")}]), "Nodes", "the group's VPCZoneIdentifier decides"),
    ("a security group that is not there", _launch(NetworkInterfaces=[PRIMARY | {"Groups": ["sg-0123456789abcdef0"]}]), "Nodes", "The security group 'sg-0123456789abcdef0' does not exist (EC2 error code: InvalidGroup.NotFound)"),
    # The rest of a launch
    ("an image that is not there", _launch(ImageId="ami-0123456789abcdef0"), "Nodes", "(EC2 error code: InvalidAMIID.NotFound)"),
    ("no image id", _launch(ImageId="the newest"), "Nodes", "(EC2 error code: InvalidAMIID.Malformed)"),
    ("a parameter with no image", _launch(ImageId="resolve:ssm:/nothing"), "Nodes", "Parameter /nothing does not exist"),
    ("an image of another architecture", _launch(InstanceType="g5g.xlarge", NetworkInterfaces=None), "Nodes", "The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the specified AMI."),
    ("a type that EC2 does not know", _launch(InstanceType="p9.48xlarge"), "Nodes", "Invalid value 'p9.48xlarge' for InstanceType. (EC2 error code: InvalidParameterValue)"),
    ("a cluster placement group for t3", _launch(InstanceType="t3.micro", NetworkInterfaces=None), "Nodes", "Cluster placement groups are not supported by the 't3.micro' instance type."),
    ("a placement group that is not there", _properties("Nodes", PlacementGroup="none"), "Nodes", "The Placement Group 'none' is unknown. (EC2 error code: InvalidPlacementGroup.Unknown)"),
    ("two placement groups", _launch(Placement={"GroupName": {"Ref": "Placement"}}), "Nodes", "Name it in one of them and try again."),
    ("too much user data", _launch(UserData={"Fn::Base64": "x" * 16385}), "Nodes", "User data is limited to 16384 bytes"),
    ("user data in plain text", _launch(UserData="#!/bin/bash"), "Launch", "Error Code: InvalidUserData"),
    ("an instance profile that is not there", _launch(IamInstanceProfile={"Name": "none"}), "Nodes", "Invalid IAM Instance Profile name"),
    ("Spot in a mixed group's template", _all(_launch(InstanceMarketOptions={"MarketType": "spot"}), _mixed), "Nodes", "when you configure an Auto Scaling group with a mixed instances policy."),
    ("Spot for a type that has none", _launch(InstanceType="hpc6id.32xlarge", NetworkInterfaces=[PRIMARY], InstanceMarketOptions={"MarketType": "spot"}), "Nodes", "does not support the market type 'spot'"),
    ("sizes the wrong way round", _properties("Nodes", MinSize="5"), "Nodes", "Max bound, 4, must be greater than or equal to min bound, 5"),
    ("more desired than allowed", _properties("Nodes", DesiredCapacity="5"), "Nodes", "Desired capacity:5 must be between the specified min size:0 and max size:4"),
    ("a subnet that is not there", _properties("Nodes", VPCZoneIdentifier=["subnet-0123456789abcdef0"]), "Nodes", "subnet-0123456789abcdef0"),
    # File systems and links
    ("a capacity between the steps", _lustre(3600, **PERSISTENT_2), "Files", "Invalid Lustre FS storage capacity: 3600. Must be 1200 or a multiple of 2400."),
    ("another type's throughput", _lustre(1200, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=100), "Files", "The storage throughput (MB/s/TiB) value should be one of [125,250,500,1000]."),
    ("throughput for scratch", _lustre(1200, DeploymentType="SCRATCH_2", PerUnitStorageThroughput=125), "Files", "PerUnitStorageThroughput cannot be given for SCRATCH_2."),
    ("metadata IOPS between the steps", _lustre(1200, **PERSISTENT_2, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 2000}), "Files", "Invalid metadata Iops: 2000."),
    ("EFA on a small file system", _lustre(2400, **PERSISTENT_2, EfaEnabled=True, MetadataConfiguration={"Mode": "AUTOMATIC"}), "Files", "Must be a multiple of 38400 for an EFA-enabled file system"),
    ("a group without Lustre's port", _properties("Files", SecurityGroupIds=[imported("Closed")]), "Files", "do not permit Lustre LNET network traffic on port 988"),
    ("a file system in no subnet", _properties("Files", SubnetIds=["subnet-0123456789abcdef0"]), "Files", "Error Code: InvalidNetworkSettings"),
    ("a link on Lustre 2.10", _lustre(1200, DeploymentType="SCRATCH_2"), "Link", "this one is SCRATCH_2, SSD, version 2.10"),
    ("a link with a relative path", _properties("Link", FileSystemPath="data"), "Link", "must start with a forward slash"),
    ("a link to a bucket that is not there", _properties("Link", DataRepositoryPath="s3://nobodys-bucket/"), "Link", "The S3 bucket nobodys-bucket does not exist"),
    ("overlapping paths", _second_link("/data/more", "/more/"), "Second", "The file system path /data/more overlaps with /data"),
    ("overlapping prefixes", _second_link("/more", "/tokens/more/"), "Second", "overlaps with s3://"),
    # What CloudFormation itself checks
    ("a capacity in words", _lustre("much", **PERSISTENT_2), "Files", "Properties validation failed for resource Files with message:\n#/StorageCapacity: expected type: Integer, found: Str"),
    ("a property that the type has not", _properties("Files", Colour="blue"), "Files", "#: extraneous key [Colour] is not permitted"),
    ("a required property left out", lambda t: t["Resources"]["Launch"]["Properties"].clear(), "Launch", "#: required key [LaunchTemplateData] not found"),
    ("a read-only property", _properties("Files", Id="fs-1"), "Files", "extraneous key [Id] is not permitted: it is read-only"),
    ("a value off the list", _add("Log", "AWS::EC2::FlowLog", ResourceId=imported("Vpc"), ResourceType="VPC", TrafficType="SOME"), "Log", "#/TrafficType: SOME is not a valid enum value"),
    ("a property that it does not carry out", _properties("Nodes", TargetGroupARNs=["arn"]), "Nodes", "the local AWS does not carry out TargetGroupARNs of AWS::AutoScaling::AutoScalingGroup"),
    ("an attribute that the type has not", _launch(KeyName={"Fn::GetAtt": ["Files", "Colour"]}), "Launch", "resource Files does not support attribute type Colour in Fn::GetAtt"),
    ("an import of nothing", _properties("Files", SubnetIds=[{"Fn::ImportValue": "nothing"}]), "Files", "No export named nothing found."),
    ("an unknown function", _launch(KeyName={"Fn::GetStackOutput": {}}), "Launch", "the local AWS has no function Fn::GetStackOutput"),
    # Other services
    ("a managed policy that AWS lacks", _properties("Role", ManagedPolicyArns=["arn:aws:iam::aws:policy/Nothing"]), "Role", "HandlerErrorCode: NotFound"),
    ("a rule for a group that is not there", _add("Rule", "AWS::EC2::SecurityGroupIngress", GroupId="sg-0123456789abcdef0", IpProtocol="-1", CidrIp="10.0.0.0/8"), "Rule", "Error Code: InvalidGroup"),
    ("a subnet outside of its VPC", _add("Out", "AWS::EC2::Subnet", VpcId=imported("Vpc"), CidrBlock="192.168.0.0/24"), "Out", "Error Code: InvalidSubnet.Range"),
    ("an endpoint of no service", _add("End", "AWS::EC2::VPCEndpoint", VpcId=imported("Vpc"), ServiceName="com.amazonaws.us-east-1.nothing"), "End", "does not exist"),
    ("an alarm without a comparison", _add("Alarm", "AWS::CloudWatch::Alarm", EvaluationPeriods=1, MetricName="m", Namespace="n", Period=60, Statistic="Sum", Threshold=1), "Alarm", "ComparisonOperator"),
    ("a bucket policy without a bucket", _add("Policy", "AWS::S3::BucketPolicy", Bucket="nobodys-bucket", PolicyDocument={"Statement": []}), "Policy", "HandlerErrorCode: NotFound"),
]


def test_the_template_that_the_table_changes_is_legal(stacks: Stacks, nodes: Template) -> None:
    assert stacks.status(stacks.create(nodes)) == "CREATE_COMPLETE"


@pytest.mark.parametrize(("change", "logical_id", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_template_fails_for_its_reason_and_leaves_nothing(
    stacks: Stacks,
    nodes: Template,
    inventory: Callable[[], dict[str, int]],
    change: Change,
    logical_id: str,
    words: str,
) -> None:
    before = inventory()
    change(nodes)
    name = stacks.create(nodes)
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    reasons = stacks.reasons(name)
    assert list(reasons) == [logical_id]
    assert words in reasons[logical_id]
    assert inventory() == before
