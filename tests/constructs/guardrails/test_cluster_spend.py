"""What `ClusterSpend` makes: alarms on dollars, and settings that count what the plan counts."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from cdk_training_cluster import (
    Budget,
    Capacity,
    ClusterNetwork,
    ClusterSpend,
    NodeGroup,
    OnExceed,
    TrainingCluster,
    TrainingFileSystem,
)
from cdk_training_cluster.guardrails.money.spend import alarm_count
from cdk_training_cluster.prices import watching
from cdk_training_cluster_cli.money.plan import shape_of
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks
from cluster_contract.codec import decode
from cluster_contract.owners import OwnerSettings
from cluster_contract.spend import SpendFunctionSettings, SpendGroupSettings
from synthesis import ZONE, new_stack, resources

CLUSTERS = Path(__file__).parents[3] / "clusters"
BUDGET = Budget(monthly_usd=1000, thresholds=[50, 120.5], forecast_thresholds=[90], max_usd_per_hour=500)


def test_alarms_go_off_at_each_threshold_at_the_forecast_and_above_the_rate() -> None:
    stack = new_stack()
    spend = ClusterSpend(stack, "Spend", cluster_name="pod", budget=BUDGET, alert_topic=sns.Topic(stack, "Alerts"))
    alarms = [each["Properties"] for each in resources(stack, "AWS::CloudWatch::Alarm").values()]
    found = {
        (one["MetricName"], one["Threshold"]): (
            one["Statistic"],
            one["EvaluationPeriods"],
            one.get("DatapointsToAlarm"),
        )
        for one in alarms
    }
    assert (
        found.items()
        >= {
            ("MonthToDateDollars", 500): ("Maximum", 1, 1),
            ("MonthToDateDollars", 1205): ("Maximum", 1, 1),
            ("ForecastDollars", 900): ("Minimum", 12, 9),
            ("DollarsPerHour", 500): ("Minimum", 3, 3),
        }.items()
    )
    assert len(alarms) == alarm_count(BUDGET)
    assert (list(spend.month_alarms), list(spend.forecast_alarms)) == ([50, 120.5], [90])
    assert spend.rate_alarm is not None


@pytest.mark.parametrize(
    ("on_exceed", "effect"),
    [
        (OnExceed.NOTIFY, "the nodes run on and are billed"),
        (OnExceed.NO_NEW_NODES, "no new nodes until a start command"),
        (OnExceed.STOP, "stops the others 45 minutes later"),
    ],
)
def test_the_alarm_at_the_whole_budget_says_what_the_function_does_then(on_exceed: OnExceed, effect: str) -> None:
    stack = new_stack()
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    budget = Budget(monthly_usd=1000, thresholds=[80, 100], on_exceed=on_exceed, warning_minutes=45)
    TrainingCluster(stack, "Pod", availability_zone=ZONE, node_groups=[group], budget=budget)
    alarms = [one["Properties"] for one in resources(stack, "AWS::CloudWatch::Alarm").values()]
    said = {
        one["Threshold"]: effect in str(one["AlarmDescription"])
        for one in alarms
        if one.get("MetricName") == "MonthToDateDollars"
    }
    assert said == {800: False, 1000: True}


def settings_of(template: Mapping[str, Any]) -> SpendFunctionSettings:
    """Return what a template tells the function; ids that are known at deployment only are `ID`."""
    (variables,) = (
        each["Properties"]["Environment"]["Variables"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::Lambda::Function" and each["Properties"]["Handler"].startswith("cluster_spend.")
    )
    told = variables["CLUSTER_SPEND_SETTINGS"]
    if isinstance(told, dict):
        told = "".join(part if isinstance(part, str) else "ID" for part in told["Fn::Join"][1])
    return decode(SpendFunctionSettings, {"SETTINGS": told}, "SETTINGS")


def test_a_cluster_tells_the_function_how_its_nodes_are_bought_and_what_the_budget_says() -> None:
    stack = new_stack()
    groups = [
        NodeGroup("workers", instance_types=["p5.48xlarge"], count=1),
        NodeGroup("extras", instance_types=["g5.xlarge"], count=1, capacity=Capacity.spot_fleet()),
        NodeGroup(
            "pod", instance_types=["p5.48xlarge"], count=1, capacity=Capacity.capacity_block("cr-0a1b2c3d4e5f67890")
        ),
    ]
    budget = Budget(
        monthly_usd=1000,
        on_exceed=OnExceed.STOP,
        warning_minutes=45,
        prices={"cr-0a1b2c3d4e5f67890": 30},
    )
    TrainingCluster(stack, "Pod", availability_zone=ZONE, node_groups=groups, cluster_name="pod", budget=budget)
    told = settings_of(Template.from_stack(stack).to_json())
    assert (told.on_exceed, told.warning, told.prices) == (
        OnExceed.STOP,
        timedelta(minutes=45),
        {"cr-0a1b2c3d4e5f67890": 30},
    )
    assert told.groups == {
        "workers": SpendGroupSettings(volume_gib=200),
        "extras": SpendGroupSettings(volume_gib=200, owner=OwnerSettings.spot_fleet("ID")),
        "pod": SpendGroupSettings(volume_gib=200, reservations=("cr-0a1b2c3d4e5f67890",)),
    }


def test_without_a_budget_nothing_is_counted() -> None:
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    assert TrainingCluster(new_stack(), "Pod", availability_zone=ZONE, node_groups=[group]).spend is None


def test_what_clusters_share_is_counted_by_the_first_that_has_a_budget() -> None:
    app, region = App(), Environment(region="us-east-1")
    base = Stack(app, "Base", env=region)
    network = ClusterNetwork(base, "Network", availability_zone=ZONE)
    files = TrainingFileSystem(base, "Files", network=network)
    group = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
    stacks = {name: Stack(app, name, env=region) for name in ("without", "first", "second")}
    for name, stack in stacks.items():
        TrainingCluster(
            stack,
            "Pod",
            node_groups=[group],
            network=network,
            file_system=files,
            cluster_name=name,
            budget=None if name == "without" else BUDGET,
        )
    first, second = (settings_of(Template.from_stack(stacks[name]).to_json()) for name in ("first", "second"))
    assert first.fixed.keys() == {"file-system", "network", "guardrails"}
    assert second.fixed.keys() == {"guardrails"}


def test_the_fixed_parts_are_those_that_the_plan_counts() -> None:
    written = read_cluster_file(CLUSTERS / "p6-b300.yaml")
    preloaded = tuple(one.model_copy(update={"preload": True}) for one in written.datasets)
    cluster = written.model_copy(update={"datasets": preloaded})
    shape = shape_of(cluster)
    assert shape.storage_series == 2
    with built_stacks(cluster) as (_, stack):
        told = settings_of(Template.from_stack(stack).to_json())
    files = shape.file_system
    assert files is not None
    series = watching.series(len(shape.groups), 0, spend=True, storage=shape.storage_series)
    watched = watching.sum_units(
        [
            watching.metric_units(series),
            watching.alarm_units(shape.alarm_metrics),
            watching.dashboard_units(shape.dashboards),
            watching.function_units(shape.functions, shape.tables),
        ]
    )
    assert told.fixed == {
        "file-system": {f"fsx-persistent-2-{files.mbps_per_tib}": pytest.approx((files.capacity_gib or 0) / 730)},
        "network": {"nat-gateway": shape.nat_gateways, "public-ipv4": shape.nat_gateways},
        "guardrails": {name: pytest.approx(float(count)) for name, count in watched.items()},
    }
    assert told.node == {name: pytest.approx(float(count)) for name, count in watching.node_units().items()}
    assert shape.counts_spend
    assert told.groups["workers"].volume_gib == shape.groups[0].root_volume_gib
