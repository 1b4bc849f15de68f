"""What the power function tells of nodes that are missing: once when it begins, once when it ends, never lost."""

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_missing_capacity_is_told_once_when_it_begins_and_once_when_it_ends(scene: Scene) -> None:
    group = scene.add(capacity=3)

    scene.minute(6)
    began = list(scene.sns.messages)
    group.capacity = 8
    scene.minute(3)

    assert len(began) == 1
    assert began[0]["Subject"] == "base-pod: nodes of workers are missing"
    assert "3 of 8 nodes are running in us-east-1b: EC2 has no more p4de.24xlarge" in began[0]["Message"]
    assert scene.subjects() == [
        "base-pod: nodes of workers are missing",
        "base-pod: no nodes of workers are missing any more",
    ]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nNo nodes are missing any more: workers has all of its 8 nodes."
    )


def test_a_problem_of_another_kind_is_told_too(scene: Scene) -> None:
    group = scene.add(capacity=3)
    scene.minute(2)

    group.failure = "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit."
    scene.minute(2)

    assert scene.subjects() == ["base-pod: nodes of workers are missing"] * 2
    assert scene.record(group).told == ("problem/no-capacity", "problem/quota")


def test_stopping_a_group_that_lacks_nodes_ends_its_problem(scene: Scene) -> None:
    scene.add(capacity=3)
    scene.minute(2)

    scene.order("stop", by="ana", reason="no capacity")
    scene.minute(2)

    assert scene.sns.messages[-1]["Message"].endswith("workers is stopped, by ana: no capacity.")


def test_without_a_topic_a_problem_is_remembered_all_the_same(scene: Scene) -> None:
    scene.topic = None
    group = scene.add(capacity=3)

    scene.minute(2)

    assert scene.sns.calls == []
    assert scene.record(group).told == ("problem/no-capacity",)


def test_a_message_that_fails_is_sent_by_the_next_tick(scene: Scene) -> None:
    scene.add(capacity=3)
    scene.order()
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="workers: could not send or record an alert"):
        scene.minute()

    scene.sns.fails = False
    scene.minute()

    assert scene.subjects() == ["base-pod: nodes of workers are missing"]


def test_a_message_that_could_not_be_remembered_is_rather_sent_twice_than_never(scene: Scene) -> None:
    scene.add(capacity=3)
    scene.order()
    scene.dynamodb.fail_next("PutItem", "InternalFailure")
    with pytest.raises(PartialFailureError, match="workers: could not send or record an alert"):
        scene.minute()

    scene.minute(3)

    assert scene.subjects() == ["base-pod: nodes of workers are missing"] * 2
