"""What counts against quotas: what a cluster needs, and what others use."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdk_training_cluster import Capacity
from cdk_training_cluster_cli.prepare.preflight.needs import GroupNeed
from cdk_training_cluster_cli.prepare.preflight.quotas import vcpu_demands, vcpu_quota, vcpus_in_use
from cdk_training_cluster_cli.prepare.preflight.storage import in_use
from cluster_contract.tags import CLUSTER_TAG
from preflight_needs import group


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("p4de.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p6-b200.48xlarge", "L-417A185B", None),
        ("g6e.48xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("vt1.24xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("trn2.48xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("inf2.48xlarge", "L-1945791B", "L-B5D1601B"),
        ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"),
        ("f2.48xlarge", "L-74FC7D96", "L-88CF9481"),
        ("hpc7g.16xlarge", "L-F7808C92", None),
        ("x2idn.32xlarge", "L-7295265B", "L-E3A00192"),
        ("u7i-12tb.224xlarge", "L-43DA4232", None),
        ("im4gn.16xlarge", "L-1216C47A", "L-34B43A08"),
    ],
)
def test_a_type_counts_against_the_quota_of_its_family_and_market(
    instance_type: str, on_demand: str, spot: str | None
) -> None:
    found = [vcpu_quota(instance_type, spot=False), vcpu_quota(instance_type, spot=True)]
    assert [None if each is None else each.code for each in found] == [on_demand, spot]


_P5 = 192
_CR = "cr-0a1b2c3d4e5f67890"


@pytest.mark.parametrize(
    ("need", "demands"),
    [
        (group(count=2), {"L-417A185B": (2 * _P5, 2 * _P5)}),
        (group(capacity=Capacity.from_reservation(_CR)), {}),
        (group(capacity=Capacity.capacity_block(_CR)), {}),
        (group(capacity=Capacity.prioritized(reservations=[_CR]), count=2), {"L-417A185B": (0, 2 * _P5)}),
        (group(capacity=Capacity.prioritized(reservations=[_CR], on_demand=False)), {}),
        (
            group("g6e.48xlarge", "g5.12xlarge", capacity=Capacity.spot(), count=1),
            {"L-3819A6DF": (48, 192)},
        ),
        (
            group("p5.48xlarge", "p4d.24xlarge", capacity=Capacity.spot(), count=1),
            {"L-C4BD4855": (0, 192), "L-7212CCBC": (0, 96)},
        ),
    ],
)
def test_a_way_to_buy_takes_of_a_quota(need: GroupNeed, demands: dict[str, tuple[int, int]]) -> None:
    found, without = vcpu_demands([need])
    assert {quota.code: (each.least, each.most) for quota, each in found.items()} == demands
    assert not without


def test_two_groups_take_of_a_quota_together() -> None:
    found, _ = vcpu_demands([group(count=2), group("p5en.48xlarge", count=1)])
    assert [each.most for each in found.values()] == [3 * _P5]


class _Described:
    """Stands for AWS where all answers are known."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self._answers = answers

    def client(self, _: str) -> "_Described":
        return self

    def get_paginator(self, operation: str) -> Any:
        pages = SimpleNamespace(search=lambda _: self._answers[operation])
        return SimpleNamespace(paginate=lambda **_: pages)


def test_what_counts_against_a_vcpu_quota_is_what_others_run_and_reserve() -> None:
    own = {"Tags": [{"Key": CLUSTER_TAG, "Value": "llama"}]}
    p5, spot = {"InstanceType": "p5.48xlarge"}, {"InstanceLifecycle": "spot"}
    cores = {"CpuOptions": {"CoreCount": 4, "ThreadsPerCore": 2}}
    instances: list[Any] = [p5, {**p5, **own}, {**p5, **spot}, {**p5, "InstanceLifecycle": "capacity-block"}]
    instances += [{"InstanceType": "g5.xlarge"}, {"InstanceType": "p9.new", **cores}]
    held = {**p5, "AvailableInstanceCount": 2, "TotalInstanceCount": 3}
    reservations: list[Any] = [
        {**held, "State": "active"},
        {**held, "State": "scheduled"},
        {**held, **own, "State": "active"},
    ]
    reservations += [{**held, "State": "active", "ReservationType": "capacity-block"}]
    aws: Any = _Described(describe_instances=instances, describe_capacity_reservations=reservations)
    on_demand, on_spot = vcpu_quota("p5.48xlarge", spot=False), vcpu_quota("p5.48xlarge", spot=True)
    assert on_demand is not None
    assert on_spot is not None
    assert vcpus_in_use(aws, on_demand, "llama") == _P5 + 8 + 2 * _P5 + 3 * _P5
    assert vcpus_in_use(aws, on_spot, "llama") == _P5


def test_other_file_systems_of_the_kind_count_and_the_clusters_own_does_not() -> None:
    def system(kind: str, size: int, **more: Any) -> dict[str, Any]:
        return {"StorageCapacity": size, "LustreConfiguration": {"DeploymentType": kind}, **more}

    own = [{"Key": CLUSTER_TAG, "Value": "llama"}]
    systems = [system("SCRATCH_1", 1), system("SCRATCH_2", 20), system("SCRATCH_2", 300, Tags=own)]
    systems += [system("PERSISTENT_2", 4000), {"StorageCapacity": 5}, system("SCRATCH_2", 60_000, StorageType="HDD")]
    assert in_use("SCRATCH_2", "StorageCapacity", "llama", systems) == 21
    assert in_use("SCRATCH_2", "", "llama", systems) == 3
    assert in_use("SCRATCH_2", "none", "llama", systems) == 0
