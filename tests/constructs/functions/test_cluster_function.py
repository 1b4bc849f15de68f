from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template

from cdk_training_cluster.functions import ClusterFunction, make_tick
from synthesis import new_stack, only, resources


def make_function(stack: Stack, **settings: Any) -> ClusterFunction:
    return ClusterFunction(
        stack,
        "Function",
        package="cluster_power",
        called="the power function",
        description="Does things",
        cluster_name="base-pod",
        alert_topic=sns.Topic(stack, "Alerts"),
        timeout=Duration.seconds(50),
        **({"settings": {"cluster": "base-pod"}} | settings),
    )


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    make_function(stack)
    return stack


def test_the_function_runs_the_code_of_its_package(stack: Stack) -> None:
    only(
        stack,
        "AWS::Lambda::Function",
        {
            "Handler": "cluster_power.handler.handler",
            "Runtime": "python3.14",
            "Architectures": ["arm64"],
            "Timeout": 50,
            "MemorySize": 256,
            "Layers": [Match.string_like_regexp("AWSLambdaPowertoolsPythonV3-python314-arm64")],
        },
    )


def test_settings_reach_the_function_as_compact_json_with_what_powertools_reads(stack: Stack) -> None:
    assert only(stack, "AWS::Lambda::Function")["Properties"]["Environment"] == {
        "Variables": {
            "CLUSTER_POWER_SETTINGS": '{"cluster":"base-pod"}',
            "POWERTOOLS_SERVICE_NAME": "cluster_power",
            "POWERTOOLS_METRICS_NAMESPACE": "CdkTrainingCluster/Functions",
            "POWERTOOLS_LOG_LEVEL": "INFO",
        }
    }


def test_it_writes_to_a_log_group_of_its_own_that_forgets_and_goes_with_it(stack: Stack) -> None:
    name, group = next(iter(resources(stack, "AWS::Logs::LogGroup").items()))

    assert group["Properties"]["RetentionInDays"] == 90
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Delete"
    only(stack, "AWS::Lambda::Function", {"LoggingConfig": {"LogGroup": {"Ref": name}}})


def test_its_role_may_write_to_its_log_and_its_queue_and_nothing_else(stack: Stack) -> None:
    log = next(iter(resources(stack, "AWS::Logs::LogGroup")))

    only(stack, "AWS::IAM::Role", {"ManagedPolicyArns": Match.absent(), "Policies": Match.absent()})
    assert only(stack, "AWS::IAM::Policy")["Properties"]["PolicyDocument"]["Statement"] == [
        {
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Effect": "Allow",
            "Resource": {"Fn::GetAtt": [log, "Arn"]},
        },
        {"Action": "sqs:SendMessage", "Effect": "Allow", "Resource": _queue_arn(stack)},
    ]


def _queue_arn(stack: Stack) -> dict[str, Any]:
    return {"Fn::GetAtt": [next(iter(resources(stack, "AWS::SQS::Queue"))), "Arn"]}


def test_an_event_that_it_cannot_handle_goes_to_a_queue_with_an_alarm() -> None:
    stack = new_stack()
    function = make_function(stack)
    for user in ("Ana", "Bo"):
        function.grant_invoke(iam.User(stack, user), alias="operate")

    queue = _queue_arn(stack)
    configs = resources(
        stack,
        "AWS::Lambda::EventInvokeConfig",
        {
            "DestinationConfig": {"OnFailure": {"Destination": queue}},
            "MaximumEventAgeInSeconds": 60,
            "MaximumRetryAttempts": 0,
        },
    )
    assert sorted(one["Properties"]["Qualifier"] for one in configs.values()) == ["$LATEST", "operate"]
    (alias,) = resources(stack, "AWS::Lambda::Alias")
    assert [alias] in [one.get("DependsOn") for one in configs.values()]
    only(stack, "AWS::SQS::Queue", {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 24 * 3600})
    only(
        stack,
        "AWS::CloudWatch::Alarm",
        {"MetricName": "NumberOfMessagesSent", "Threshold": 2, "Period": 900, "TreatMissingData": "notBreaching"},
    )


def test_what_the_scheduler_cannot_deliver_goes_to_the_same_queue() -> None:
    stack = new_stack()

    make_tick(stack, make_function(stack), cluster_name="base-pod", every=Duration.minutes(1))

    queue = _queue_arn(stack)
    only(stack, "AWS::Scheduler::Schedule", {"Target": {"DeadLetterConfig": {"Arn": queue}}})
    sending = {"Action": "sqs:SendMessage", "Resource": queue}
    with_it = resources(
        stack, "AWS::IAM::Policy", {"PolicyDocument": {"Statement": Match.array_with([Match.object_like(sending)])}}
    )
    assert len(with_it) == 2  # the function's and the schedule's


def test_a_key_encrypts_its_log_environment_and_queue() -> None:
    stack = new_stack()
    arn = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"

    function = make_function(stack, encryption_key=kms.Key.from_key_arn(stack, "Key", arn))
    make_tick(stack, function, cluster_name="base-pod", every=Duration.minutes(1))

    only(stack, "AWS::Logs::LogGroup", {"KmsKeyId": arn})
    only(stack, "AWS::Lambda::Function", {"KmsKeyArn": arn})
    only(stack, "AWS::SQS::Queue", {"KmsMasterKeyId": arn})
    using = {"Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Effect": "Allow", "Resource": arn}
    statements = Match.object_like({"PolicyDocument": {"Statement": Match.array_with([using])}})
    assert resources(stack, "AWS::IAM::Policy", statements)


def test_no_custom_resource_is_made(stack: Stack) -> None:
    kinds = {resource["Type"] for resource in Template.from_stack(stack).to_json()["Resources"].values()}

    assert not any(kind.startswith(("Custom::", "AWS::CloudFormation::CustomResource")) for kind in kinds)
    assert len(resources(stack, "AWS::Lambda::Function")) == 1


def test_a_layer_of_ones_own_takes_the_place_of_the_public_one() -> None:
    stack = new_stack(region="cn-northwest-1")
    arn = "arn:aws-cn:lambda:cn-northwest-1:111122223333:layer:powertools:1"

    make_function(stack, powertools_layer=lambda_.LayerVersion.from_layer_version_arn(stack, "Own", arn))

    only(stack, "AWS::Lambda::Function", {"Layers": [arn]})


def test_the_largest_settings_that_lambda_takes() -> None:
    """Lambda counts names and values of all variables; an ARN known at deployment only counts as 256 bytes."""
    fixed = (
        len("CLUSTER_POWER_SETTINGS" + '{"x":""}')
        + len("POWERTOOLS_SERVICE_NAME" + "cluster_power")
        + len("POWERTOOLS_METRICS_NAMESPACE" + "CdkTrainingCluster/Functions")
        + len("POWERTOOLS_LOG_LEVEL" + "INFO")
        + len("TOPIC")
        + 256
    )
    stack = new_stack()
    topic = {"TOPIC": sns.Topic(stack, "Topic").topic_arn}

    make_function(stack, settings={"x": "y" * (4096 - fixed)}, environment=topic)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        make_function(new_stack(), settings={"x": "y" * (4097 - fixed)}, environment=topic)

    assert str(caught.value) == (
        "settings of cluster_power must fit into 4096 bytes of environment, got 4097: use fewer node "
        "groups, idle policies, idle signals, data sets, patterns of preload, services, linked accounts or emails, "
        "or shorter names"
    )


def test_settings_that_the_function_could_not_read_are_not_written() -> None:
    with pytest.raises(ValueError, match=r"^Out of range float values are not JSON compliant"):
        make_function(new_stack(), settings={"below": float("inf")})
