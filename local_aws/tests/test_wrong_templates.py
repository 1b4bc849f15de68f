"""A table of templates that AWS refuses: each fails to deploy for its reason and leaves nothing behind."""

from collections.abc import Callable
from typing import Any

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


def _table(*attributes: dict[str, str], **properties: Any) -> Change:
    key = {"AttributeName": "part"}
    return only(
        "Items",
        "AWS::DynamoDB::Table",
        AttributeDefinitions=[{**key, "AttributeType": "S"}, *attributes],
        KeySchema=[{**key, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        **properties,
    )


def _directory_bucket(zone: str, name: str | None = None) -> Change:
    named = {} if name is None else {"BucketName": name}
    where = {"LocationName": zone, "DataRedundancy": "SingleAvailabilityZone"}
    return only("Bucket", "AWS::S3Express::DirectoryBucket", **where, **named)


def _copied_to(bucket: str, key: str = "", **rule: Any) -> Change:
    encrypted = {"EncryptionConfiguration": {"ReplicaKmsKeyID": key}} if key else {}
    rules = [{"Status": "Enabled", "Destination": {"Bucket": f"arn:aws:s3:::{bucket}", **encrypted}, **rule}]
    configuration = {"Role": "arn:aws:iam::123456789012:role/r", "Rules": rules}
    versioned = {"Status": "Enabled"}
    return only(
        "Bucket", "AWS::S3::Bucket", VersioningConfiguration=versioned, ReplicationConfiguration=configuration
    )


# Words of the reason that it fails to deploy for, and the change that makes the template wrong.
WRONG: dict[str, Change] = {
    "the local AWS has no AWS::EC2::EC2Fleet": only("Fleet", "AWS::EC2::EC2Fleet"),
    "Error Code: InvalidUserData": launch(UserData="#!/bin/bash"),
    # Node groups
    (
        "You must use a valid fully-formed launch template. Invalid value 'p9.48xlarge' for InstanceType. (EC2 error "
        "code: InvalidParameterValue)"
    ): launch(InstanceType="p9.48xlarge"),
    "When a network interface is provided, the security groups must be a part of it.": launch(
        SecurityGroupIds=[imported("Group")]
    ),
    "the group's VPCZoneIdentifier decides": launch(
        NetworkInterfaces=[interface(0, 0, "interface") | {"SubnetId": imported("Subnet")}]
    ),
    "Parameter /nothing does not exist": launch(ImageId="resolve:ssm:/nothing"),
    "when you configure an Auto Scaling group with a mixed instances policy.": both(
        launch(InstanceMarketOptions={"MarketType": "spot"}), mixed
    ),
    "Max bound, 4, must be greater than or equal to min bound, 5": properties("Nodes", MinSize="5"),
    "Desired capacity:5 must be between the specified min size:0 and max size:4": properties(
        "Nodes", DesiredCapacity="5"
    ),
    "subnet-0123456789abcdef0": properties("Nodes", VPCZoneIdentifier=["subnet-0123456789abcdef0"]),
    # File systems and links
    "Invalid Lustre FS storage capacity: 3600. Must be 1200 or a multiple of 2400.": lustre(3600, **PERSISTENT_2),
    "The storage throughput (MB/s/TiB) value should be one of [125,250,500,1000].": lustre(
        1200, DeploymentType="PERSISTENT_2", PerUnitStorageThroughput=100
    ),
    "Invalid metadata Iops: 2000.": lustre(
        1200, **PERSISTENT_2, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 2000}
    ),
    "Must be a multiple of 38400 for an EFA-enabled file system": lustre(
        2400, **PERSISTENT_2, EfaEnabled=True, MetadataConfiguration={"Mode": "AUTOMATIC"}
    ),
    "do not permit Lustre LNET network traffic on port 988": properties(
        "Files", SecurityGroupIds=[imported("Closed")]
    ),
    "Error Code: InvalidNetworkSettings": properties("Files", SubnetIds=["subnet-0123456789abcdef0"]),
    "must start with a forward slash": properties("Link", FileSystemPath="data"),
    "The S3 bucket nobodys-bucket does not exist": properties("Link", DataRepositoryPath="s3://nobodys-bucket/"),
    "TOUCHED is not a valid enum value": properties("Link", S3={"AutoImportPolicy": {"Events": ["TOUCHED"]}}),
    "The file system path /data/more overlaps with /data": second_link("/data/more", "/more/"),
    "overlaps with s3://": second_link("/more", "/tokens/more/"),
    # Groups, alarms and roles
    "Error Code: InvalidVpcID.NotFound": only(
        "Group", "AWS::EC2::SecurityGroup", GroupDescription="x", VpcId="vpc-0123456789abcdef0"
    ),
    "Metric alarm period must be 10, 20, 30 or a multiple of 60": only(
        "Alarm", "AWS::CloudWatch::Alarm", **{**_ALARM, "Period": 61}
    ),
    "DatapointsToAlarm must be less than or equal to EvaluationPeriods": only(
        "Alarm", "AWS::CloudWatch::Alarm", **_ALARM, DatapointsToAlarm=5
    ),
    "Error Code: MalformedPolicyDocument": only(
        "Role", "AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": [{**_TRUST, "Effect": "Maybe"}]}
    ),
    # What CloudFormation itself checks
    "failed for resource Files with message:\n#/StorageCapacity: expected type: Integer, found: String": lustre(
        "much", **PERSISTENT_2
    ),
    "#: extraneous key [Colour] is not permitted": properties("Files", Colour="blue"),
    "#: required key [LaunchTemplateData] not found": lambda t: t["Resources"]["Launch"]["Properties"].clear(),
    "extraneous key [Id] is not permitted: it is read-only": properties("Files", Id="fs-1"),
    "#/TrafficType: SOME is not a valid enum value": only(
        "Log", "AWS::EC2::FlowLog", ResourceId=imported("Vpc"), ResourceType="VPC", TrafficType="SOME"
    ),
    "the local AWS does not support TargetGroupARNs of AWS::AutoScaling::AutoScalingGroup": properties(
        "Nodes", TargetGroupARNs=["arn"]
    ),
    "resource Files does not support attribute type Colour in Fn::GetAtt": launch(
        KeyName={"Fn::GetAtt": ["Files", "Colour"]}
    ),
    "No export named nothing found.": properties("Files", SubnetIds=[{"Fn::ImportValue": "nothing"}]),
    "the local AWS has no function Fn::GetStackOutput": launch(KeyName={"Fn::GetStackOutput": {}}),
    # Other services
    "JSON syntax error in input for target Power.": only(
        "Rule",
        "AWS::Events::Rule",
        EventPattern={"source": ["aws.ec2"]},
        Targets=[{"Arn": "arn:aws:sqs:us-east-1:123456789012:q", "Id": "Power", "Input": "{action: tick}"}],
    ),
    "Some AttributeDefinitions are not used: size": _table({"AttributeName": "size", "AttributeType": "N"}),
    "The Tag Value provided is invalid": _table(Tags=[{"Key": "owner", "Value": "ana@example.com"}]),
    "policy/Nothing": only(
        "Role",
        "AWS::IAM::Role",
        AssumeRolePolicyDocument={"Statement": []},
        ManagedPolicyArns=["arn:aws:iam::aws:policy/Nothing"],
    ),
    "Error Code: InvalidGroup": only(
        "Rule",
        "AWS::EC2::SecurityGroupIngress",
        GroupId="sg-0123456789abcdef0",
        IpProtocol="-1",
        CidrIp="10.0.0.0/8",
    ),
    "Error Code: InvalidSubnet.Range": only(
        "Out", "AWS::EC2::Subnet", VpcId=imported("Vpc"), CidrBlock="192.168.0.0/24"
    ),
    "does not exist": only(
        "End", "AWS::EC2::VPCEndpoint", VpcId=imported("Vpc"), ServiceName="com.amazonaws.us-east-1.nothing"
    ),
    "must allow AWS EventBridge Scheduler to assume the role": with_role(
        "Tick",
        "AWS::Scheduler::Schedule",
        FlexibleTimeWindow={"Mode": "OFF"},
        ScheduleExpression="rate(1 minute)",
        Target={
            "Arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
            "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        },
    ),
    "Error Code: AccessDeniedException": with_role(
        "Power",
        "AWS::Lambda::Function",
        Code={"ZipFile": "pass"},
        Handler="index.handler",
        Runtime="python3.13",
        Role={"Fn::GetAtt": ["Role", "Arn"]},
        Layers=["arn:aws:lambda:us-east-1:111122223333:layer:private:1"],
    ),
    # Checkpoints
    "The specified bucket is not valid.": _directory_bucket("use1-az4", "runs--use1-az5--x-s3"),
    "The specified location-constraint is not valid": _directory_bucket("use1-az1"),
    "Destination bucket must exist.": _copied_to("nobodys-bucket"),
    "SseKmsEncryptedObjects must be specified if EncryptionConfiguration is present": _copied_to(
        "nobodys-bucket", "arn:aws:kms:us-west-2:123456789012:key/1"
    ),
    "did not validate against our published schema": _copied_to("nobodys-bucket", Filter={"Prefix": ""}),
    "The specified bucket does not exist": only(
        "Policy", "AWS::S3::BucketPolicy", Bucket="nobodys-bucket", PolicyDocument={"Statement": []}
    ),
}


def test_the_template_that_the_tables_change_is_legal(stacks: Stacks, nodes: Template) -> None:
    assert stacks.status(stacks.create(nodes)) == "CREATE_COMPLETE"


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_template_fails_for_its_reason_and_leaves_nothing(
    refused: Callable[[Template], str], nodes: Template, words: str
) -> None:
    WRONG[words](nodes)
    assert words in refused(nodes)
