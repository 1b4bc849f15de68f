"""The rehearsal's own checks: what differs in the account from the examples' kept templates is reported."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cluster_contract.codec import encode
from cluster_contract.power import PowerFunctionSettings, PowerGroupSettings
from rehearsal.checks import CHECKS, Deployment, differences
from rehearsal.checks.check import Check
from rehearsal.checks.cost_budgets import COST_BUDGETS
from rehearsal.checks.guardrails import SPECS, WITH_A_STORY, WITHOUT_A_STORY
from rehearsal.checks.hyperpod import INSTANCE_GROUPS
from rehearsal.checks.node_groups import NODE_GROUPS
from rehearsal.checks.slurm import SLURM_QUEUES
from rehearsal.templates import Resource, resolved
from release_templates import RELEASES, VERSION

_SIZES = {
    "cr-0a11ce0a1b2c3d4e5": 5,
    "cr-0b10c0fedcba98765": 4,
    "cr-0b10c0a1b2c3d4e5f": 8,
}
_ZONE = "us-east-1b"


class _Account:
    """Answers what checks ask of services: all is as the templates say."""

    def __init__(self, resources: list[Resource], counts: Mapping[str, int]) -> None:
        groups = {name: PowerGroupSettings(count=count) for name, count in counts.items()}
        settings = encode(PowerFunctionSettings(cluster="pod", groups=groups))
        self._settings = {"CLUSTER_POWER_SETTINGS": json.dumps(settings)}
        self._by_id = {one.id: one.properties for one in resources}
        self.alarms = [
            {"AlarmName": one.id, "MetricName": one.properties.get("MetricName"), "AlarmActions": ["topic"]}
            for one in resources
            if one.type == "AWS::CloudWatch::Alarm"
        ]

    def __call__(self, _: str) -> "_Account":
        return self

    def get_function_configuration(self, **asked: str) -> dict[str, Any]:
        return {
            "Timeout": self._by_id[asked["FunctionName"]]["Timeout"],
            "Environment": {"Variables": self._settings},
        }

    def get_document(self, **asked: str) -> dict[str, Any]:
        return {"Content": json.dumps(self._by_id[asked["Name"]]["Content"])}

    def get_schedule(self, **asked: str) -> dict[str, Any]:
        return {"State": "ENABLED", **self._by_id[asked["Name"]]}

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "111122223333"}

    def describe_budgets(self, **_: str) -> dict[str, Any]:
        made = {name: one["Budget"] for name, one in self._by_id.items() if "NotificationsWithSubscribers" in one}
        return {"Budgets": [{**budget, "BudgetName": name} for name, budget in made.items()]}

    def describe_notifications_for_budget(self, **asked: str) -> dict[str, Any]:
        told = self._by_id[asked["BudgetName"]]["NotificationsWithSubscribers"]
        return {"Notifications": [one["Notification"] for one in told]}

    def describe_subscribers_for_notification(self, **asked: Any) -> dict[str, Any]:
        told = self._by_id[asked["BudgetName"]]["NotificationsWithSubscribers"]
        (one,) = [one for one in told if one["Notification"] == asked["Notification"]]
        return {"Subscribers": one["Subscribers"]}

    def describe_capacity_reservations(self, **asked: list[str]) -> dict[str, Any]:
        (one,) = asked["CapacityReservationIds"]
        return {"CapacityReservations": [{"TotalInstanceCount": _SIZES.get(one, 8)}]}

    def get_paginator(self, _: str) -> "_Account":
        return self

    def paginate(self) -> "_Account":
        return self

    def search(self, _: str) -> list[dict[str, Any]]:
        return self.alarms


def _resources(example: str) -> list[Resource]:
    """Return what an example's kept templates say; logical ids stand for physical ones."""
    return [
        Resource(file.name.removesuffix(".template.json"), one["Type"], name, resolved(one.get("Properties", {}), {}))
        for file in sorted((RELEASES / VERSION / example).glob("*.template.json"))
        for name, one in json.loads(file.read_text(encoding="utf-8"))["Resources"].items()
    ]


def _group(
    name: str,
    count: int,
    interfaces: Mapping[str, list[int]],
    bought_from: Mapping[str, int],
    **more: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "count_running": count,
        "interfaces_by_type": interfaces,
        "bought_from": bought_from,
        "availability_zone": _ZONE,
        "spot_fleet": None,
        "warm_pool": None,
        "placement_group": None,
        "reservation": None,
        "market": "on-demand",
        **more,
    }


