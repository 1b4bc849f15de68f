"""A table of templates that AWS refuses: each fails to deploy for its reason and leaves nothing behind."""

from collections.abc import Callable

import pytest

from local_aws_scene import Stacks, Template, imported, interface
from template_changes import Change, both, launch, lustre, mixed, only, properties, second_link, with_role

PERSISTENT_2 = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}

_ALARM = {
    "MetricName": "Errors",
    "Namespace": "AWS/Lambda",
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 3,
    "Threshold": 1,
    "ComparisonOperator": "GreaterThanThreshold",
}
_TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}

# id, the change that makes the template wrong, the resource that fails, and words of its reason.
WRONG = [
    (
        "a type that it does not know",
        only("Fleet", "AWS::EC2::EC2Fleet"),
        "Fleet",
        "the local AWS has no AWS::EC2::EC2Fleet",
    ),
    ("user data in plain text", launch(UserData="#!/bin/bash"), "Launch", "Error Code: InvalidUserData"),
    # Node groups
    (
        "a launch that EC2 refuses",
        launch(InstanceType="p9.48xlarge"),
        "Nodes",
        "You must use a valid fully-formed launch template. Invalid value 'p9.48xlarge' for InstanceType. (EC2 error "
        "code: InvalidParameterValue)",
    ),
    (
        "security groups at both levels",
        launch(SecurityGroupIds=[imported("Group")]),
        "Nodes",
        "When a network interface is provided, the security groups must be a part of it.",
    ),
    (
        "a subnet in an interface",
        launch(NetworkInterfaces=[interface(0, 0, "interface") | {"SubnetId": imported("Subnet")}]),
        "Nodes",
        "the group's VPCZoneIdentifier decides",
    ),
    (
        "a parameter with no image",
        launch(ImageId="resolve:ssm:/nothing"),
        "Nodes",
        "Parameter /nothing does not exist",
    ),
    (
        "Spot in a mixed group's template",
        both(launch(InstanceMarketOptions={"MarketType": "spot"}), mixed),
        "Nodes",
        "when you configure an Auto Scaling group with a mixed instances policy.",
    ),
    (
        "sizes the wrong way round",
        properties("Nodes", MinSize="5"),
        "Nodes",
        "Max bound, 4, must be greater than or equal to min bound, 5",
    ),
    (
        "more desired than allowed",
        properties("Nodes", DesiredCapacity="5"),
        "Nodes",
        "Desired capacity:5 must be between the specified min size:0 and max size:4",
    ),
    (
        "a subnet that is not there",
        properties("Nodes", VPCZoneIdentifier=["subnet-0123456789abcdef0"]),
        "Nodes",
        "subnet-0123456789abcdef0",
    ),
    # File systems and links
    (
        "a capacity between the steps",
        lustre(3600, **PERSISTENT_2),
        "Files",
        "Invalid Lustre FS storage capacity: 3600. Must be 1200 or a multiple of 2400.",
    ),
    (
        "another type's throughput",
        lustre(1200, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=100),
        "Files",
        "The storage throughput (MB/s/TiB) value should be one of [125,250,500,1000].",
    ),
    (
        "metadata IOPS between the steps",
        lustre(1200, **PERSISTENT_2, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 2000}),
        "Files",
        "Invalid metadata Iops: 2000.",
    ),
    (
        "EFA on a small file system",
        lustre(2400, **PERSISTENT_2, EfaEnabled=True, MetadataConfiguration={"Mode": "AUTOMATIC"}),
        "Files",
        "Must be a multiple of 38400 for an EFA-enabled file system",
    ),
    (
        "a group without Lustre's port",
        properties("Files", SecurityGroupIds=[imported("Closed")]),
        "Files",
        "do not permit Lustre LNET network traffic on port 988",
    ),
    (
        "a file system in no subnet",
        properties("Files", SubnetIds=["subnet-0123456789abcdef0"]),
        "Files",
        "Error Code: InvalidNetworkSettings",
    ),
    (
        "a link with a relative path",
        properties("Link", FileSystemPath="data"),
        "Link",
        "must start with a forward slash",
    ),
    (
        "a link to a bucket that is not there",
        properties("Link", DataRepositoryPath="s3://nobodys-bucket/"),
        "Link",
        "The S3 bucket nobodys-bucket does not exist",
    ),
    (
        "an event that FSx does not know",
        properties("Link", S3={"AutoImportPolicy": {"Events": ["TOUCHED"]}}),
        "Link",
        "TOUCHED is not a valid enum value",
    ),
    (
        "overlapping paths",
        second_link("/data/more", "/more/"),
        "Second",
        "The file system path /data/more overlaps with /data",
    ),
    ("overlapping prefixes", second_link("/more", "/tokens/more/"), "Second", "overlaps with s3://"),
    # Groups, alarms and roles
    (
        "a security group in no VPC",
        only("Group", "AWS::EC2::SecurityGroup", GroupDescription="x", VpcId="vpc-0123456789abcdef0"),
        "Group",
        "Error Code: InvalidVpcID.NotFound",
    ),
    (
        "an alarm with a crooked period",
        only("Alarm", "AWS::CloudWatch::Alarm", **{**_ALARM, "Period": 61}),
        "Alarm",
        "Metric alarm period must be 10, 20, 30 or a multiple of 60",
    ),
    (
        "an alarm that waits for more points than it looks at",
        only("Alarm", "AWS::CloudWatch::Alarm", **_ALARM, DatapointsToAlarm=5),
        "Alarm",
        "DatapointsToAlarm must be less than or equal to EvaluationPeriods",
    ),
    (
        "a role with an effect that IAM does not know",
        only("Role", "AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": [{**_TRUST, "Effect": "Maybe"}]}),
        "Role",
        "Error Code: MalformedPolicyDocument",
    ),
    # What CloudFormation itself checks
    (
        "a capacity in words",
        lustre("much", **PERSISTENT_2),
        "Files",
        "failed for resource Files with message:\n#/StorageCapacity: expected type: Integer, found: String",
    ),
    (
        "a property that the type has not",
        properties("Files", Colour="blue"),
        "Files",
        "#: extraneous key [Colour] is not permitted",
    ),
    (
        "a required property left out",
        lambda t: t["Resources"]["Launch"]["Properties"].clear(),
        "Launch",
        "#: required key [LaunchTemplateData] not found",
    ),
    (
        "a read-only property",
        properties("Files", Id="fs-1"),
        "Files",
        "extraneous key [Id] is not permitted: it is read-only",
    ),
    (
        "a value off the list",
        only("Log", "AWS::EC2::FlowLog", ResourceId=imported("Vpc"), ResourceType="VPC", TrafficType="SOME"),
        "Log",
        "#/TrafficType: SOME is not a valid enum value",
    ),
    (
        "a property that it does not carry out",
        properties("Nodes", TargetGroupARNs=["arn"]),
        "Nodes",
        "the local AWS does not carry out TargetGroupARNs of AWS::AutoScaling::AutoScalingGroup",
    ),
    (
        "an attribute that the type has not",
        launch(KeyName={"Fn::GetAtt": ["Files", "Colour"]}),
        "Launch",
        "resource Files does not support attribute type Colour in Fn::GetAtt",
    ),
    (
        "an import of nothing",
        properties("Files", SubnetIds=[{"Fn::ImportValue": "nothing"}]),
        "Files",
        "No export named nothing found.",
    ),
    (
        "an unknown function",
        launch(KeyName={"Fn::GetStackOutput": {}}),
        "Launch",
        "the local AWS has no function Fn::GetStackOutput",
    ),
    # Other services
    (
        "a managed policy that AWS lacks",
        only(
            "Role",
            "AWS::IAM::Role",
            AssumeRolePolicyDocument={"Statement": []},
            ManagedPolicyArns=["arn:aws:iam::aws:policy/Nothing"],
        ),
        "Role",
        "HandlerErrorCode: NotFound",
    ),
    (
        "a rule for a group that is not there",
        only(
            "Rule",
            "AWS::EC2::SecurityGroupIngress",
            GroupId="sg-0123456789abcdef0",
            IpProtocol="-1",
            CidrIp="10.0.0.0/8",
        ),
        "Rule",
        "Error Code: InvalidGroup",
    ),
    (
        "a subnet outside of its VPC",
        only("Out", "AWS::EC2::Subnet", VpcId=imported("Vpc"), CidrBlock="192.168.0.0/24"),
        "Out",
        "Error Code: InvalidSubnet.Range",
    ),
    (
        "an endpoint of no service",
        only("End", "AWS::EC2::VPCEndpoint", VpcId=imported("Vpc"), ServiceName="com.amazonaws.us-east-1.nothing"),
        "End",
        "does not exist",
    ),
    (
        "a schedule that cannot assume its role",
        with_role(
            "Tick",
            "AWS::Scheduler::Schedule",
            FlexibleTimeWindow={"Mode": "OFF"},
            ScheduleExpression="rate(1 minute)",
            Target={
                "Arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
                "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
            },
        ),
        "Tick",
        "must allow AWS EventBridge Scheduler to assume the role",
    ),
    (
        "a layer that nobody shares",
        with_role(
            "Power",
            "AWS::Lambda::Function",
            Code={"ZipFile": "pass"},
            Handler="index.handler",
            Runtime="python3.13",
            Role={"Fn::GetAtt": ["Role", "Arn"]},
            Layers=["arn:aws:lambda:us-east-1:111122223333:layer:private:1"],
        ),
        "Power",
        "Error Code: AccessDeniedException",
    ),
    (
        "a bucket policy without a bucket",
        only("Policy", "AWS::S3::BucketPolicy", Bucket="nobodys-bucket", PolicyDocument={"Statement": []}),
        "Policy",
        "HandlerErrorCode: NotFound",
    ),
]


def test_the_template_that_the_tables_change_is_legal(stacks: Stacks, nodes: Template) -> None:
    assert stacks.status(stacks.create(nodes)) == "CREATE_COMPLETE"


@pytest.mark.parametrize(("change", "logical_id", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_template_fails_for_its_reason_and_leaves_nothing(
    refused: Callable[[Template], tuple[str, str]], nodes: Template, change: Change, logical_id: str, words: str
) -> None:
    change(nodes)
    failed, reason = refused(nodes)
    assert failed == logical_id
    assert words in reason
