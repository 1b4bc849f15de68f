"""What a node reads of its metadata, with tokens that expire, and what drains it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cdk_training_cluster.nodes.agent.cluster_node.metadata import Metadata
from cdk_training_cluster.nodes.agent.cluster_node.notices import Notice, Notices
from fake_metadata_service import FakeMetadataService

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
_LIFECYCLE = "autoscaling/target-lifecycle-state"
_MAINTENANCE = """[{"NotBefore": "23 Nov 2026 08:%s:00 GMT", "Code": "system-reboot", "State": "%s",
  "Description": "scheduled reboot", "EventId": "instance-event-0d59937288b749b32"}]"""
_RETIREMENT = '{"NotBefore": "7 Dec 2026 08:00:00 GMT", "Code": "instance-retirement", "State": "active"}'


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMetadataService]:
    with FakeMetadataService().running() as running:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", running.address)
        yield running


@pytest.mark.parametrize(
    ("path", "document", "code", "drains"),
    [
        ("spot/instance-action", '{"action": "terminate", "time": "2026-11-23T08:02:00Z"}', "spot", True),
        ("events/recommendations/rebalance", '{"noticeTime": "2026-11-23T08:00:00Z"}', "rebalance", False),
        # The end of a Capacity Block is here too: the group is scaled in before it.
        (_LIFECYCLE, "Terminated", "terminating", True),
        (_LIFECYCLE, "Warmed:Terminated", "terminating", True),
        (_LIFECYCLE, "Warmed:Stopped", "terminating", True),
        (_LIFECYCLE, "Warmed:Hibernated", "terminating", True),
        (_LIFECYCLE, "Warmed:Running", "standby", True),
        (_LIFECYCLE, "Standby", "standby", True),
    ],
)
def test_a_notice(service: FakeMetadataService, path: str, document: str, code: str, drains: bool) -> None:
    service.documents |= {"instance-life-cycle": "spot", _LIFECYCLE: "InService"}
    notices = Notices(Metadata())
    assert notices.urgent() == []
    service.documents[path] = document
    # Each question finds its token expired.
    service.forgets = True
    (found,) = notices.urgent()
    assert (found.code, found.drains) == (code, drains)
    assert found.deadline == (datetime(2026, 11, 23, 8, 2, tzinfo=UTC) if code == "spot" else None)


@pytest.mark.parametrize(("minute", "state", "drains"), [("29", "active", True), ("31", "active", False)])
def test_maintenance_drains_shortly_before_it(
    service: FakeMetadataService, minute: str, state: str, drains: bool
) -> None:
    # Of two events the earlier counts.
    service.documents["events/maintenance/scheduled"] = f"{(_MAINTENANCE % (minute, state))[:-1]}, {_RETIREMENT}]"
    service.forgets = True
    deadline = datetime(2026, 11, 23, 8, int(minute), tzinfo=UTC)
    sentence = f"EC2 has scheduled system-reboot of the node for 2026-11-23 08:{minute} UTC"
    notices = Notices(Metadata())
    for _ in range(2):
        assert notices.scheduled(NOW) == [Notice("maintenance", sentence, deadline, drains)]
    assert service.tokens_given == 2


@pytest.mark.parametrize("document", ["[]", _MAINTENANCE % ("05", "completed"), _MAINTENANCE % ("05", "canceled")])
def test_maintenance_that_is_over_is_no_notice(service: FakeMetadataService, document: str) -> None:
    service.documents["events/maintenance/scheduled"] = document
    assert Notices(Metadata()).scheduled(NOW) == []


def test_a_node_that_is_not_spot_is_asked_nothing_about_it(service: FakeMetadataService) -> None:
    Notices(Metadata()).urgent()
    assert service.asked == ["instance-life-cycle", _LIFECYCLE]


def test_a_token_is_renewed_before_it_expires_and_when_it_is_refused(service: FakeMetadataService) -> None:
    seconds = 0.0
    metadata = Metadata(clock=lambda: seconds)
    assert metadata.get("instance-life-cycle") == metadata.get("instance-life-cycle") == "on-demand"
    assert service.tokens_given == 1
    service.expire_tokens()
    assert metadata.get("instance-life-cycle") == "on-demand"
    seconds = 6 * 3600
    assert metadata.get("instance-life-cycle") == "on-demand"
    assert service.tokens_given == 3


def test_a_service_that_fails_is_no_answer(service: FakeMetadataService) -> None:
    service.failing = True
    with pytest.raises(OSError, match="answers autoscaling/target-lifecycle-state with status 503"):
        Metadata().get(_LIFECYCLE)
