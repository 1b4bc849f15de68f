"""The idle function where AWS refuses, is slow, or answers in part: the others are handled, and nothing wrongly."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cdk_training_cluster.guardrails import IdleGroup
from cluster_common.errors import PartialFailureError
from idle_on_aws import CLUSTER_TAG, GROUP, TYPE, ZONE, IdleOnAws
from idle_policies import idle_statements
from local_aws import LocalAws
from policy_evaluator import is_allowed

_NUMBERS = itertools.count(1)
_TAG = f"aws:ResourceTag/{CLUSTER_TAG}"


@pytest.fixture(scope="module")
def policy(aws: LocalAws) -> str:
    """The synthesized policy of the function, as JSON, of a cluster called `THE-CLUSTER`."""
    topic = f"arn:aws:sns:{aws.region}:{aws.account}:THE-CLUSTER-alerts"
    return json.dumps(
        idle_statements(
            "THE-CLUSTER",
            {GROUP: IdleGroup()},
            topic=topic,
            power="THE-CLUSTER-power",
            table="THE-CLUSTER-state",
            account=aws.account,
        )
    )


@pytest.fixture
def cluster(aws: LocalAws, policy: str) -> Iterator[IdleOnAws]:
    """A cluster. At the end its policy has to allow all that the function did, and no such write elsewhere."""
    made = IdleOnAws(aws, f"faults-{next(_NUMBERS)}")
    aws.forget_calls()
    yield made
    calls, statements = made.iam_calls(), json.loads(policy.replace("THE-CLUSTER", made.name))
    aws.clear_faults()
    aws.set_capacity(TYPE, ZONE, available=None)
    made.clean_up()
    assert calls
    assert [call for call in calls if not is_allowed(statements, call)] == []
    other: dict[str, str | list[str]] = {_TAG: "another", "dynamodb:LeadingKeys": ["idle#another"]}
    foreign = [replace(call, context={**call.context, **other}) for call in calls if call.context]
    assert [call for call in foreign if is_allowed(statements, call)] == []


def verdicts(found: dict[str, dict[str, Any]], ids: list[str]) -> list[str]:
    return [found[one]["verdict"] for one in ids]


def test_without_a_fault_idle_nodes_are_warned_of_and_stopped_and_working_ones_are_not(
    cluster: IdleOnAws,
) -> None:
    idle, busy, silent = cluster.launch(2), cluster.launch(load=90), cluster.launch(load=None)
    group = cluster.add_group()
    foreign = cluster.launch(cluster="another")

    found = cluster.run()
    assert verdicts(found, [*idle, *busy, *silent, *group]) == ["warn", "warn", "busy", "unknown", "warn", "warn"]
    assert foreign[0] not in found
    found = cluster.run(after=30)
    assert verdicts(found, [*idle, *group]) == ["stop"] * 4
    assert cluster.states([*idle, *busy, *silent, *foreign]) == [
        "stopped",
        "stopped",
        "running",
        "running",
        "running",
    ]
    assert cluster.running(GROUP) == []
    assert sorted(cluster.run(after=35)) == sorted([*busy, *silent])
    assert cluster.order("tick")["decision"] == "keep"


def test_a_throttled_describe_stops_nothing_and_the_next_run_does(cluster: IdleOnAws) -> None:
    idle = cluster.launch(2)
    cluster.run()
    cluster.aws.fail("DescribeInstances", "RequestLimitExceeded", "Request limit exceeded.", status=503)

    with pytest.raises(PartialFailureError, match="instances could not be read: nothing is stopped"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["running", "running"]
    cluster.run(after=35)
    assert cluster.states(idle) == ["stopped", "stopped"]


def test_metrics_denied_make_every_node_unknown_and_the_run_fails(cluster: IdleOnAws) -> None:
    idle = cluster.launch(2)
    cluster.run()
    cluster.aws.fail(
        "GetMetricData", "AccessDenied", "not authorized to perform: cloudwatch:GetMetricData", status=403
    )

    with pytest.raises(PartialFailureError, match="their metrics could not be read"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["running", "running"]
    assert cluster.requests("StopInstances") == []


@pytest.mark.parametrize("status", ["PartialData", "InternalError", "Forbidden"])
def test_a_series_that_is_not_complete_is_no_evidence(cluster: IdleOnAws, status: Any) -> None:
    dark, *idle = cluster.launch(4)
    cluster.run()
    cluster.aws.set_metric_status(status, dark)

    found = cluster.run(after=30)
    assert verdicts(found, [dark, *idle]) == ["unknown", "stop", "stop", "stop"]
    assert f"CloudWatch returned no complete data for its utilization ({status})" in found[dark]["reason"]
    assert cluster.states([dark, *idle]) == ["running", "stopped", "stopped", "stopped"]


def test_an_instance_that_is_terminated_in_between_is_no_failure_and_keeps_no_other(cluster: IdleOnAws) -> None:
    gone, *idle = cluster.launch(3)
    cluster.run()
    ec2 = cluster.client("ec2")

    def terminate(**_: object) -> None:
        ec2.meta.events.unregister("before-call.ec2.StopInstances", terminate)
        cluster.aws.client("ec2").terminate_instances(InstanceIds=[gone])

    ec2.meta.events.register("before-call.ec2.StopInstances", terminate)
    cluster.run(after=30)

    assert cluster.states([gone, *idle]) == ["terminated", "stopped", "stopped"]
    assert [len(request["InstanceIds"]) for request in cluster.requests("StopInstances")] == [3, 2]


def test_a_one_time_spot_instance_is_not_stopped_and_keeps_no_other(cluster: IdleOnAws) -> None:
    (spot,) = cluster.launch(InstanceMarketOptions={"MarketType": "spot"})
    idle = cluster.launch(2)
    cluster.run()

    found = cluster.run(after=30)
    assert found[spot]["verdict"] == "unstoppable"
    assert "is one-time: EC2 cannot stop it, terminate it" in found[spot]["reason"]
    assert cluster.states([spot, *idle]) == ["running", "stopped", "stopped"]


def test_a_persistent_spot_instance_is_stopped(cluster: IdleOnAws) -> None:
    options = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "persistent"}}
    options["SpotOptions"]["InstanceInterruptionBehavior"] = "stop"  # type: ignore[index]  # a mapping
    (spot,) = cluster.launch(InstanceMarketOptions=options)
    cluster.run()
    cluster.run(after=30)

    assert cluster.states([spot]) == ["stopped"]


def test_stop_protection_keeps_one_node_and_the_run_fails(cluster: IdleOnAws) -> None:
    idle = cluster.launch(3)
    cluster.run()
    cluster.aws.client("ec2").modify_instance_attribute(InstanceId=idle[1], DisableApiStop={"Value": True})

    with pytest.raises(PartialFailureError, match=f"{idle[1]}: could not be stopped .OperationNotPermitted"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["stopped", "running", "stopped"]
    found = cluster.run(after=35)[idle[1]]
    assert (found["verdict"], len(cluster.requests("StopInstances"))) == ("unstoppable", 2)
    assert "EC2 refused to stop it (OperationNotPermitted)" in found["reason"]


def test_without_the_permission_to_stop_the_group_is_stopped_and_the_nodes_are_when_it_is_back(
    cluster: IdleOnAws,
) -> None:
    idle, group = cluster.launch(3), cluster.add_group()
    cluster.run()
    denied = "You are not authorized to perform this operation. Encoded authorization failure message: 8sJ2k"
    cluster.aws.fail("StopInstances", "UnauthorizedOperation", denied, status=403, times=None)

    with pytest.raises(PartialFailureError, match="UnauthorizedOperation"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["running"] * 3
    assert (len(group), cluster.running(GROUP)) == (2, [])
    cluster.aws.clear_faults()
    cluster.run(after=35)
    assert cluster.states(idle) == ["stopped"] * 3


def test_one_node_that_may_not_be_stopped_keeps_no_other(cluster: IdleOnAws) -> None:
    denied, *idle = cluster.launch(4)
    cluster.run()
    message = "You are not authorized to perform this operation. Encoded authorization failure message: 8sJ2k"
    cluster.aws.fail("StopInstances", "UnauthorizedOperation", message, status=403, match=denied, times=None)

    with pytest.raises(PartialFailureError, match=f"{denied}: could not be stopped .UnauthorizedOperation"):
        cluster.run(after=30)
    assert cluster.states([denied, *idle]) == ["running", "stopped", "stopped", "stopped"]


def test_an_order_waits_while_the_power_function_does_something_else(cluster: IdleOnAws) -> None:
    cluster.add_group()
    cluster.run()
    cluster.aws.fail("Invoke", "TooManyRequestsException", "Rate Exceeded.", status=429)

    cluster.run(after=30)
    assert (cluster.running(GROUP), cluster.pauses) == ([], [2])


def test_nodes_that_came_between_the_look_and_the_order_stay(cluster: IdleOnAws) -> None:
    group = cluster.add_group()
    cluster.run()
    client = cluster.client("lambda")

    def grow(**_: object) -> None:
        client.meta.events.unregister("before-call.lambda.Invoke", grow)
        cluster.aws.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=f"{cluster.name}-asg", MaxSize=3, DesiredCapacity=3
        )

    client.meta.events.register("before-call.lambda.Invoke", grow)
    with pytest.raises(PartialFailureError, match="the stop was sent for 2"):
        cluster.run(after=30)
    assert set(group) < set(cluster.running(GROUP))


def test_a_throttled_stop_is_not_split(cluster: IdleOnAws) -> None:
    idle = cluster.launch(4)
    cluster.run()
    cluster.aws.fail("StopInstances", "RequestLimitExceeded", "Request limit exceeded.", status=503)

    with pytest.raises(PartialFailureError, match="RequestLimitExceeded"):
        cluster.run(after=30)
    assert len(cluster.requests("StopInstances")) == 1
    assert cluster.states(idle) == ["running"] * 4


def test_an_error_that_names_no_resource_is_narrowed_down(cluster: IdleOnAws) -> None:
    idle = cluster.launch(4)
    cluster.run()
    cluster.aws.fail(
        "StopInstances", "UnsupportedOperation", "The instance cannot be stopped.", match=idle[2], times=None
    )

    with pytest.raises(PartialFailureError, match=f"{idle[2]}: could not be stopped"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["stopped", "stopped", "running", "stopped"]


def test_an_answer_that_is_lost_midway_leads_to_no_second_stop(cluster: IdleOnAws) -> None:
    idle, group = cluster.launch(2), cluster.add_group()
    cluster.run()
    cluster.aws.forget_calls()
    cluster.aws.lose("StopInstances")

    with pytest.raises(PartialFailureError, match="ConnectionClosedError"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["stopped", "stopped"]
    assert (len(group), cluster.running(GROUP)) == (2, [])
    assert cluster.run(after=35) == {}
    assert (len(cluster.requests("StopInstances")), len(cluster.requests("Invoke"))) == (1, 1)


def test_an_order_whose_answer_is_lost_is_not_given_twice(cluster: IdleOnAws) -> None:
    cluster.add_group()
    cluster.run()
    cluster.aws.forget_calls()
    cluster.aws.lose("Invoke")

    with pytest.raises(PartialFailureError, match=r"workers: (its desired capacity is 0. T|t)he power function"):
        cluster.run(after=30)
    assert cluster.running(GROUP) == []
    assert cluster.run(after=35) == {}
    assert len(cluster.requests("Invoke")) == 1


def test_a_power_function_that_fails_keeps_no_standalone_node_and_is_asked_again(cluster: IdleOnAws) -> None:
    idle, group = cluster.launch(), cluster.add_group()
    cluster.run()
    cluster.aws.fail("SetDesiredCapacity", "AccessDenied", "not authorized", status=403)

    with pytest.raises(PartialFailureError, match=r"workers: the power function did not stop it: .*AccessDenied"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["stopped"]
    assert cluster.running(GROUP) == group
    for _ in range(3):
        cluster.order("tick")  # A job may have begun meanwhile: what was refused is not done later.
    assert cluster.running(GROUP) == group
    cluster.run(after=35)
    assert cluster.running(GROUP) == []


def test_groups_that_cannot_be_read_are_left_alone(cluster: IdleOnAws) -> None:
    idle, group = cluster.launch(), cluster.add_group()
    cluster.run()
    cluster.aws.fail("DescribeAutoScalingGroups", "Throttling", "Rate exceeded")

    with pytest.raises(PartialFailureError, match="the Auto Scaling groups: could not be read"):
        cluster.run(after=30)
    assert cluster.states(idle) == ["stopped"]
    assert cluster.running(GROUP) == group
    cluster.run(after=35)
    assert cluster.running(GROUP) == []


def test_without_a_message_no_node_is_stopped(cluster: IdleOnAws) -> None:
    (node,) = cluster.launch()
    cluster.aws.fail("Publish", "InternalError", "try again", status=500, times=2)

    for after in (0, 30):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            cluster.run(after=after)
    assert cluster.states([node]) == ["running"]
    assert cluster.run(after=35)[node]["verdict"] == "warn"
    assert cluster.requests("StopInstances") == []


def test_a_warning_that_cannot_be_recorded_is_not_sent(cluster: IdleOnAws) -> None:
    (node,) = cluster.launch()
    cluster.aws.fail("BatchWriteItem", "ProvisionedThroughputExceededException", "Too many requests.")

    with pytest.raises(PartialFailureError, match=r"could not be written .ProvisionedThroughputExceeded"):
        cluster.run()
    assert cluster.requests("Publish") == []
    assert cluster.run(after=30)[node]["verdict"] == "warn"
    assert len(cluster.requests("Publish")) == 1
    assert cluster.states([node]) == ["running"]


def test_missing_capacity_on_resume_is_told_in_plain_words(cluster: IdleOnAws) -> None:
    cluster.add_group()
    cluster.run()
    cluster.run(after=30)
    cluster.aws.set_capacity(TYPE, ZONE, available=0)

    cluster.order("start")
    told = cluster.order("tick")
    assert (told["state"], told["missing"], told["problem"]) == ("running", 2, "no-capacity")
    assert f"0 of 2 nodes are running in {ZONE}" in told["reason"]
    assert "InsufficientInstanceCapacity" in told["reason"]
    cluster.aws.set_capacity(TYPE, ZONE, available=None)
    assert cluster.order("tick")["in_service"] == 2