_PLACED = {"placement_group": "TrainingClusterNodeGroupsworkersPlacementGroup0974A58F"}
_MADE = "TrainingClusterNodeGroupsworkersPlacedReservation10844315"
_RESERVATION = {
    "id": _MADE,
    "instances": 8,
    "match_criteria": "targeted",
    "platform": "Linux/UNIX",
    "placement_group": _PLACED["placement_group"],
    "ends": None,
}
# What is there of each example's node groups when all is as its templates say.
_RIGHT: dict[str, list[dict[str, Any]]] = {
    "base-pod": [_group("workers", 8, {"p4de.24xlarge": [5, 4]}, {"on-demand": 8}, **_PLACED)],
    "spot": [_group("workers", 4, {"g5.48xlarge": [2, 1], "g6e.48xlarge": [5, 4]}, {"spot": 4}, market="spot")],
    "spot-elastic": [
        _group("base", 2, {"g5.48xlarge": [2, 1]}, {"on-demand": 2}),
        _group(
            "extras",
            6,
            {"g5.48xlarge": [2, 1]},
            {"spot": 6},
            market="spot",
            spot_fleet="TrainingClusterNodeGroupsextrasSpotFleet3A41D0CB",
        ),
    ],
    "p5-reservation": [
        _group("workers", 8, {"p5.48xlarge": [33, 32]}, {_MADE: 8}, reservation=_RESERVATION, **_PLACED)
    ],
    "p5-capacity-block": [
        _group("workers", 8, {"p5.48xlarge": [33, 32]}, {"cr-0b10c0a1b2c3d4e5f": 8}, market="capacity-block")
    ],
    "prioritized": [
        _group(
            "workers",
            12,
            {"p5.48xlarge": [33, 32]},
            {"cr-0a11ce0a1b2c3d4e5": 5, "cr-0b10c0fedcba98765": 4, "on-demand": 3},
            market=["capacity-block", "on-demand"],
        )
    ],
}


def _deployment(example: str) -> Deployment:
    resources, groups = _resources(example), copy.deepcopy(_RIGHT[example])
    counts = {group["name"]: group["count_running"] for group in groups}
    stacks: dict[str, Any] = {}
    for resource in resources:
        types = stacks.setdefault(resource.stack, {"status": "CREATE_COMPLETE", "resources": {}})["resources"]
        types[resource.type] = types.get(resource.type, 0) + 1
    systems = [
        {
            "id": one.id,
            "lifecycle": "AVAILABLE",
            "type": "LUSTRE",
            "deployment_type": "PERSISTENT_2",
            "data_compression": "LZ4",
            "storage_capacity_gib": one.properties["StorageCapacity"],
            "throughput_mbps_per_tib": one.properties["LustreConfiguration"]["PerUnitStorageThroughput"],
            "subnet_ids": ["subnet-1"],
        }
        for one in resources
        if one.type == "AWS::FSx::FileSystem"
    ]
    found = {
        "stacks": stacks,
        "node_groups": groups,
        "file_system": systems[0] if systems else None,
        "datasets": [
            {
                "file_system_path": one.properties["FileSystemPath"],
                "data_repository_path": one.properties["DataRepositoryPath"],
                "lifecycle": "AVAILABLE",
                "imported_events": one.properties["S3"].get("AutoImportPolicy", {}).get("Events", []),
                "exported_events": one.properties["S3"].get("AutoExportPolicy", {}).get("Events", []),
                "objects": 3,
            }
            # The data set before the checkpoints.
            for one in sorted(resources, key=lambda one: str(one.properties.get("FileSystemPath")), reverse=True)
            if one.type == "AWS::FSx::DataRepositoryAssociation"
        ],
    }
    return Deployment(_Account(resources, counts), resources, found, _ZONE)


@pytest.mark.parametrize("example", _RIGHT)
def test_nothing_differs_where_all_is_as_the_templates_say(example: str) -> None:
    assert list(differences(_deployment(example))) == []


# By example: what is there otherwise, and what is reported.
_OTHER_FACTS: list[tuple[str, str, Any]] = [
    ("base-pod", "node_groups.0.count_running", 7),
    ("base-pod", "node_groups.0.interfaces_by_type", {"p4de.24xlarge": [5, 1]}),
    ("base-pod", "node_groups.0.bought_from", {"on-demand": 7, "cr-1": 1}),
    ("base-pod", "node_groups.0.spot_fleet", "sfr-1"),
    ("base-pod", "node_groups.0.market", "spot"),
    ("base-pod", "node_groups.0.availability_zone", "us-east-1c"),
    ("base-pod", "node_groups.0.placement_group", None),
    ("p5-reservation", "node_groups.0.reservation.instances", 1),
    ("p5-reservation", "node_groups.0.reservation.match_criteria", "open"),
    ("p5-reservation", "node_groups.0.reservation.placement_group", None),
    ("p5-reservation", "node_groups.0.reservation.ends", "2026-12-24T17:00:00+00:00"),
    ("prioritized", "node_groups.0.bought_from", {"on-demand": 12}),
    ("base-pod", "file_system.storage_capacity_gib", 1200),
    ("base-pod", "file_system.lifecycle", "CREATING"),
    ("base-pod", "datasets.0.data_repository_path", "s3://made/"),
    ("base-pod", "datasets.0.lifecycle", "MISCONFIGURED"),
    ("base-pod", "stacks.base-pod-cluster.status", "ROLLBACK_COMPLETE"),
    ("base-pod", "stacks.base-pod-cluster.resources.AWS::EC2::PlacementGroup", 0),
]


