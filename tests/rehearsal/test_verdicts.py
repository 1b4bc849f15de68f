"""The rehearsal's verdicts: a sound cluster gives no line, and each wrong thing gives one."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cdk_training_cluster_file import ClusterFile
from rehearsal import verdicts
from rehearsal.inventory import KINDS

_NAT = {"NatGatewayId": "nat-1", "DestinationCidrBlock": "0.0.0.0/0"}
_LOCAL = {"GatewayId": "local", "DestinationCidrBlock": "10.0.0.0/16"}

Books = dict[str, dict[str, Any]]


def _cluster(**settings: Any) -> ClusterFile:
    return ClusterFile.model_validate(
        {
            "name": "pod",
            "availability_zone": "us-east-1b",
            "node_groups": [{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 2, "image": "latest"}],
            **settings,
        }
    )


_DATA = {"file_system": {}, "datasets": [{"file_system_path": "/data", "prefix": "tokens/"}]}
_WITH_DATA = _cluster(**_DATA)
_WITHOUT_DATA = _cluster()
_IN_THEIRS = _cluster(**_DATA, network={"vpc_id": "vpc-0a1b2c3d4e5f67890", "subnet_id": "subnet-0a1b2c3d4e5f67890"})


def _theirs() -> Books:
    """What there was before the cluster: a default VPC and a bucket of others."""
    books: Books = {kind: {} for kind in KINDS}
    books["VPCs"] = {"vpc-default": {"CidrBlock": "172.31.0.0/16"}}
    books["buckets"] = {"theirs": {"objects": {"a": "1"}, "policy": None}}
    return books


def _alone() -> Books:
    """What there is while the foundation stands alone."""
    books = _theirs()
    books["VPCs"]["vpc-1"] = {"CidrBlock": "10.0.0.0/16"}
    books["subnets"] = {"subnet-1": {"VpcId": "vpc-1"}, "subnet-2": {"VpcId": "vpc-1"}}
    books["route tables"] = {"rtb-1": {"Routes": [_LOCAL, _NAT]}}
    books["internet gateways"] = {"igw-1": {}}
    books["endpoints"] = {"vpce-1": {"RouteTableIds": ["rtb-1"]}}
    books["security groups"] = {"sg-1": {"IpPermissions": [{"FromPort": 988}]}}
    books["file systems"] = {"fs-1": {"StorageCapacity": 1200}}
    books["log groups"] = {"flows": {"retentionInDays": 90}}
    books["flow logs"] = {"fl-1": {}}
    books["state tables"] = {"state": {"TableStatus": "ACTIVE"}}
    books["NAT gateways"] = {"nat-1": {}}
    books["addresses"] = {"eipalloc-1": {}}
    books["buckets"]["made"] = {"objects": {"tokens/1": "1"}, "policy": {"Statement": []}}
    return books


def _left() -> Books:
    """What is left when both stacks are gone, and there is data."""
    books = _alone()
    for kind in ("NAT gateways", "addresses", "flow logs"):
        books[kind] = {}
    books["route tables"]["rtb-1"] = {"Routes": [_LOCAL]}
    return books


def _put(kind: str, name: str, content: Any) -> Callable[[Books], None]:
    return lambda books: books[kind].update({name: content})


def _drop(kind: str, name: str) -> Callable[[Books], None]:
    return lambda books: books[kind].__delitem__(name)


def _check_left(cluster: ClusterFile, left: Books) -> list[str]:
    return verdicts.foundation_destroyed(cluster, _theirs(), _alone(), left)


def test_data_is_kept_with_what_it_lives_in_and_nothing_is_said() -> None:
    assert _check_left(_WITH_DATA, _left()) == []


@pytest.mark.parametrize(
    ("wrong", "difference"),
    [
        (_drop("file systems", "fs-1"), "file system fs-1 was not kept"),
        (_drop("VPCs", "vpc-1"), "VPC vpc-1 was not kept"),
        (_drop("subnets", "subnet-2"), "subnet subnet-2 was not kept"),
        (_drop("route tables", "rtb-1"), "route table rtb-1 was not kept"),
        (_drop("internet gateways", "igw-1"), "internet gateway igw-1 was not kept"),
        (_drop("endpoints", "vpce-1"), "endpoint vpce-1 was not kept"),
        (_drop("security groups", "sg-1"), "security group sg-1 was not kept"),
        (_drop("log groups", "flows"), "log group flows was not kept"),
        (_drop("state tables", "state"), "state table state was not kept"),
        (_drop("buckets", "made"), "bucket made was not kept"),
        (_put("file systems", "fs-1", {"StorageCapacity": 2400}), "file system fs-1 was kept, but not as it was"),
        (_put("route tables", "rtb-1", {"Routes": []}), "route table rtb-1 was kept, but not as it was"),
        (_put("endpoints", "vpce-1", {"RouteTableIds": []}), "endpoint vpce-1 was kept, but not as it was"),
        (_put("security groups", "sg-1", {"IpPermissions": []}), "security group sg-1 was kept, but not as it was"),
        (_put("buckets", "made", {"objects": {}, "policy": {}}), "bucket made was kept, but not as it was"),
        (_put("file systems", "fs-2", {}), "file system fs-2 appeared"),
        (_put("NAT gateways", "nat-1", {}), "NAT gateway nat-1 was left although it bills by the hour"),
        (_put("addresses", "eipalloc-1", {}), "address eipalloc-1 was left although it bills by the hour"),
        (_put("nodes", "i-1", {}), "node i-1 was left although it bills by the hour"),
        (_put("volumes", "vol-1", {}), "volume vol-1 was left although it bills by the hour"),
        (_put("flow logs", "fl-1", {}), "flow log fl-1 was left"),
        (_drop("VPCs", "vpc-default"), "VPC vpc-default, which the cluster did not make, was removed"),
        (
            _put("buckets", "theirs", {"objects": {"a": "2"}, "policy": None}),
            "bucket theirs, which the cluster did not make, was changed",
        ),
    ],
)
def test_one_wrong_thing_when_both_stacks_are_gone_is_told(wrong: Callable[[Books], None], difference: str) -> None:
    left = _left()
    wrong(left)
    assert _check_left(_WITH_DATA, left) == [difference]


def test_without_data_the_state_table_alone_is_kept() -> None:
    alone = _alone()
    for kind in ("file systems", "buckets"):
        alone[kind] = _theirs()[kind]
    left = _theirs()
    left["state tables"] = alone["state tables"]
    assert verdicts.foundation_destroyed(_WITHOUT_DATA, _theirs(), alone, left) == []
    left["subnets"]["subnet-1"] = alone["subnets"]["subnet-1"]
    assert verdicts.foundation_destroyed(_WITHOUT_DATA, _theirs(), alone, left) == ["subnet subnet-1 was left"]


@pytest.mark.parametrize(
    ("cluster", "kinds"),
    [
        (
            _WITH_DATA,
            [
                *("file systems", "VPCs", "subnets", "route tables", "internet gateways", "endpoints"),
                *("security groups", "log groups", "state tables", "buckets"),
            ],
        ),
        (_IN_THEIRS, ["file systems", "security groups", "state tables", "buckets"]),
        (_WITHOUT_DATA, ["state tables"]),
    ],
)
def test_a_look_that_saw_nothing_does_not_pass(cluster: ClusterFile, kinds: list[str]) -> None:
    nothing = verdicts.foundation_destroyed(cluster, _theirs(), _theirs(), _theirs())
    assert nothing == [f"there were no {kind} to keep" for kind in kinds]


def _read(**changed: Any) -> dict[str, Any]:
    return {
        "stacks": {"pod-foundation": {"status": "CREATE_COMPLETE"}, "pod-cluster": {"status": "CREATE_COMPLETE"}},
        "node_groups": [{"name": "workers", "count_running": 2}],
        "file_system": {"id": "fs-1"},
        "datasets": [{"file_system_path": "/data"}],
        **changed,
    }


def _read_after(**changed: Any) -> dict[str, Any]:
    return _read(**{"stacks": {"pod-foundation": {}}, "node_groups": [], **changed})


def test_a_whole_foundation_is_nothing_to_say() -> None:
    assert verdicts.cluster_destroyed(_WITH_DATA, _read(), _read_after(), (_alone(), _alone())) == []


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"stacks": _read()["stacks"]}, "the stacks are pod-cluster, pod-foundation, not pod-foundation alone"),
        ({"stacks": {}}, "the stacks are none, not pod-foundation alone"),
        ({"node_groups": _read()["node_groups"]}, "node group workers was left"),
        ({"file_system": None}, "the file system changed"),
        ({"datasets": []}, "its datasets changed"),
    ],
)
def test_what_is_wrong_with_the_stacks_is_told(changed: Mapping[str, Any], difference: str) -> None:
    said = verdicts.cluster_destroyed(_WITH_DATA, _read(), _read_after(**changed), (_alone(), _alone()))
    assert said == [f"after the cluster stack was destroyed: {difference}"]


@pytest.mark.parametrize(
    ("wrong", "difference"),
    [
        (_put("nodes", "i-1", {}), "node i-1 was left although it bills by the hour"),
        (_put("launch templates", "lt-1", {}), "launch template lt-1 was left"),
        (_put("placement groups", "pg-1", {}), "placement group pg-1 was left"),
        (_drop("NAT gateways", "nat-1"), "NAT gateway nat-1 was removed"),
        (_drop("file systems", "fs-1"), "file system fs-1 was removed"),
        (_put("security groups", "sg-1", {"IpPermissions": []}), "security group sg-1 was changed"),
        (_put("buckets", "made", {"objects": {}, "policy": None}), "bucket made was changed"),
    ],
)
def test_what_is_wrong_with_the_foundation_is_told(wrong: Callable[[Books], None], difference: str) -> None:
    whole = _alone()
    wrong(whole)
    said = verdicts.cluster_destroyed(_WITH_DATA, _read(), _read_after(), (_alone(), whole))
    assert said == [f"after the cluster stack was destroyed: {difference}"]


def _again(after: Mapping[str, Any], inventory: Books, unchanged: int = 2) -> list[str]:
    return verdicts.changed_by_second_deployment(_read(), after, (_alone(), inventory), unchanged)


def test_a_second_deployment_that_changes_nothing_is_nothing_to_say() -> None:
    assert _again(_read(), _alone()) == []


@pytest.mark.parametrize("key", ["stacks", "node_groups", "file_system", "datasets"])
def test_what_a_second_deployment_changes_is_told(key: str) -> None:
    after = copy.deepcopy(_read())
    after[key] = {} if isinstance(after[key], dict) else []
    assert _again(after, _alone()) == [f"a second deployment changed {key}"]


@pytest.mark.parametrize(
    ("wrong", "difference"),
    [
        (_put("nodes", "i-1", {}), "a second deployment added node i-1"),
        (_drop("subnets", "subnet-1"), "a second deployment removed subnet subnet-1"),
        (_put("NAT gateways", "nat-1", {"State": "x"}), "a second deployment changed NAT gateway nat-1"),
    ],
)
def test_what_a_second_deployment_does_to_things_is_told(wrong: Callable[[Books], None], difference: str) -> None:
    inventory = _alone()
    wrong(inventory)
    assert _again(_read(), inventory) == [difference]


def test_a_second_deployment_that_updates_a_stack_is_told() -> None:
    assert _again(_read(), _alone(), unchanged=1) == ["a second deployment found 1 stacks unchanged, not 2"]


_GROUPS = [
    {"name": "workers", "instance_ids": ["i-1", "i-2"]},
    {"name": "lab", "instance_ids": ["i-3", "i-4"]},
]
_SIZES = {"workers": 0, "lab": 1}
_RESUMED = {"document": "pod-resume", "status": "Success", "message": ""}


def _stopped(
    sizes: Mapping[str, int] = _SIZES,
    after: Mapping[str, int] = _SIZES,
    resumed: Mapping[str, str] = _RESUMED,
) -> list[str]:
    return verdicts.stopped_and_resumed(_GROUPS, {"i-1", "i-2", "i-3"}, sizes, after, resumed)


def test_nodes_that_are_stopped_and_come_back_are_nothing_to_say() -> None:
    assert _stopped() == []


@pytest.mark.parametrize(
    ("sizes", "difference"),
    [
        ({"workers": 2, "lab": 1}, "node group workers has 2 nodes after an idle stop of 2 of its 2"),
        ({"workers": 1, "lab": 1}, "node group workers has 1 nodes after an idle stop of 2 of its 2"),
        ({"workers": 0, "lab": 2}, "node group lab has 2 nodes after an idle stop of 1 of its 2"),
        ({"workers": 0, "lab": 0}, "node group lab has 0 nodes after an idle stop of 1 of its 2"),
        ({"lab": 1}, "node group workers has None nodes after an idle stop of 2 of its 2"),
    ],
)
def test_a_stop_that_is_none_is_told(sizes: Mapping[str, int], difference: str) -> None:
    assert _stopped(sizes, sizes) == [difference]


@pytest.mark.parametrize("after", [{"workers": 2, "lab": 1}, {"workers": 0, "lab": 0}, {"workers": 0, "lab": 2}])
def test_a_deployment_that_wakes_or_shrinks_something_is_told(after: Mapping[str, int]) -> None:
    assert _stopped(after=after) == [f"a deployment changed stopped node groups from {_SIZES} to {after} nodes"]


def test_a_runbook_that_fails_is_told() -> None:
    assert _stopped(resumed={**_RESUMED, "status": "Failed", "message": "EC2 has no g5.xlarge"}) == [
        "the runbook pod-resume ended with Failed: EC2 has no g5.xlarge"
    ]
