from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import botocore.session
import pytest

from cluster_power.groups import read_activities, read_groups
from fake_auto_scaling import FakeAutoScaling

if TYPE_CHECKING:
    from botocore.model import StringShape
    from mypy_boto3_autoscaling.client import AutoScalingClient


def test_a_group_is_read_as_auto_scaling_describes_it() -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers", desired=4, in_service=2, launching=1, suspended="why")

    [group] = read_groups(cast("AutoScalingClient", fake), "base-pod")

    assert (group.name, group.node_group, group.minimum, group.desired, group.maximum) == (
        "asg",
        "workers",
        0,
        4,
        8,
    )
    assert (group.in_service, group.zones, group.instance_types) == (2, ("us-east-1b",), ("p4de.24xlarge",))
    assert (group.launching_suspended, group.terminating_suspended, group.deleting) == ("why", None, False)
    assert (group.out_of_service, group.alive, group.protected) == (("Pending",), 3, 0)


def test_a_group_that_loses_no_nodes_is_read_with_the_reasons() -> None:
    fake = FakeAutoScaling()
    fake.add(
        "asg", cluster="base-pod", node_group="workers", in_service=3, protected=2, terminating_suspended="debugging"
    )

    [group] = read_groups(cast("AutoScalingClient", fake), "base-pod")

    assert (group.protected, group.terminating_suspended, group.launching_suspended) == (2, "debugging", None)


_STATES = cast(
    "StringShape", botocore.session.get_session().get_service_model("autoscaling").shape_for("LifecycleState")
).enum
_GONE = {"Terminated", "Warmed:Terminated", "Warmed:Stopped", "Warmed:Hibernated"}


@pytest.mark.parametrize("state", [*_STATES, "A state of the future"])
def test_every_instance_that_is_billed_is_alive(state: str) -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers", others=[state])

    [group] = read_groups(cast("AutoScalingClient", fake), "base-pod")

    assert group.alive == (state not in _GONE)
    assert group.in_service == (state == "InService")


def test_one_group_is_read_by_its_name_and_only_if_it_is_the_clusters() -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers")
    fake.add("foreign", cluster="other-pod", node_group="workers")
    client = cast("AutoScalingClient", fake)

    assert [group.name for group in read_groups(client, "base-pod", name="asg")] == ["asg"]
    assert read_groups(client, "base-pod", name="foreign") == []
    assert fake.requests[0] == ("DescribeAutoScalingGroups", {"AutoScalingGroupNames": ["asg"]})


def test_activities_are_read_newest_first_with_their_words_on_one_line() -> None:
    fake = FakeAutoScaling()
    raw = fake.add("asg", cluster="base-pod", node_group="workers")
    raw.activities = [
        {
            "Description": "Launching a new EC2 instance.",
            "StatusCode": "Failed",
            "StatusMessage": "No\n  capacity",
            "StartTime": datetime(2026, 1, 1, 8, tzinfo=UTC),
        },
        {
            "Description": "Terminating EC2 instance: i-1",
            "StatusCode": "InProgress",
            "StartTime": datetime(2026, 1, 1, 9, tzinfo=UTC),
        },
        {
            "Description": "Launching a new EC2 instance: i-2",
            "StatusCode": "Cancelled",
            "StartTime": datetime(2026, 1, 1, 7, tzinfo=UTC),
        },
    ]
    client = cast("AutoScalingClient", fake)
    [group] = read_groups(client, "base-pod")

    activities = read_activities(client, group)

    assert [(one.launch, one.failed, one.finished, one.message) for one in activities] == [
        (False, False, False, "Terminating EC2 instance: i-1"),
        (True, True, True, "No capacity"),
        (True, True, True, "Launching a new EC2 instance: i-2"),
    ]