def _change(deployment: Deployment, place: str, value: Any) -> Any:
    """Change what is there at a place; return what was there before."""
    *above, last = (int(part) if part.isdigit() else part for part in place.split("."))
    target: Any = deployment.found
    for part in above:
        target = target[part]
    before, target[last] = target.get(last), value
    return before


@pytest.mark.parametrize(("example", "place", "value"), _OTHER_FACTS)
def test_another_fact_than_the_template_s_is_told(example: str, place: str, value: Any) -> None:
    deployment = _deployment(example)
    before = _change(deployment, place, value)
    fact = place.rpartition(".")[2]
    assert f"{fact} is {value!r}, the template says {before!r}" in "\n".join(differences(deployment))


@pytest.mark.parametrize(
    ("example", "place", "value", "difference"),
    [
        ("base-pod", "node_groups.0.warm_pool", {"size": 2}, "warm_pool_size is 2, the template says None"),
        ("base-pod", "node_groups", [], "node group workers is absent"),
        ("base-pod", "node_groups.0.name", "strangers", "node group strangers is not in the template"),
        ("base-pod", "node_groups.0.reservation", _RESERVATION, "reservation of workers is not in the template"),
        ("p5-reservation", "node_groups.0.reservation", None, "reservation of workers is absent"),
        ("base-pod", "file_system", None, "is absent"),
        ("base-pod", "datasets", [], "data set /data is absent"),
        ("base-pod", "datasets.0.file_system_path", "/more", "data set /more is not in the template"),
        (
            *("base-pod", "datasets.0.imported_events", ["NEW"]),
            "hydration by /data: imported is ['NEW'], the template says ['NEW', 'CHANGED', 'DELETED']",
        ),
        ("base-pod", "datasets.0.objects", 0, "data set /data: is_empty is True, the template says False"),
        (
            "base-pod",
            "stacks.base-pod-cluster.resources.AWS::EC2::Instance",
            1,
            "stack base-pod-cluster: AWS::EC2::Instance is 1, the template says 0",
        ),
    ],
)
def test_a_difference_is_told(example: str, place: str, value: Any, difference: str) -> None:
    deployment = _deployment(example)
    _change(deployment, place, value)
    assert difference in "\n".join(differences(deployment))


def test_an_alarm_of_a_guardrail_without_an_action_is_reported() -> None:
    deployment = _deployment("base-pod")
    assert isinstance(deployment.client, _Account)
    (silence,) = [alarm for alarm in deployment.client.alarms if alarm["MetricName"] == "IdleEvaluations"]
    silence["AlarmActions"] = []
    (difference,) = differences(deployment)
    assert difference.startswith("guardrail cluster_idle: metrics_with_an_alarm_that_notifies is ")


def test_only_guardrails_that_there_are_have_a_part_of_the_rehearsal_for_them() -> None:
    assert set(SPECS) == WITH_A_STORY | WITHOUT_A_STORY


def test_the_size_of_a_warm_pool_is_compared() -> None:
    deployment = _deployment("p5-reservation")
    pool = Resource(
        "p5-reservation-cluster",
        "AWS::AutoScaling::WarmPool",
        next(one.id for one in deployment.resources if one.type == "AWS::AutoScaling::AutoScalingGroup"),
        {"MaxGroupPreparedCapacity": 2},
    )
    more = Deployment(deployment.client, [*deployment.resources, pool], deployment.found, _ZONE)
    (difference,) = NODE_GROUPS.differences(more)
    assert difference == "node group workers: warm_pool_size is None, the template says 2"


def _budget(*thresholds: int) -> Resource:
    told = [
        {
            "Notification": {"NotificationType": "ACTUAL", "Threshold": threshold},
            "Subscribers": [{"SubscriptionType": "SNS", "Address": "topic"}],
        }
        for threshold in thresholds
    ]
    amount = {"BudgetLimit": {"Amount": 5}, "CostFilters": {"TagKeyValue": ["user:cluster$pod"]}}
    properties = {"Budget": amount, "NotificationsWithSubscribers": told}
    return Resource("base-pod-cluster", "AWS::Budgets::Budget", "bill", properties)


