"""What the construct writes is what the function reads, and the other way round."""

from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Duration
from aws_cdk import aws_sns as sns
from hypothesis import given, settings
from hypothesis import strategies as st

from cdk_training_cluster import tags
from cdk_training_cluster.metrics import NODE_METRICS
from cdk_training_cluster.power import POWER_METRICS, ClusterPower
from cluster_common import metrics as function_metrics
from cluster_common import tags as function_tags
from cluster_power import memory, reports
from cluster_power.settings import Settings
from power_scene import TOPIC
from synthesis import new_stack, only

names = st.text("abcdefghijklmnopqrstuvwxyz-0123456789", min_size=1, max_size=20)


def environment(counts: dict[str, int], grace: Duration | None = None) -> dict[str, str]:
    """Return the function's environment as it is deployed, with the topic's ARN put in."""
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    ClusterPower(stack, "Power", cluster_name="base-pod", counts=counts, alert_topic=topic, launch_grace=grace)
    variables: dict[str, Any] = only(stack, "AWS::Lambda::Function")["Properties"]["Environment"]["Variables"]
    assert variables.pop("ALERT_TOPIC_ARN") == stack.resolve(topic.topic_arn)
    return {**variables, "ALERT_TOPIC_ARN": TOPIC}


@given(st.dictionaries(names, st.integers(min_value=1, max_value=1000), min_size=1, max_size=5))
@settings(deadline=None, max_examples=5)
def test_the_function_reads_the_settings_that_the_construct_writes(counts: dict[str, int]) -> None:
    assert Settings.from_environment(environment(counts)) == Settings(
        cluster="base-pod", counts=counts, launch_grace=timedelta(minutes=10), topic_arn=TOPIC
    )


def test_the_grace_reaches_the_function() -> None:
    written = environment({"workers": 8}, Duration.minutes(25))

    assert Settings.from_environment(written).launch_grace == timedelta(minutes=25)
    assert written["CLUSTER_POWER_SETTINGS"] == (
        '{"cluster":"base-pod","groups":{"workers":8},"launch_grace_seconds":1500}'
    )


@pytest.mark.parametrize(
    ("function_says", "construct_says"),
    [
        (reports.MISSING_NODES, POWER_METRICS.missing_nodes),
        (reports.SURPLUS_NODES, POWER_METRICS.surplus_nodes),
        (reports.RUNNING_NODES, POWER_METRICS.running_nodes),
        (reports.HELD_GROUPS, POWER_METRICS.held_groups),
        (reports.SUCCESSFUL_TICKS, POWER_METRICS.successful_ticks),
        (function_metrics.CLUSTER_DIMENSION, NODE_METRICS.cluster_dimension),
        (function_metrics.NODE_GROUP_DIMENSION, NODE_METRICS.node_group_dimension),
        (function_tags.CLUSTER_TAG, tags.CLUSTER_TAG),
        (function_tags.NODE_GROUP_TAG, tags.NODE_GROUP_TAG),
    ],
)
def test_both_sides_use_the_same_names(function_says: str, construct_says: str) -> None:
    assert function_says == construct_says


def test_metrics_go_to_the_namespace_of_the_nodes() -> None:
    assert environment({"workers": 8})["POWERTOOLS_METRICS_NAMESPACE"] == NODE_METRICS.namespace


def test_every_tag_that_the_function_writes_is_one_it_may_write() -> None:
    keys = [*memory.Memory().to_tags(), memory.PROBLEM_TAG, memory.SURPLUS_TAG, memory.SURPLUS_SINCE_TAG]

    assert all(key.startswith("cdk-training-cluster:power-") for key in keys)
