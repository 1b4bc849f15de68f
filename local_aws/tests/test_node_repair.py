"""What a node's repair needs of AWS: events that reach functions, Standby, and hooks that hold a node."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from function_scene import made_function
from local_aws import LocalAws
from local_aws_scene import Stacks, Template

_HANDLER = """
import boto3, json

def handler(event, context):
    boto3.client("ssm").put_parameter(Name="/got", Value=json.dumps(event), Type="String", Overwrite=True)
"""
_DETAIL = {"cluster": "pod", "kind": "fault"}
_REPORT = {"Source": "cdk-training-cluster", "DetailType": "Node report", "Detail": json.dumps(_DETAIL)}


@pytest.fixture(scope="module")
def rule(aws: LocalAws) -> Iterator[str]:
    """The ARN of a rule whose target is a function that it may not call yet, and its dead-letter queue's URL."""
    events = aws.client("events")
    pattern = {"source": ["cdk-training-cluster", "aws.ec2"], "detail": {"cluster": ["pod"]}}
    with made_function(aws, "watching", _HANDLER, {}) as name:
        arn = aws.client("lambda").get_function_configuration(FunctionName=name)["FunctionArn"]
        queue = aws.client("sqs").create_queue(QueueName="dead")["QueueUrl"]
        attributes = aws.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        made = events.put_rule(Name="reports", EventPattern=json.dumps(pattern))["RuleArn"]
        dead = {"Arn": attributes["Attributes"]["QueueArn"]}
        events.put_targets(Rule="reports", Targets=[{"Id": "1", "Arn": arn, "DeadLetterConfig": dead}])
        yield made


def _got(aws: LocalAws) -> Any:
    return json.loads(aws.client("ssm").get_parameter(Name="/got")["Parameter"]["Value"])


def test_an_event_reaches_a_function_that_the_rule_may_call_and_else_its_queue(aws: LocalAws, rule: str) -> None:
    events = aws.client("events")
    assert events.put_events(Entries=[_REPORT])["FailedEntryCount"] == 0
    queue = aws.client("sqs").get_queue_url(QueueName="dead")["QueueUrl"]
    (message,) = aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(message["Body"])["detail"] == _DETAIL
    allowed = {"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", "SourceArn": rule}
    aws.client("lambda").add_permission(FunctionName="watching", StatementId="rule", **allowed)
    events.put_events(Entries=[{**_REPORT, "Detail": '{"cluster":"other"}'}])
    events.put_events(Entries=[_REPORT])
    got = _got(aws)
    assert (got["source"], got["detail-type"], got["detail"]) == ("cdk-training-cluster", "Node report", _DETAIL)
    assert got["time"].endswith("Z")
    aws.announce("aws.ec2", "EC2 Instance Rebalance Recommendation", {"cluster": "pod"})
    assert _got(aws)["source"] == "aws.ec2"


def test_a_rule_calls_an_alias_by_a_permission_for_that_alias_alone(aws: LocalAws) -> None:
    events, functions = aws.client("events"), aws.client("lambda")
    handler = _HANDLER.replace("json.dumps(event)", "context.invoked_function_arn")
    with made_function(aws, "aliased", handler, {}) as name:
        alias = functions.create_alias(FunctionName=name, Name="events", FunctionVersion="$LATEST")["AliasArn"]
        rule = events.put_rule(Name="aliased", EventPattern='{"source": [{"prefix": "pod/"}]}')["RuleArn"]
        events.put_targets(Rule="aliased", Targets=[{"Id": "1", "Arn": alias}])
        aws.client("ssm").put_parameter(Name="/got", Value="none", Type="String", Overwrite=True)
        allowed = {"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", "SourceArn": rule}
        for function, got in ((name, "none"), (alias, alias)):
            functions.add_permission(FunctionName=function, StatementId=f"for-{got[:3]}", **allowed)
            events.put_events(Entries=[{**_REPORT, "Source": "pod/AROAEXAMPLE:i-1"}])
            assert aws.client("ssm").get_parameter(Name="/got")["Parameter"]["Value"] == got
        events.remove_targets(Rule="aliased", Ids=["1"])
        events.delete_rule(Name="aliased")


