"""`NodeHealth`: which events reach its function, what it and the nodes may do, and what it refuses."""

import json
from functools import cache
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from moto.events.models import EventPattern

from cdk_training_cluster import Capacity, HealthPolicy, HyperPodCluster, NodeGroup, NodeHealth
from cluster_contract.tags import CLUSTER_TAG
from fleet_scene import bought_each
from policy_evaluator import Call, is_allowed, role_statements
from synthesis import ZONE, new_stack, only, resources

ACCOUNT, REGION = "111122223333", "us-east-1"
_NODE = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-0a1b2c3d4e5f67890"
_GROUP = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/pod-workers"
_OURS, _THEIRS = ({f"aws:ResourceTag/{CLUSTER_TAG}": name} for name in ("pod", "other"))
_REPAIRS = [
    *(
        Call(action=f"autoscaling:{verb}", resource=_GROUP, context=_OURS)
        for verb in ("EnterStandby", "ExitStandby", "TerminateInstanceInAutoScalingGroup")
    ),
    *(Call(action=f"ec2:{verb}Instances", resource=_NODE, context=_OURS) for verb in ("Reboot", "Terminate")),
]


def _stack(policy: HealthPolicy | None = None) -> Stack:
    stack = new_stack()
    groups = [{}, {"name": "extras", "capacity": Capacity.spot_fleet(), "instance_types": ["g5.xlarge"]}]
    fleets = [scene.fleet for scene in bought_each(groups, stack)]
    topic = sns.Topic(stack, "Alerts")
    NodeHealth(stack, "Health", cluster_name="pod", fleets=fleets, alert_topic=topic, policy=policy)
    return stack


@cache
def _template(*, act: bool) -> dict[str, Any]:
    return dict(Template.from_stack(_stack(HealthPolicy(act=act))).to_json())


def _statements(template: dict[str, Any], role: str) -> list[dict[str, Any]]:
    names = template["Resources"]
    values = {name: f"arn:aws:any:::{name}" for name in names} | {
        f"{name}.Arn": f"arn:aws:any:::{name}" for name in names
    }
    here = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws"}
    (found,) = (name for name, one in names.items() if one["Type"] == "AWS::IAM::Role" and name.startswith(role))
    return role_statements(template, found, values | here)


def test_only_a_function_that_acts_may_begin_repairs_and_those_of_its_cluster_alone() -> None:
    reports, acts = (_statements(_template(act=act), "HealthFunctionRole") for act in (False, True))
    ends = {"autoscaling:ExitStandby", "autoscaling:TerminateInstanceInAutoScalingGroup"}
    assert {call.action for call in _REPAIRS if is_allowed(reports, call)} == ends
    assert [call.action for call in _REPAIRS if not is_allowed(acts, call)] == []
    foreign = [Call(action=call.action, resource=call.resource, context=_THEIRS) for call in _REPAIRS]
    assert [call.action for call in foreign if is_allowed(acts, call) or is_allowed(reports, call)] == []


def test_a_node_may_report_as_what_it_is_and_tag_itself_alone() -> None:
    nodes = _statements(_template(act=False), "Role")
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"
    mine = {"aws:userid": "AROAEXAMPLE:i-1", "events:detail-type": "Node report"}
    for source, allowed in (
        ("cdk-training-cluster/pod/AROAEXAMPLE:i-1", True),
        ("cdk-training-cluster/pod/AROAEXAMPLE:i-2", False),
        ("cdk-training-cluster/other/AROAEXAMPLE:i-1", False),
        ("cdk-training-cluster/pod/${aws:userid}", False),
        ("cdk-training-cluster/pod/*", False),
        ("cdk-training-cluster", False),
    ):
        context = {**mine, "events:source": source}
        assert is_allowed(nodes, Call(action="events:PutEvents", resource=bus, context=context)) is allowed, source
        # A request without the key matches nothing.
        del context["aws:userid"]
        assert not is_allowed(nodes, Call(action="events:PutEvents", resource=bus, context=context))
    own = {"ec2:SourceInstanceARN": _NODE, "ec2:InstanceID": "i-0a1b2c3d4e5f67890"}
    other = {**own, "ec2:InstanceID": "i-00000000000000000"}
    for context, key, allowed in (
        (own, "cdk-training-cluster:verified", True),
        (own, "cdk-training-cluster:faults", True),
        (own, CLUSTER_TAG, False),
        (other, "cdk-training-cluster:verified", False),
        (other, "cdk-training-cluster:faults", False),
    ):
        call = Call(action="ec2:CreateTags", resource=_NODE, context={**context, "aws:TagKeys": [key]})
        assert is_allowed(nodes, call) is allowed, call


def _event(source: str, detail_type: str, /, **detail: Any) -> dict[str, Any]:
    return {"source": source, "detail-type": detail_type, "detail": detail}