def test_the_notifications_of_an_aws_budget_are_compared() -> None:
    account = _Account([_budget(50, 100)], {})
    assert list(COST_BUDGETS.differences(Deployment(account, [_budget(50, 100)], {}))) == []
    (difference,) = COST_BUDGETS.differences(Deployment(account, [_budget(50)], {}))
    assert difference.startswith("AWS budget bill: notifications is [('ACTUAL', 50.0, ['topic']), ('ACTUAL', 100.0")


def _queue() -> list[Resource]:
    """A queue of Slurm with its node group, as templates have them."""
    used = [{"ComputeNodeGroupId": "arn:group.Id"}]
    settings = {"SlurmCustomSettings": [{"ParameterName": "PriorityTier", "ParameterValue": "10"}]}
    queue = {"Name": "train", "ComputeNodeGroupConfigurations": used, "SlurmConfiguration": settings}
    group = Resource("cluster", "AWS::PCS::ComputeNodeGroup", "arn:group", {"Name": "workers"})
    return [group, Resource("cluster", "AWS::PCS::Queue", "arn:queue", queue)]


def test_a_queue_that_uses_other_nodes_is_told() -> None:
    train = {"node_groups": ["others"], "settings": {"PriorityTier": "10"}}
    deployment = Deployment(_Account([], {}), _queue(), {"queues": {"train": train}})
    (difference,) = SLURM_QUEUES.differences(deployment)
    assert difference == "queue train: node_groups is ['others'], the template says ['workers']"


def _hyperpod_cluster(instance_type: str) -> Resource:
    slurm = {"NodeType": "Compute", "PartitionNames": ["training"]}
    workers = {"InstanceGroupName": "workers", "InstanceType": f"ml.{instance_type}", "SlurmConfig": slurm}
    controller = {"InstanceGroupName": "controller", "InstanceType": "ml.m5.xlarge"}
    return Resource("base-pod-cluster", "AWS::SageMaker::Cluster", "nodes", {"InstanceGroups": [workers, controller]})


def test_the_instance_groups_of_hyperpod_are_compared() -> None:
    deployment = _deployment("base-pod")
    group = {"name": "workers", "count_running": 8, "instance_type": "ml.p5.48xlarge", "partition": "training"}
    found = {"node_groups": [{**group, "on_hyperpod": True}]}
    ours = replace(deployment, resources=[*deployment.resources, _hyperpod_cluster("p5.48xlarge")], found=found)
    assert list(INSTANCE_GROUPS.differences(ours)) == []
    other = replace(deployment, resources=[*deployment.resources, _hyperpod_cluster("p5e.48xlarge")], found=found)
    (difference,) = INSTANCE_GROUPS.differences(other)
    assert (
        difference == "instance group workers: instance_type is 'ml.p5.48xlarge', the template says 'ml.p5e.48xlarge'"
    )


def test_every_check_has_something_to_compare() -> None:
    deployments = [_deployment("base-pod"), _deployment("p5-reservation")]
    hand_made = [_budget(50), *_queue(), _hyperpod_cluster("p4de.24xlarge")]
    deployments[0] = replace(deployments[0], resources=[*deployments[0].resources, *hand_made])
    assert [check.thing for check in CHECKS if not any(check.said(one) for one in deployments)] == []


@pytest.mark.parametrize(
    ("said", "found", "told"),
    [
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, []),
        ({"a": {"x": 1}}, {"a": {"x": 2}}, ["part a: x is 2, the template says 1"]),
        ({"a": {"x": 1}}, {"a": {}}, ["part a: x is None, the template says 1"]),
        ({"a": {}}, {}, ["part a is absent"]),
        ({}, {"b": {}}, ["part b is not in the template"]),
    ],
)
def test_things_are_compared_by_name(said: Any, found: Any, told: list[str]) -> None:
    check = Check("part", lambda _: said, lambda _: found)
    assert list(check.differences(_deployment("base-pod"))) == told


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"Ref": "Bucket"}, "b-1"),
        ({"Ref": "Other"}, "Other"),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "b-1.Arn"),
        ({"Fn::Join": ["/", ["s3:/", {"Ref": "Bucket"}, "tokens/"]]}, "s3://b-1/tokens/"),
        ({"Fn::Sub": "${AWS::Region}:${Bucket}:${Unknown}"}, "us-east-1:b-1:${Unknown}"),
        ({"Fn::Sub": ["${Name}", {"Name": {"Ref": "Bucket"}}]}, "b-1"),
        ([{"a": {"Ref": "Bucket"}}], [{"a": "b-1"}]),
    ],
)
def test_references_are_resolved(value: Any, text: Any) -> None:
    assert resolved(value, {"Bucket": "b-1", "AWS::Region": "us-east-1"}) == text