def test_only_aws_sends_events_in_the_name_of_aws(aws: LocalAws) -> None:
    answer = aws.client("events").put_events(Entries=[{**_REPORT, "Source": "aws.ec2"}, _REPORT])
    assert (answer["FailedEntryCount"], answer["Entries"][0]["ErrorCode"]) == (1, "NotAuthorizedForSourceException")


def test_a_session_of_a_role_sends_only_what_its_role_allows(aws: LocalAws) -> None:
    trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    own = {"events:source": "pod/${aws:userid}", "events:detail-type": "Node report"}
    allowed = {
        "Effect": "Allow",
        "Action": "events:PutEvents",
        "Resource": "*",
        "Condition": {"StringEquals": own},
    }
    iam = aws.client("iam")
    document = {"Version": "2012-10-17", "Statement": [trust]}
    role = iam.create_role(RoleName="node", AssumeRolePolicyDocument=json.dumps(document))["Role"]
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    iam.put_role_policy(RoleName="node", PolicyName="reports", PolicyDocument=json.dumps(policy))
    given = aws.instance_credentials("node", "i-0a1b2c3d")
    own_client = aws.client("events")
    session = boto3.client(
        "events",
        region_name=own_client.meta.region_name,
        endpoint_url=own_client.meta.endpoint_url,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    mine = {**_REPORT, "Source": f"pod/{role['RoleId']}:i-0a1b2c3d"}
    assert session.put_events(Entries=[mine])["FailedEntryCount"] == 0
    for source in (f"pod/{role['RoleId']}:i-00000000", "pod/${aws:userid}", "pod"):
        with pytest.raises(ClientError, match="not authorized to perform: events:PutEvents"):
            session.put_events(Entries=[mine, {**_REPORT, "Source": source}])


@pytest.fixture
def group(aws: LocalAws, stacks: Stacks, nodes: Template) -> str:
    """The name of a group with two nodes, and a hook that waits for nodes that it terminates."""
    name = stacks.physical_ids(stacks.create(nodes))["Nodes"]
    scaling = aws.client("autoscaling")
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        DefaultResult="CONTINUE",
        HeartbeatTimeout=300,
    )
    scaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=2, DesiredCapacity=2)
    return name


def _states(aws: LocalAws, group: str) -> dict[str, str]:
    (found,) = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
        "AutoScalingGroups"
    ]
    return {one["InstanceId"]: one["LifecycleState"] for one in found["Instances"]}


def test_a_node_goes_into_standby_and_back_and_keeps_its_place(aws: LocalAws, group: str) -> None:
    scaling, (first, second) = aws.client("autoscaling"), _states(aws, group)
    named = {"AutoScalingGroupName": group, "InstanceIds": [first]}
    with pytest.raises(ClientError, match=f"The instance {first} is not in Standby"):
        scaling.exit_standby(**named)
    scaling.enter_standby(**named, ShouldDecrementDesiredCapacity=True)
    assert _states(aws, group) == {first: "Standby", second: "InService"}
    with pytest.raises(ClientError, match=f"The instance {first} is not in InService"):
        scaling.enter_standby(**named, ShouldDecrementDesiredCapacity=True)
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=2)
    with pytest.raises(ClientError, match=r"desired-size=2\. To place into service 1 instance"):
        scaling.exit_standby(**named)
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    scaling.exit_standby(**named)
    assert _states(aws, group)[first] == "InService"
    with pytest.raises(ClientError, match="No managed instance found"):
        scaling.enter_standby(
            AutoScalingGroupName=group, InstanceIds=["i-00000000"], ShouldDecrementDesiredCapacity=True
        )


def test_a_hook_holds_a_node_whose_job_runs_until_it_says_that_it_has_ended(aws: LocalAws, group: str) -> None:
    scaling, (busy, other) = aws.client("autoscaling"), _states(aws, group)
    aws.keep_busy(busy, other)
    action = {"AutoScalingGroupName": group, "LifecycleHookName": "drain", "LifecycleActionResult": "CONTINUE"}
    with pytest.raises(ClientError, match="No active Lifecycle Action found"):
        scaling.complete_lifecycle_action(**action, InstanceId=busy)
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    assert set(_states(aws, group).values()) == {"Terminating:Wait"}
    scaling.complete_lifecycle_action(**action, InstanceId=busy)
    assert _states(aws, group) == {other: "Terminating:Wait"}
    aws.keep_busy(other, busy=False)
    assert _states(aws, group) == {}
