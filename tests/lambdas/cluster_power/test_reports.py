"""What a tick tells the alarms."""

import json
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import Scene
from termination_scene import middle, run_group, terminate


def metrics(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    """Return the values of the last tick by node group; those of the cluster have no name."""
    found: dict[str, dict[str, Any]] = {}
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        if "_aws" in record and "HoursToCapacityEnd" not in record:
            assert record.pop("Cluster") == "base-pod"
            del record["_aws"]
            name = record.pop("NodeGroup", "")
            found[name] = {metric: int(value) for metric, [value] in record.items()}
    return found


def test_missing_and_running_nodes_are_counted_by_group_and_together(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    scene.add("eval")
    scene.add("workers", capacity=3)

    scene.minute(2)

    assert metrics(capsys) == {
        "": {
            "MissingNodes": 5,
            "RunningNodes": 5,
            "SurplusNodes": 0,
            "WantedNodes": 10,
            "HeldGroups": 0,
            "MixedGroups": 0,
            "SuccessfulTicks": 1,
        },
        "eval": {"MissingNodes": 0, "RunningNodes": 2, "SurplusNodes": 0, "WantedNodes": 2},
        "workers": {"MissingNodes": 5, "RunningNodes": 3, "SurplusNodes": 0, "WantedNodes": 8},
    }


def test_a_held_group_is_counted_and_misses_what_the_operator_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(2)
    group.desired = 5

    scene.minute()

    assert metrics(capsys)[""] == {
        "MissingNodes": 0,
        "RunningNodes": 5,
        "SurplusNodes": 0,
        "WantedNodes": 8,
        "HeldGroups": 1,
        "MixedGroups": 0,
        "SuccessfulTicks": 1,
    }


def test_nodes_that_were_terminated_by_order_hold_no_group(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    terminate(scene, middle(run_group(scene)))

    assert scene.minute()["workers"]["decision"] == "held"

    assert metrics(capsys)[""]["HeldGroups"] == 0


def test_a_stopped_cluster_misses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.add()
    scene.minute(2)
    scene.order("stop")

    scene.minute()

    assert metrics(capsys)[""] == {
        "MissingNodes": 0,
        "RunningNodes": 0,
        "SurplusNodes": 0,
        "WantedNodes": 0,
        "HeldGroups": 0,
        "MixedGroups": 0,
        "SuccessfulTicks": 1,
    }


def test_nodes_that_stay_are_counted_by_group_and_together(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    scene.add("eval", hooked=True)
    scene.add("workers", protected=3)
    scene.minute(2)
    scene.order("stop")

    scene.minute()

    found = metrics(capsys)
    assert {name: (one["SurplusNodes"], one["RunningNodes"]) for name, one in found.items()} == {
        "": (5, 3),
        "eval": (2, 0),
        "workers": (3, 3),
    }


def test_a_group_that_the_file_does_not_know_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.add()
    scene.add("old", desired=3, in_service=3)

    scene.minute(2)

    assert metrics(capsys).keys() == {"", "workers"}
    scene.minute()
    assert metrics(capsys)[""]["RunningNodes"] == 8


def test_a_group_that_is_left_over_beside_a_fleet_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(counts={"workers": 8})
    scene.add("workers")
    scene.add("extras", name="old-asg", desired=3, in_service=3)
    scene.add_fleet("extras")
    scene.minute(3)

    scene.minute()

    assert metrics(capsys)["extras"] == {"MissingNodes": 0, "RunningNodes": 4, "SurplusNodes": 0, "WantedNodes": 4}


def test_what_could_not_be_read_is_not_counted_and_the_rest_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A point of what is not known would be a wrong one; the silence of the cluster's alarms says enough."""
    scene = Scene(counts={"workers": 8})
    scene.add("workers")
    scene.add_fleet("extras")
    scene.minute(3)
    metrics(capsys)
    scene.ec2.fail_next("DescribeSpotFleetRequests", "RequestLimitExceeded")

    with pytest.raises(PartialFailureError):
        scene.minute()

    assert metrics(capsys) == {"workers": {"MissingNodes": 0, "RunningNodes": 8, "SurplusNodes": 0, "WantedNodes": 8}}


def test_a_tick_in_which_something_failed_is_no_success_and_still_measures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = Scene()
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "InternalFailure")

    with pytest.raises(PartialFailureError):
        scene.order()

    assert metrics(capsys)[""] == {
        "MissingNodes": 8,
        "RunningNodes": 0,
        "SurplusNodes": 0,
        "WantedNodes": 8,
        "HeldGroups": 0,
        "MixedGroups": 0,
        "SuccessfulTicks": 0,
    }


def test_nothing_is_measured_when_the_groups_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling")

    with pytest.raises(Exception, match="Throttling"):
        scene.order()

    assert metrics(capsys) == {}


def test_the_time_until_capacity_ends_is_reported_where_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(counts={"pod": 8, "eval": 2})
    scene.add("eval")
    scene.deploy_pod(starts=timedelta(0))

    scene.minute(30)

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "HoursToCapacityEnd" in line]
    assert {record["NodeGroup"] for record in found} == {"pod"}
    assert found[-1]["HoursToCapacityEnd"] == [23.5]
