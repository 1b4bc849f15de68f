from collections.abc import Callable

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cluster_contract.metrics import FUNCTION_NAMESPACE
from cluster_contract.power import PowerMetric
from synthesis import new_stack, only, resources


def make_power(stack: Stack, **settings: object) -> ClusterPower:
    whole: dict[str, object] = {"cluster_name": "base-pod", "groups": {"workers": PowerGroup(count=8)}} | settings
    return ClusterPower(stack, "Power", alert_topic=sns.Topic(stack, "Alerts"), **whole)  # type: ignore[arg-type]  # a test's settings


@pytest.fixture(scope="module")
def stack() -> Stack:
    stack = new_stack()
    make_power(stack)
    return stack


def test_no_event_is_tried_again_through_any_alias(stack: Stack) -> None:
    once = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    only(stack, "AWS::Lambda::EventInvokeConfig", {"Qualifier": "$LATEST", **once})
    only(stack, "AWS::Lambda::EventInvokeConfig", {"Qualifier": "operate", **once})


def test_the_alias_for_orders_is_there_although_no_principal_was_granted_it() -> None:
    stack = new_stack()
    ordered = stack.resolve(make_power(stack).order_name)

    aliases = Template.from_stack(stack).find_resources("AWS::Lambda::Alias", {"Properties": {"Name": "operate"}})
    assert [{"Ref": alias} for alias in aliases] == [ordered]


def test_metrics_have_the_dimensions_of_the_nodes() -> None:
    power = make_power(new_stack())

    missing = power.metric_missing_nodes(node_group="workers")
    running = power.metric_running_nodes(statistic="Maximum", period=Duration.minutes(1))
    held, mixed = power.metric_held_groups(), power.metric_mixed_groups()
    surplus = power.metric_surplus_nodes(node_group="workers")

    assert (missing.namespace, missing.metric_name, missing.dimensions) == (
        FUNCTION_NAMESPACE,
        PowerMetric.MISSING_NODES,
        {"Cluster": "base-pod", "NodeGroup": "workers"},
    )
    assert (running.metric_name, running.dimensions, running.statistic, running.period.to_minutes()) == (
        "RunningNodes",
        {"Cluster": "base-pod"},
        "Maximum",
        1,
    )
    assert (surplus.metric_name, surplus.dimensions, surplus.statistic) == (
        "SurplusNodes",
        {"Cluster": "base-pod", "NodeGroup": "workers"},
        "Minimum",
    )
    assert (held.metric_name, held.dimensions) == ("HeldGroups", {"Cluster": "base-pod"})
    assert (mixed.metric_name, mixed.dimensions) == ("MixedGroups", {"Cluster": "base-pod"})


@pytest.mark.parametrize(
    ("grant", "alias"),
    [
        (ClusterPower.grant_power, "operate"),
        (ClusterPower.grant_idle_stop, "idle"),
        (ClusterPower.grant_budget, "budget"),
    ],
)
def test_a_grant_lets_a_principal_invoke_one_alias_and_nothing_else(
    grant: Callable[[ClusterPower, iam.IGrantable], iam.Grant], alias: str
) -> None:
    stack = new_stack()
    power = make_power(stack)
    role = iam.Role(stack, "Operator", assumed_by=iam.AccountRootPrincipal())

    grant(power, role)

    policy = next(one for name, one in resources(stack, "AWS::IAM::Policy").items() if name.startswith("Operator"))
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [
        {
            "Action": "lambda:InvokeFunction",
            "Effect": "Allow",
            "Resource": {"Ref": next(iter(resources(stack, "AWS::Lambda::Alias", {"Name": alias})))},
        }
    ]


def test_a_function_without_node_groups_is_refused() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        make_power(new_stack(), groups={})

    assert str(caught.value) == "groups must name at least one node group, got none"


def test_a_grace_so_long_that_cloudformation_would_roll_back_first_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^launch_grace must be at most 30 minutes, got 31 minutes: Cloud"):
        make_power(new_stack(), launch_grace=Duration.minutes(31))


def test_fifty_groups_fit() -> None:
    make_power(new_stack(), groups={f"workers-of-team-{number:03}": PowerGroup(count=64) for number in range(50)})


def test_ids_that_are_known_at_deployment_only_are_counted_as_long_as_they_will_be() -> None:
    stack = new_stack()
    token = sns.Topic(stack, "Stand-in").topic_name

    with pytest.raises(ValueError, match="4096") as refused:
        make_power(
            stack,
            groups={f"extras-of-team-{number:02}": PowerGroup(count=64, spot_fleet_id=token) for number in range(50)},
        )

    assert str(refused.value) == (
        "settings of cluster_power must fit into 4096 bytes of environment, got 5723: use fewer node "
        "groups, idle policies, idle signals, data sets, patterns of preload, services, linked accounts or emails, "
        "or shorter names"
    )


def test_thirty_spot_fleets_fit() -> None:
    stack = new_stack()
    token = sns.Topic(stack, "Stand-in").topic_name

    make_power(
        stack,
        groups={f"extras-of-team-{number:02}": PowerGroup(count=64, spot_fleet_id=token) for number in range(30)},
    )