@pytest.mark.parametrize(
    ("event", "taken"),
    [
        (_event("cdk-training-cluster/pod/AROA:i-1", "Node report", cluster="pod", kind="fault"), True),
        (_event("cdk-training-cluster/pod/AROA:i-1", "Node report", cluster="other", kind="fault"), False),
        (_event("cdk-training-cluster/other/AROA:i-1", "Node report", cluster="pod", kind="fault"), False),
        (_event("cdk-training-cluster", "Node report", cluster="pod", kind="fault"), False),
        (_event("mine", "Node report", cluster="pod"), False),
        # As the documents of EC2 and AWS Health show them.
        (_event("aws.ec2", "EC2 Spot Instance Interruption Warning", **{"instance-action": "terminate"}), False),
        (_event("aws.health", "AWS Health Event", service="EC2", eventTypeCategory="scheduledChange"), True),
        (_event("aws.health", "AWS Health Event", service="RDS", eventTypeCategory="scheduledChange"), False),
    ],
)
def test_reports_of_its_nodes_and_notices_of_ec2_reach_the_function(event: dict[str, Any], taken: bool) -> None:
    rules = [one for one in _template(act=False)["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    patterns = [EventPattern.load(json.dumps(rule["Properties"]["EventPattern"])) for rule in rules]
    assert any(pattern.matches_event(event) for pattern in patterns) is taken


def test_one_failed_verification_is_an_alarm_and_silence_of_nodes_is_none() -> None:
    named = {"Namespace": "CdkTrainingCluster/Nodes/pod", "MetricName": "VerificationFailed", "Statistic": "Maximum"}
    alarm = only(_stack(), "AWS::CloudWatch::Alarm", named)["Properties"]
    assert alarm["Dimensions"] == [{"Name": "Cluster", "Value": "pod"}]
    assert (alarm["EvaluationPeriods"], alarm["Threshold"], alarm["Period"]) == (1, 1, 300)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_an_event_that_cannot_be_brought_for_an_hour_goes_to_the_queue() -> None:
    for rule in resources(_stack(), "AWS::Events::Rule").values():
        (target,) = rule["Properties"]["Targets"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600}
        assert "FailedEvents" in str(target["DeadLetterConfig"])
        assert "Input" not in target
    for config in resources(_stack(), "AWS::Lambda::EventInvokeConfig").values():
        settings = config["Properties"]
        assert (settings["MaximumRetryAttempts"], settings["MaximumEventAgeInSeconds"]) == (2, 3600)


def test_events_come_through_an_alias_that_no_principal_may_invoke() -> None:
    found = _template(act=True)["Resources"]
    (alias,) = (name for name, one in found.items() if one["Type"] == "AWS::Lambda::Alias")
    assert found[alias]["Properties"]["Name"] == "events"
    rules = [one for one in found.values() if one["Type"] == "AWS::Events::Rule"]
    assert [rule["Properties"]["Targets"][0]["Arn"] for rule in rules] == [{"Ref": alias}] * 2
    invoke = [one["Properties"] for one in found.values() if one["Type"] == "AWS::Lambda::Permission"]
    assert [(one["FunctionName"], one["Principal"]) for one in invoke] == [
        ({"Ref": alias}, "events.amazonaws.com")
    ] * 2
    policies = [one for one in found.values() if one["Type"] == "AWS::IAM::Policy"]
    assert {"Ref": alias} not in [
        statement["Resource"]
        for policy in policies
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_a_group_waits_for_the_jobs_of_nodes_that_it_terminates_and_a_spot_fleet_cannot() -> None:
    stack = _stack(HealthPolicy(grace=Duration.minutes(2)))
    (group,) = resources(stack, "AWS::AutoScaling::AutoScalingGroup")
    terminating = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    hook = only(stack, "AWS::AutoScaling::LifecycleHook", terminating)["Properties"]
    assert hook == {
        "AutoScalingGroupName": {"Ref": group},
        "LifecycleHookName": "drain",
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "DefaultResult": "CONTINUE",
        "HeartbeatTimeout": 120,
    }
    completes = Call(action="autoscaling:CompleteLifecycleAction", resource=_GROUP, context=_OURS)
    assert is_allowed(_statements(_template(act=False), "Role"), completes)


@pytest.mark.parametrize(("act", "seconds"), [(False, 0), (True, 365 * 24 * 3600)])
def test_where_it_acts_auto_scaling_leaves_nodes_with_failed_checks_to_it(act: bool, seconds: int) -> None:
    groups = [one for one in _template(act=act)["Resources"].values() if one["Type"].endswith("AutoScalingGroup")]
    assert [one["Properties"]["HealthCheckGracePeriod"] for one in groups] == [seconds]
    assert {one["Properties"]["DefaultInstanceWarmup"] for one in groups} == {0}


def test_without_nodes_there_is_nothing_to_watch() -> None:
    stack = new_stack()
    with pytest.raises(ValueError, match=r"^fleets must hold the nodes of at least one group, got none$"):
        NodeHealth(stack, "Health", cluster_name="pod", fleets=[], alert_topic=sns.Topic(stack, "Alerts"))


def test_a_policy_that_acts_is_refused_where_an_orchestrator_repairs_every_node() -> None:
    with pytest.raises(
        ValueError,
        match=r"^act of the health policy must be left out: no node group has nodes that the function can repair, "
        r"and HyperPod repairs them itself, with node_recovery$",
    ):
        HyperPodCluster(
            new_stack(),
            "Cluster",
            cluster_name="pod",
            availability_zone=ZONE,
            node_groups=[NodeGroup("workers", instance_types=["p5.48xlarge"], count=2)],
            health=HealthPolicy(act=True),
        )
