"""A template of most types that the local AWS supports, each with something that can be changed in place."""

import json
from typing import Any

from capacity_templates import POOL, reservation
from local_aws_scene import Template, imported

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


def everything_template(tag: str, days: int) -> Template:
    """Return a template of most types.

    Args:
        tag: A text that every resource holds where it can be changed in place.
        days: A number, likewise.
    """
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
