"""Every resource type that it carries out is created, changed in place, read back and deleted at least once."""

import json
from typing import Any

import pytest

from batch_template import batch_template
from capacity_templates import POOL, reservation
from eks_template import eks_template
from local_aws import LocalAws
from local_aws.cloudformation import schemas
from local_aws.cloudformation.resources import HANDLERS
from local_aws.settings import ACCOUNT
from local_aws_scene import NETWORK, NODES, ROLE, Stacks, Template, imported
from pcs_scene import pcs_cluster
from spot_scene import spot_fleet
from warm_scene import warm_nodes
from wrong_hyperpod import governed_template

CODE = {"Code": {"ZipFile": "def handler(event, context): pass"}, "Handler": "index.handler", "Runtime": "python3.13"}
LAYER = "arn:aws:lambda:us-east-1:017000801446:layer:AWSLambdaPowertoolsPythonV3-python313-x86_64:27"


def _trusting(service: str) -> dict[str, Any]:
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}


def _policy(resource: Any, principal: str | None = None) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "*", "Resource": resource}
    who = {"Principal": {"Service": principal}} if principal else {}
    return {"Version": "2012-10-17", "Statement": [statement | who]}


def _arn(logical_id: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [logical_id, "Arn"]}


def _everything(tag: str, days: int) -> Template:
    tags = [{"Key": "tag", "Value": tag}]
    resources: dict[str, tuple[str, dict[str, Any]]] = {
        "Role": ("AWS::IAM::Role", {**_trusting("lambda.amazonaws.com"), "Description": tag, "Tags": tags}),
        "TickRole": ("AWS::IAM::Role", _trusting("scheduler.amazonaws.com")),
        "Inline": (
            "AWS::IAM::Policy",
            {
                "PolicyName": f"inline-{tag}",
                "PolicyDocument": _policy(f"arn:aws:s3:::{tag}"),
                "Roles": [{"Ref": "Role"}],
            },
        ),
        "Profile": ("AWS::IAM::InstanceProfile", {"Roles": [{"Ref": "Role" if days == 1 else "TickRole"}]}),
        "Logs": ("AWS::Logs::LogGroup", {"RetentionInDays": days, "Tags": tags}),
        "Board": (
            "AWS::CloudWatch::Dashboard",
            {
                "DashboardBody": json.dumps({"widgets": [{"type": "text", "properties": {"markdown": tag}}]}),
            },
        ),
        "FlowRole": ("AWS::IAM::Role", _trusting("vpc-flow-logs.amazonaws.com")),
        "Flows": (
            "AWS::EC2::FlowLog",
            {
                "ResourceId": imported("Vpc"),
                "ResourceType": "VPC",
                "TrafficType": "ALL",
                "LogGroupName": {"Ref": "Logs"},
                "DeliverLogsPermissionArn": _arn("FlowRole"),
                "Tags": tags,
            },
        ),
        "Function": (
            "AWS::Lambda::Function",
            {
                **CODE,
                "Role": _arn("Role"),
                "Layers": [LAYER],
                "MemorySize": str(128 * days),
                "Environment": {"Variables": {"TAG": tag}},
                "ReservedConcurrentExecutions": days,
                "Tags": tags,
            },
        ),
        "FunctionAlias": (
            "AWS::Lambda::Alias",
            {"FunctionName": {"Ref": "Function"}, "FunctionVersion": "$LATEST", "Name": "operate"},
        ),
        "Permission": (
            "AWS::Lambda::Permission",
            {
                "FunctionName": {"Ref": "Function"},
                "Action": "lambda:InvokeFunction",
                "Principal": "events.amazonaws.com",
                "SourceArn": _arn("Rule"),
            },
        ),
        "Invoke": (
            "AWS::Lambda::EventInvokeConfig",
            {"FunctionName": {"Ref": "Function"}, "Qualifier": "$LATEST", "MaximumRetryAttempts": days - 1},
        ),
        "Tick": (
            "AWS::Scheduler::Schedule",
            {
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "ScheduleExpression": f"rate({days} minutes)",
                "Target": {"Arn": _arn("Function"), "RoleArn": _arn("TickRole")},
            },
        ),
        "Topic": ("AWS::SNS::Topic", {"DisplayName": "the same", "Tags": tags}),
        "TopicPolicy": (
            "AWS::SNS::TopicPolicy",
            {"PolicyDocument": _policy({"Ref": "Topic"}, f"{tag}.amazonaws.com"), "Topics": [{"Ref": "Topic"}]},
        ),
        "Mail": (
            "AWS::SNS::Subscription",
            {"TopicArn": {"Ref": "Topic"}, "Protocol": "email", "Endpoint": "ml@example.com"},
        ),
        "Queue": ("AWS::SQS::Queue", {"VisibilityTimeout": 30 * days, "Tags": tags}),
        "QueuePolicy": (
            "AWS::SQS::QueuePolicy",
            {"PolicyDocument": _policy(_arn("Queue"), "sns.amazonaws.com"), "Queues": [{"Ref": "Queue"}]},
        ),
        "Rule": (
            "AWS::Events::Rule",
            {
                "EventPattern": {"source": [tag]},
                "State": "ENABLED",
                "Targets": [{"Arn": _arn("Queue"), "Id": tag}],
            },
        ),
        "Alarm": (
            "AWS::CloudWatch::Alarm",
            {
                "Namespace": "n",
                "MetricName": "m",
                "Statistic": "Sum",
                "Period": 60,
                "EvaluationPeriods": days,
                "Threshold": 1,
                "ComparisonOperator": "GreaterThanThreshold",
                "TreatMissingData": "breaching",
                "AlarmActions": [{"Ref": "Topic"}],
                "Tags": tags,
            },
        ),
        "Spending": (
            "AWS::Budgets::Budget",
            {
                "Budget": {
                    "BudgetType": "COST",
                    "TimeUnit": "MONTHLY",
                    "BudgetLimit": {"Amount": 1000 * days, "Unit": "USD"},
                }
            },
        ),
        "Metrics": (
            "AWS::APS::Workspace",
            {
                "Alias": tag,
                "AlertManagerDefinition": {
                    "Fn::Sub": "alertmanager_config: |\n  route: {receiver: sns}\n  receivers:\n    - name: sns\n"
                    "      sns_configs: [{topic_arn: '${Topic}', sigv4: {region: '${AWS::Region}'}, subject: "
                    f"{tag}}}]\n"
                },
                "WorkspaceConfiguration": {"RetentionPeriodInDays": days},
                "Tags": tags,
            },
        ),
        "MetricRules": (
            "AWS::APS::RuleGroupsNamespace",
            {
                "Workspace": _arn("Metrics"),
                "Name": "rules",
                "Data": f"groups: [{{name: {tag}, rules: [{{record: a, expr: b}}]}}]",
                "Tags": tags,
            },
        ),
        "Bucket": (
            "AWS::S3::Bucket",
            {
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": True}
                    ]
                },
                "PublicAccessBlockConfiguration": {"BlockPublicAcls": "true", "RestrictPublicBuckets": True},
                "VersioningConfiguration": {"Status": "Enabled"},
                "LifecycleConfiguration": {
                    "Rules": [
                        {"Id": tag, "Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": days}}
                    ]
                },
                "Tags": tags,
            },
        ),
        "Copied": (
            "AWS::S3::Bucket",
            {
                "VersioningConfiguration": {"Status": "Enabled"},
                "LifecycleConfiguration": {
                    "Rules": [
                        {"Id": "a", "Status": "Enabled", "ExpiredObjectDeleteMarker": True},
                        {"Id": "b", "Status": "Enabled", "ExpirationInDays": days},
                    ]
                },
                "ReplicationConfiguration": {
                    "Role": _arn("Role"),
                    "Rules": [
                        {
                            "Id": tag,
                            "Status": "Enabled",
                            "Priority": days,
                            "Filter": {"Prefix": ""},
                            "DeleteMarkerReplication": {"Status": "Disabled"},
                            "Destination": {"Bucket": _arn("Bucket")},
                        }
                    ],
                },
            },
        ),
        "DirectoryBucket": (
            "AWS::S3Express::DirectoryBucket",
            {
                "LocationName": "use1-az4",
                "DataRedundancy": "SingleAvailabilityZone",
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
                    ]
                },
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": tag,
                            "Status": "Enabled",
                            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
                        }
                    ]
                },
            },
        ),
        "BucketPolicy": (
            "AWS::S3::BucketPolicy",
            {"Bucket": {"Ref": "Bucket"}, "PolicyDocument": _policy(_arn("Bucket"), f"{tag}.amazonaws.com")},
        ),
        "DirectoryBucketPolicy": (
            "AWS::S3Express::BucketPolicy",
            {
                "Bucket": {"Ref": "DirectoryBucket"},
                "PolicyDocument": _policy(_arn("DirectoryBucket"), f"{tag}.amazonaws.com"),
            },
        ),
        "Repository": ("AWS::ECR::Repository", {"RepositoryName": "everything"}),
        "Parameter": ("AWS::SSM::Parameter", {"Type": "String", "Value": tag, "Tags": {"tag": tag}}),
        "Runbook": (
            "AWS::SSM::Document",
            {
                "Content": {"schemaVersion": "0.3", "description": tag, "mainSteps": []},
                "DocumentType": "Automation",
                "UpdateMethod": "NewVersion",
                "Tags": tags,
            },
        ),
        "Reserved": (
            "AWS::EC2::CapacityReservation",
            reservation(
                InstanceCount=days,
                EndDateType="limited",
                EndDate=f"209{days}-01-01T00:00:00Z",
                TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
            )["Properties"],
        ),
        "Pool": (
            "AWS::ResourceGroups::Group",
            {
                "Name": "everything",
                "Description": tag,
                "Configuration": POOL,
                "Resources": [{"Fn::GetAtt": ["Reserved", "CapacityReservationArn"]}] if days > 1 else [],
                "Tags": tags,
            },
        ),
        "Items": (
            "AWS::DynamoDB::Table",
            {
                "AttributeDefinitions": [{"AttributeName": "part", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "part", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": days > 1},
                "Tags": tags,
            },
        ),
        "Gateway": ("AWS::EC2::InternetGateway", {"Tags": tags}),
        "Attached": (
            "AWS::EC2::VPCGatewayAttachment",
            {"VpcId": imported("Vpc"), "InternetGatewayId": {"Ref": "Gateway"}},
        ),
        "Address": ("AWS::EC2::EIP", {"Domain": "vpc", "Tags": tags}),
        "Nat": (
            "AWS::EC2::NatGateway",
            {
                "SubnetId": imported("Subnet"),
                "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]},
                "Tags": tags,
            },
        ),
        "Table": ("AWS::EC2::RouteTable", {"VpcId": imported("Vpc"), "Tags": tags}),
        "TableHere": (
            "AWS::EC2::SubnetRouteTableAssociation",
            {"SubnetId": imported("Subnet"), "RouteTableId": {"Ref": "Table"}},
        ),
        "Out": (
            "AWS::EC2::Route",
            {
                "RouteTableId": {"Ref": "Table"},
                "DestinationCidrBlock": "0.0.0.0/0",
                **({"NatGatewayId": {"Ref": "Nat"}} if days > 1 else {"GatewayId": {"Ref": "Gateway"}}),
            },
        ),
        "Endpoint": (
            "AWS::EC2::VPCEndpoint",
            {
                "VpcId": imported("Vpc"),
                "ServiceName": {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"},
                "RouteTableIds": [{"Ref": "Table"}],
                "Tags": tags,
            },
        ),
    }
    template: Template = {
        "Resources": {name: {"Type": kind, "Properties": props} for name, (kind, props) in resources.items()},
        "Outputs": {
            f"{name}Arn": {"Value": _arn(name)}
            for name in ("Role", "Logs", "Function", "Tick", "Queue", "Rule", "Alarm", "Bucket")
        },
    }
    for name in ("Out", "Address"):
        template["Resources"][name]["DependsOn"] = "Attached"
    return template


def test_everything_is_created_changed_in_place_and_deleted(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(_everything("first", 1))
    assert stacks.reasons(name) == {}
    before = stacks.physical_ids(name)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks.described(name)["Outputs"]}
    assert all(arn.startswith("arn:aws:") for arn in outputs.values())

    stacks.update(name, _everything("second", 3))
    assert stacks.reasons(name) == {}
    assert stacks.status(name) == "UPDATE_COMPLETE"
    assert stacks.physical_ids(name) == before

    function = aws.client("lambda").get_function(FunctionName=before["Function"])
    assert function["Configuration"]["Environment"]["Variables"] == {"TAG": "second"}
    assert function["Configuration"]["Layers"][0]["Arn"] == LAYER
    assert function["Tags"]["tag"] == "second"
    (alarm,) = aws.client("cloudwatch").describe_alarms(AlarmNames=[before["Alarm"]])["MetricAlarms"]
    assert alarm["EvaluationPeriods"] == 3
    budget = aws.client("budgets").describe_budget(AccountId=ACCOUNT, BudgetName=before["Spending"])["Budget"]
    assert float(budget["BudgetLimit"]["Amount"]) == 3000
    assert _described_metrics(aws) == (before["Metrics"], True, 3, True, "second")
    groups = aws.client("logs").describe_log_groups(logGroupNamePrefix=before["Logs"])["logGroups"]
    assert [group["retentionInDays"] for group in groups] == [3]
    assert aws.client("iam").list_role_policies(RoleName=before["Role"])["PolicyNames"] == ["inline-second"]
    assert aws.client("ssm").get_parameter(Name=before["Parameter"])["Parameter"]["Value"] == "second"
    runbook = aws.client("ssm").describe_document(Name=before["Runbook"])["Document"]
    assert (runbook["Description"], runbook["DefaultVersion"], runbook["DocumentType"]) == (
        "second",
        "2",
        "Automation",
    )
    rules = aws.client("events").list_targets_by_rule(Rule=before["Rule"])["Targets"]
    assert [target["Id"] for target in rules] == ["second"]
    reserved = aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[before["Reserved"]])
    (described,) = reserved["CapacityReservations"]
    assert (described["TotalInstanceCount"], described["EndDate"].year) == (3, 2093)
    assert described["Tags"] == [{"Key": "tag", "Value": "second"}]
    groups = aws.client("resource-groups")
    assert groups.get_group(GroupName=before["Pool"])["Group"]["Description"] == "second"
    (member,) = groups.list_group_resources(Group=before["Pool"])["Resources"]
    assert member["Identifier"]["ResourceArn"] == described["CapacityReservationArn"]
    (table,) = aws.client("ec2").describe_route_tables(RouteTableIds=[before["Table"]])["RouteTables"]
    assert before["Nat"] in [route.get("NatGatewayId") for route in table["Routes"]]

    (copying,) = aws.client("s3").get_bucket_replication(Bucket=before["Copied"])["ReplicationConfiguration"]["Rules"]
    assert (copying["ID"], copying["Destination"]["Bucket"]) == ("second", f"arn:aws:s3:::{before['Bucket']}")
    assert before["DirectoryBucket"].endswith("--use1-az4--x-s3")
    express = aws.client("s3express").get_bucket_lifecycle_configuration(Bucket=before["DirectoryBucket"])
    assert express["Rules"][0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 3}
    policy = aws.client("s3express").get_bucket_policy(Bucket=before["DirectoryBucket"])["Policy"]
    assert "second.amazonaws.com" in policy

    stacks.api.delete_stack(StackName=name)
    assert name not in [stack["StackName"] for stack in stacks.api.describe_stacks()["Stacks"]]


def _described_metrics(aws: LocalAws) -> tuple[str, bool, int, bool, str]:
    amp = aws.client("amp")
    (workspace,) = amp.list_workspaces(alias="second")["workspaces"]
    where = {"workspaceId": workspace["workspaceId"]}
    manager = amp.describe_alert_manager_definition(**where)["alertManagerDefinition"]["data"]
    days = amp.describe_workspace_configuration(**where)["workspaceConfiguration"]["retentionPeriodInDays"]
    rules = amp.describe_rule_groups_namespace(**where, name="rules")["ruleGroupsNamespace"]
    return workspace["arn"], b"subject: second" in manager, days, b"second" in rules["data"], rules["tags"]["tag"]


def test_no_type_is_carried_out_that_no_test_deploys() -> None:
    alone: Template = {"Resources": {"Role": ROLE}}
    templates = (
        NETWORK,
        NODES,
        alone,
        spot_fleet(),
        warm_nodes(),
        batch_template(),
        eks_template(),
        pcs_cluster(),
        governed_template(),
        _everything("first", 1),
    )
    deployed = {resource["Type"] for template in templates for resource in template["Resources"].values()}
    # Custom resources call a function, and are deployed in test_custom_resources.py.
    assert deployed | {"AWS::CloudFormation::CustomResource"} == set(HANDLERS)


@pytest.mark.parametrize("kind", sorted(HANDLERS))
def test_a_handler_carries_out_only_properties_that_the_schema_has(kind: str) -> None:
    schema = schemas.schema_of(kind)
    assert schema is not None
    assert HANDLERS[kind].carries_out <= set(schema["properties"])
