"""Asks the local AWS's own tables whether AWS takes a text, in the request that would carry it."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from local_aws.cloudformation import schemas, templates
from local_aws.cloudformation.failures import ValidationError
from local_aws.texts import refusal_of

# For each row of the library's table: service, operation and member; `~` is the key of a map, 0 the item of a list.
# `if Member=text` is what else the request has.
REQUESTS: Mapping[str, str] = {
    "ec2TagKey": "ec2 CreateTags Tags.0.Key",
    "ec2TagValue": "ec2 CreateTags Tags.0.Value",
    "budgetsTagKey": "budgets CreateBudget ResourceTags.0.Key",
    "budgetsTagValue": "budgets CreateBudget ResourceTags.0.Value",
    "autoScalingTagKey": "autoscaling CreateOrUpdateTags Tags.0.Key",
    "autoScalingTagValue": "autoscaling CreateOrUpdateTags Tags.0.Value",
    "cloudwatchTagKey": "cloudwatch TagResource Tags.0.Key",
    "cloudwatchTagValue": "cloudwatch TagResource Tags.0.Value",
    "eventsTagKey": "events TagResource Tags.0.Key",
    "eventsTagValue": "events TagResource Tags.0.Value",
    "iamTagKey": "iam TagRole Tags.0.Key",
    "iamTagValue": "iam TagRole Tags.0.Value",
    "lambdaTagKey": "lambda CreateFunction Tags.~",
    "lambdaTagValue": "lambda CreateFunction Tags.k",
    "logsTagKey": "logs CreateLogGroup tags.~",
    "logsTagValue": "logs CreateLogGroup tags.k",
    "fsxTagKey": "fsx TagResource Tags.0.Key",
    "fsxTagValue": "fsx TagResource Tags.0.Value",
    "dynamodbTagKey": "dynamodb TagResource Tags.0.Key",
    "dynamodbTagValue": "dynamodb TagResource Tags.0.Value",
    "ssmTagKey": "ssm AddTagsToResource Tags.0.Key",
    "ssmTagValue": "ssm AddTagsToResource Tags.0.Value",
    "parameterTagKey": "ssm AddTagsToResource Tags.0.Key",
    "parameterTagValue": "ssm AddTagsToResource Tags.0.Value",
    "resourceGroupsTagKey": "resource-groups CreateGroup Tags.~",
    "resourceGroupsTagValue": "resource-groups CreateGroup Tags.k",
    "s3TagKey": "s3 PutBucketTagging Tagging.TagSet.0.Key",
    "s3TagValue": "s3 PutBucketTagging Tagging.TagSet.0.Value",
    "snsTagKey": "sns CreateTopic Tags.0.Key",
    "snsTagValue": "sns CreateTopic Tags.0.Value",
    "sqsTagKey": "sqs CreateQueue tags.~",
    "sqsTagValue": "sqs CreateQueue tags.k",
    "kmsTagKey": "kms TagResource Tags.0.TagKey",
    "kmsTagValue": "kms TagResource Tags.0.TagValue",
    "eksTagKey": "eks CreateCluster tags.~",
    "eksTagValue": "eks CreateCluster tags.k",
    "pcsTagKey": "pcs CreateCluster tags.~",
    "pcsTagValue": "pcs CreateCluster tags.k",
    "sagemakerTagKey": "sagemaker CreateCluster Tags.0.Key",
    "sagemakerTagValue": "sagemaker CreateCluster Tags.0.Value",
    "securityGroupText": "ec2 CreateSecurityGroup Description",
    "securityGroupRuleText": "ec2 AuthorizeSecurityGroupIngress IpPermissions.0.UserIdGroupPairs.0.Description",
    "securityGroupName": "ec2 CreateSecurityGroup GroupName",
    "placementGroupName": "ec2 CreatePlacementGroup GroupName",
    "launchTemplateName": "ec2 CreateLaunchTemplate LaunchTemplateName",
    "launchTemplateVersion": "ec2 CreateLaunchTemplate VersionDescription",
    "autoScalingGroupName": "autoscaling CreateAutoScalingGroup AutoScalingGroupName",
    "lifecycleHookName": "autoscaling PutLifecycleHook LifecycleHookName",
    "roleName": "iam CreateRole RoleName",
    "policyName": "iam PutRolePolicy PolicyName",
    "iamPath": "iam CreateRole Path",
    "roleDescription": "iam CreateRole Description",
    "alarmName": "cloudwatch PutMetricAlarm AlarmName",
    "alarmDescription": "cloudwatch PutMetricAlarm AlarmDescription",
    "metricNamespace": "cloudwatch PutMetricAlarm Namespace",
    "metricName": "cloudwatch PutMetricAlarm MetricName",
    "dimensionName": "cloudwatch PutMetricAlarm Dimensions.0.Name",
    "dimensionValue": "cloudwatch PutMetricAlarm Dimensions.0.Value",
    "metricId": "cloudwatch PutMetricAlarm Metrics.0.Id",
    "metricExpression": "cloudwatch PutMetricAlarm Metrics.0.Expression",
    "logGroupName": "logs CreateLogGroup logGroupName",
    "topicName": "sns CreateTopic Name",
    "topicDisplayName": "sns CreateTopic Attributes.DisplayName",
    "email": "sns Subscribe Endpoint",
    "queueName": "sqs CreateQueue QueueName",
    "functionName": "lambda CreateFunction FunctionName",
    "functionAlias": "lambda CreateAlias Name",
    "functionDescription": "lambda CreateFunction Description",
    "functionVariable": "lambda CreateFunction Environment.Variables.~",
    "functionVariableValue": "lambda CreateFunction Environment.Variables.KEY",
    "eventRuleName": "events PutRule Name",
    "eventRuleDescription": "events PutRule Description",
    "eventTargetInput": "events PutTargets Targets.0.Input",
    "scheduleName": "scheduler CreateSchedule Name",
    "scheduleDescription": "scheduler CreateSchedule Description",
    "documentName": "ssm CreateDocument Name",
    "parameterName": "ssm PutParameter Name",
    "parameterDescription": "ssm PutParameter Description",
    "standardParameterValue": "ssm PutParameter Value",
    "parameterValue": "ssm PutParameter Value if Tier=Advanced",
    "bucketName": "s3 CreateBucket Bucket",
    "lifecycleRuleId": "s3 PutBucketLifecycleConfiguration LifecycleConfiguration.Rules.0.ID",
    "fileSystemPath": "fsx CreateDataRepositoryAssociation FileSystemPath",
    "dataRepositoryPath": "fsx CreateDataRepositoryAssociation DataRepositoryPath",
    "resourceGroupName": "resource-groups CreateGroup Name",
    "resourceGroupDescription": "resource-groups CreateGroup Description",
    "keyDescription": "kms CreateKey Description",
    "templateDescription": "template - Description",
    "logicalId": "template - Outputs.~",
    "outputDescription": "template - Outputs.O.Description",
    "exportName": "export - Name",
    "templateParameterDescription": "template - Parameters.P.Description",
}


# What CloudFormation's schema asks more of than the service: the type, and its properties with the text.
_STRICTER_SCHEMAS: Mapping[str, tuple[str, Callable[[str], Mapping[str, Any]]]] = {
    "resourceGroupName": ("AWS::ResourceGroups::Group", lambda text: {"Name": text}),
    "resourceGroupDescription": ("AWS::ResourceGroups::Group", lambda text: {"Name": "group", "Description": text}),
    "cloudwatchTagValue": (
        "AWS::CloudWatch::Alarm",
        lambda text: {
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": 1,
            "MetricName": "m",
            "Tags": _tag(text),
        },
    ),
    "ssmTagValue": ("AWS::SSM::Document", lambda text: {"Content": {}, "Tags": _tag(text)}),
}


def _tag(value: str) -> list[Mapping[str, str]]:
    return [{"Key": "k", "Value": value}]


def is_taken(row: str, text: str) -> bool:
    """Tell whether AWS, as the local AWS knows it, takes a text that a row of the library's table is about."""
    service, operation, path = REQUESTS[row].split(" ", 2)
    path, _, condition = path.partition(" if ")
    other = dict([condition.split("=")]) if condition else {}
    if service == "template":
        return _is_template({"Resources": {"R": {"Type": "T"}}, **_nested(path.split("."), text)})
    if service == "export":
        return _is_export(text)
    if row in _STRICTER_SCHEMAS:
        resource_type, properties = _STRICTER_SCHEMAS[row]
        if schemas.check(resource_type, "It", properties(text))[1] is not None:
            return False
    return refusal_of(service, operation, {**_nested(path.split("."), text), **other}) is None


def _nested(path: list[str], text: str) -> Any:
    if not path:
        return text
    key, rest = path[0], path[1:]
    if key == "~":
        return {text: "x"}
    return [_nested(rest, text)] if key == "0" else {key: _nested(rest, text)}


def _is_template(template: Any) -> bool:
    for name, output in template.get("Outputs", {}).items():
        template["Outputs"][name] = {"Value": "x", **({} if output == "x" else output)}
    try:
        templates.parse(json.dumps(template))
    except ValidationError:
        return False
    return True


def _is_export(name: str) -> bool:
    try:
        templates.check_export("O", name)
    except ValidationError:
        return False
    return True
