"""What an owner does with a node under repair."""

from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError

from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.kinds import OWNER_KINDS
from cluster_common.owners.named_owners import Named
from cluster_common.owners.node_owner import NodeOwner, OwnerBusyError
from cluster_common.owners.pcs_compute_node_groups import PcsComputeNodeGroups
from cluster_common.owners.spot_fleets import SpotFleets
from fake_auto_scaling import FakeAutoScaling, FakeGroup
from fake_service import STACK, FakeService
from power_scene import START

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_ec2.client import EC2Client


class Ec2(FakeService):
    def __init__(self) -> None:
        super().__init__("ec2")

    def reboot_instances(self, **parameters: Any) -> None:
        self.record("RebootInstances", parameters, names=parameters["InstanceIds"])

    def terminate_instances(self, **parameters: Any) -> None:
        self.record("TerminateInstances", parameters, names=parameters["InstanceIds"])


@pytest.fixture
def ec2() -> Ec2:
    return Ec2()


@pytest.fixture
def fake() -> FakeAutoScaling:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers", desired=4, in_service=4)
    return fake


def owner(fake: FakeAutoScaling, ec2: Ec2) -> AutoScalingGroups:
    client = cast("AutoScalingClient", fake)
    return AutoScalingGroups(
        client, lambda: client, lambda: cast("EC2Client", ec2), "base-pod", ["workers"], stack_id=STACK
    )


def shown(group: FakeGroup) -> tuple[int, int, int]:
    return group.desired, group.in_service, len(group.standby)


@pytest.mark.parametrize("ends", ["uncordon", "replace"])
def test_a_node_of_an_auto_scaling_group_is_repaired_in_standby(fake: FakeAutoScaling, ec2: Ec2, ends: str) -> None:
    own, group = owner(fake, ec2), fake.groups["asg"]
    node = group.nodes[0][0]
    [read] = own.read().groups
    own.cordon(read, node)
    assert shown(group) == (3, 3, 1)
    [read] = own.read().groups
    assert (read.standby, read.counted, read.alive, read.count_missing(4)) == (1, 3, 4, 0)
    assert read.nodes[node].in_standby
    own.reboot(read, node)
    assert ec2.requests == [("RebootInstances", {"InstanceIds": [node]})]
    getattr(own, ends)(read, node)
    assert shown(group) == ((4, 4, 0) if ends == "uncordon" else (3, 3, 0))


def test_a_node_in_service_is_replaced_in_a_group_that_keeps_its_size(fake: FakeAutoScaling, ec2: Ec2) -> None:
    own, group = owner(fake, ec2), fake.groups["asg"]
    node = group.nodes[0][0]
    for _ in range(2):  # The second request is sent since the first one's answer was lost.
        own.replace(own.read().groups[0], node)
    assert (group.desired, group.terminating) == (4, [node])


@pytest.mark.parametrize(
    ("verb", "operation"),
    [
        ("cordon", "EnterStandby"),
        ("uncordon", "ExitStandby"),
        ("replace", "TerminateInstanceInAutoScalingGroup"),
    ],
)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ScalingActivityInProgress", OwnerBusyError),
        ("ResourceContention", OwnerBusyError),
        ("ValidationError", ClientError),
        ("Throttling", ClientError),
    ],
)
def test_a_group_that_is_busy_is_told_from_one_that_refuses(
    fake: FakeAutoScaling, ec2: Ec2, *, verb: str, operation: str, code: str, error: type[Exception]
) -> None:
    own = owner(fake, ec2)
    [read] = own.read().groups
    node = fake.groups["asg"].nodes[0][0]
    if verb == "uncordon":
        own.cordon(read, node)
    fake.fail_next(operation, code)
    with pytest.raises(error):
        getattr(own, verb)(read, node)


def test_a_node_that_is_not_in_service_cannot_be_taken_out_twice(fake: FakeAutoScaling, ec2: Ec2) -> None:
    own, group = owner(fake, ec2), fake.groups["asg"]
    [read] = own.read().groups
    node = group.nodes[0][0]
    own.cordon(read, node)
    with pytest.raises(ClientError, match="is not in InService"):
        own.cordon(read, node)
    assert shown(group) == (3, 3, 1)


@pytest.mark.parametrize("kind", [SpotFleets, PcsComputeNodeGroups])
def test_others_that_are_repaired_here_are_replaced_only(
    fake: FakeAutoScaling, ec2: Ec2, kind: type[SpotFleets | PcsComputeNodeGroups]
) -> None:
    client, named = cast("EC2Client", ec2), Named(cluster="base-pod", owners={}, now=START)
    own: NodeOwner = SpotFleets(client, named) if kind is SpotFleets else PcsComputeNodeGroups(None, client, named)
    [group] = owner(fake, ec2).read().groups
    own.cordon(group, "i-1")
    own.uncordon(group, "i-1")
    with pytest.raises(NotImplementedError):
        own.reboot(group, "i-1")
    own.replace(group, "i-1")
    assert ec2.requests == [("TerminateInstances", {"InstanceIds": ["i-1"]})]


def test_each_kind_is_repaired_here_or_says_in_a_sentence_how_else() -> None:
    repaired = {key for key, kind in OWNER_KINDS.items() if not kind.own_repair}
    assert repaired == {"auto_scaling_group", "spot_fleet", "pcs_compute_node_group"}
    assert {key for key, kind in OWNER_KINDS.items() if kind.reboots} == {"auto_scaling_group"}
