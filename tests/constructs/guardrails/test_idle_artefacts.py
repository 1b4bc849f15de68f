"""What the construct writes is what the function reads, and the other way round."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Duration, Stack
from aws_cdk import aws_sns as sns

from cdk_training_cluster import (
    UNTIL_CANCELLED,
    Capacity,
    ClusterPower,
    IdleGroup,
    IdlePolicy,
    IdleScope,
    IdleSignal,
    IdleStop,
    NodeGroup,
    OnIdle,
    TrainingCluster,
)
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.guardrails.power import PowerGroup
from cdk_training_cluster.instance_types import instance_type_info
from cluster_contract.idle import IdleGroupSettings, Policy, Signal, SignalKind
from cluster_contract.owners import OwnerSettings
from idle_function_settings import Group, idle_settings
from idle_settings import FLEET, read, written
from synthesis import ZONE, new_stack


def cluster(*groups: NodeGroup, **settings: Any) -> Stack:
    stack = new_stack()
    TrainingCluster(
        stack, "Cluster", availability_zone=ZONE, cluster_name="pod", node_groups=list(groups), **settings
    )
    return stack


def group(name: str, **settings: Any) -> NodeGroup:
    return NodeGroup(name, **{"instance_types": ["g5.xlarge"], "count": 8, **settings})


HOST = (Signal(kind=SignalKind.CPU, below=0.5), Signal(kind=SignalKind.NETWORK, below=128 * 1024))


def test_the_default_is_the_same_on_both_sides_and_looks_at_the_host() -> None:
    policy = Policy(signals=HOST)
    assert read(cluster(group("workers"))) == idle_settings(
        cluster="pod", policy=policy, groups={"workers": Group(policy=policy)}, region="us-east-1"
    )
    assert read(cluster(group("workers"), idle_policy=IdlePolicy(host_activity=False))).policy == Policy()


def test_the_function_knows_how_many_gpus_a_type_has_that_the_catalog_lacks() -> None:
    newer = replace(instance_type_info("p5.48xlarge"), name="p9.48xlarge")
    stack = cluster(group("new", instance_types=["p9.48xlarge"]), instance_type_facts=[newer])
    assert read(stack).gpus == {"p9.48xlarge": 8}


def test_the_function_reads_what_was_said_of_the_cluster_and_of_each_group() -> None:
    whole = IdlePolicy(
        utilization_below_percent=10,
        window=Duration.minutes(90),
        coverage=0.75,
        grace=Duration.minutes(45),
        warning=Duration.hours(1),
        signals=[IdleSignal.network(2), IdleSignal.session(), IdleSignal.metric("CWAgent", "mem", "Average", 7.5)],
        dry_run=True,
        max_stops=7,
        max_unknown_share=0.25,
    )
    lab = IdlePolicy(
        scope=IdleScope.NODE, signals=[IdleSignal.heartbeat(), IdleSignal.gpu_memory(100)], dry_run=False
    )
    settings = read(
        cluster(
            group("workers"),
            group("lab", idle_policy=lab),
            group("kept", idle_policy=IdlePolicy.off()),
            group("extras", capacity=Capacity.spot_fleet()),
            group("held", capacity=Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)),
            idle_policy=whole,
        )
    )
    policy = Policy(
        below=10,
        window=timedelta(minutes=90),
        coverage=0.75,
        grace=timedelta(minutes=45),
        warning=timedelta(hours=1),
        signals=(
            *HOST,
            Signal(kind=SignalKind.NETWORK, below=2 * 1024 * 1024),
            Signal(kind=SignalKind.SESSION),
            Signal(kind=SignalKind.METRIC, namespace="CWAgent", metric="mem", statistic="Average", below=7.5),
        ),
        dry_run=True,
    )
    own = replace(
        policy,
        scope=IdleScope.NODE,
        dry_run=False,
        signals=(*HOST, Signal(kind=SignalKind.HEARTBEAT), Signal(kind=SignalKind.GPU_MEMORY, below=100)),
    )
    assert (settings.policy, settings.max_stops, settings.max_unknown_share) == (policy, 7, 0.25)
    assert [settings.policy_of(name) for name in ("workers", "lab", "kept")] == [
        policy,
        own,
        replace(policy, off=True),
    ]
    assert settings.groups == {
        "workers": IdleGroupSettings(),
        "lab": IdleGroupSettings(policy=1),
        "kept": IdleGroupSettings(policy=2),
        "extras": IdleGroupSettings(owner=OwnerSettings.spot_fleet(FLEET)),
        "held": IdleGroupSettings(release=True),
    }


def test_a_group_that_is_on_in_a_cluster_that_is_off_reaches_the_function() -> None:
    settings = read(
        cluster(group("workers"), group("lab", idle_policy=IdlePolicy(is_off=False)), idle_policy=IdlePolicy.off())
    )
    assert (settings.policy.off, settings.policy_of("workers").off, settings.policy_of("lab").off) == (
        True,
        True,
        False,
    )


def test_alone_it_tells_the_function_where_to_look() -> None:
    stack = new_stack()
    IdleStop(
        stack,
        "IdleStop",
        cluster_name="research",
        alert_topic=sns.Topic(stack, "Alerts"),
        tag_key="Team",
        metric_namespace="CWAgent",
        prices={"p5e.48xlarge": 47.5},
    )
    settings = read(stack)
    assert (settings.cluster, settings.tag, settings.namespace) == ("research", "Team", "CWAgent")
    assert (settings.prices, settings.groups) == ({"p5e.48xlarge": 47.5}, {})
    assert settings.tick == timedelta(minutes=5)


def test_the_settings_say_no_more_than_there_is_to_say() -> None:
    groups = [
        group("workers"),
        group("extras", capacity=Capacity.spot_fleet()),
        group("held", capacity=Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)),
        group("lab", idle_policy=IdlePolicy(window=Duration.hours(2), scope=IdleScope.NODE)),
    ]
    assert json.loads(written(cluster(*groups))) == {
        "cluster": "pod",
        "signals": [{"kind": "cpu", "below": 0.5}, {"kind": "network", "below": 131072}],
        "policies": [{"signals": [0, 1]}, {"signals": [0, 1], "window": 7200, "scope": "node"}],
        "groups": {
            "workers": {},
            "extras": {"owner": f"spot_fleet {FLEET}"},
            "held": {"release": True},
            "lab": {"policy": 1},
        },
    }


SEVERAL = [
    IdleSignal.efa(),
    IdleSignal.gpu_memory(),
    IdleSignal.network(),
    IdleSignal.session(),
    IdleSignal.heartbeat(),
    IdleSignal.metric("CWAgent", "mem_used_percent", "Average", 10),
    IdleSignal.metric("CWAgent", "diskio_io_time", "Sum", 1000),
]


@pytest.mark.parametrize(("count", "signals"), [(50, None), (24, SEVERAL)], ids=["the host", "several signals"])
def test_many_groups_each_with_a_policy_of_its_own_fit(count: int, signals: list[IdleSignal] | None) -> None:
    windows = {f"workers-{number:02}": timedelta(minutes=60 + 5 * number) for number in range(1, count + 1)}
    whole = IdlePolicy(signals=signals)
    stack = new_stack()
    topic = sns.Topic(stack, "Alerts")
    groups = {name: IdleGroup(policy=IdlePolicy(window=to_duration(window))) for name, window in windows.items()}
    power = ClusterPower(
        stack, "Power", cluster_name="pod", groups={name: PowerGroup(count=8) for name in windows}, alert_topic=topic
    )
    IdleStop(stack, "Idle", cluster_name="pod", alert_topic=topic, policy=whole, node_groups=groups, power=power)
    settings = read(stack)
    assert {name: settings.policy_of(name).window for name in settings.groups} == windows
    assert {settings.policy_of(name).signals for name in settings.groups} == {settings.policy.signals}
