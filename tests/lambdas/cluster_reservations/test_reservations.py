"""Each request of CloudFormation's ends with one answer, and with no reservation that nobody owns."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from cluster_reservations.handler import answer, send
from cluster_reservations.reservations import Reservations
from fake_service import FakePaginator, FakeService, refusal

_NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
_ARN = "arn:aws:ec2:us-east-1:111122223333:placement-group/close"
_PROPERTIES: Mapping[str, Any] = {
    "ServiceToken": "arn:aws:lambda:us-east-1:111122223333:function:f",
    "InstanceType": "p5.48xlarge",
    "InstanceCount": "8",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1b",
    "InstanceMatchCriteria": "targeted",
    "Tenancy": "default",
    "EndDateType": "unlimited",
    "PlacementGroupArn": _ARN,
    "TagSpecifications": [
        {"ResourceType": "capacity-reservation", "Tags": [{"Key": "cdk-training-cluster:cluster", "Value": "pod"}]}
    ],
}
_OWN = {"cdk-training-cluster:stack": "pod-cluster", "cdk-training-cluster:resource": "Held"}


class _Ec2(FakeService):
    """The actions of EC2 about Capacity Reservations, in memory."""

    def __init__(self) -> None:
        super().__init__("ec2")
        self.made: dict[str, dict[str, Any]] = {}
        self.tokens: dict[str, str] = {}
        self.lost_answers: list[str] = []
        self.state = "active"

    def create_capacity_reservation(self, **request: Any) -> dict[str, Any]:
        self.record("CreateCapacityReservation", request)
        token = request.pop("ClientToken")
        if token not in self.tokens:
            reservation_id = f"cr-{len(self.made):017x}"
            self.tokens[token] = reservation_id
            tags = request.pop("TagSpecifications")[0]["Tags"]
            count = request.pop("InstanceCount")
            self.made[reservation_id] = {
                **request,
                "CapacityReservationId": reservation_id,
                "TotalInstanceCount": count,
                "State": self.state,
                "Tags": tags,
            }
        self._lose("CreateCapacityReservation")
        return {"CapacityReservation": self.made[self.tokens[token]]}

    def modify_capacity_reservation(self, *, CapacityReservationId: str, **changes: Any) -> dict[str, Any]:  # noqa: N803
        self.record("ModifyCapacityReservation", {"CapacityReservationId": CapacityReservationId, **changes})
        found = self.made[CapacityReservationId]
        if "InstanceCount" in changes:
            found["TotalInstanceCount"] = changes.pop("InstanceCount")
        if changes.get("EndDateType") == "unlimited":
            found.pop("EndDate", None)
        found |= changes
        return {"Return": True}

    def cancel_capacity_reservation(self, *, CapacityReservationId: str) -> dict[str, Any]:  # noqa: N803
        self.record("CancelCapacityReservation", {"CapacityReservationId": CapacityReservationId})
        self.made[CapacityReservationId]["State"] = "cancelled"
        return {"Return": True}

    def describe_capacity_reservations(self, **request: Any) -> dict[str, Any]:
        self.record("DescribeCapacityReservations", request)
        found = list(self.made.values())
        if "CapacityReservationIds" in request:
            (wanted,) = request["CapacityReservationIds"]
            if wanted not in self.made:
                raise refusal("DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound", "no")
            found = [self.made[wanted]]
        for each in request.get("Filters", ()):
            name = {"state": "State", "instance-match-criteria": "InstanceMatchCriteria"}[each["Name"]]
            found = [one for one in found if one[name] in each["Values"]]
        return {"CapacityReservations": [dict(one) for one in found]}

    def create_tags(self, *, Resources: list[str], Tags: list[dict[str, str]]) -> None:  # noqa: N803
        self.record("CreateTags", {"Resources": Resources, "Tags": Tags})
        for one in Resources:
            tags = {tag["Key"]: tag["Value"] for tag in [*self.made[one]["Tags"], *Tags]}
            self.made[one]["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]

    def get_paginator(self, operation: str) -> FakePaginator:
        assert operation == "describe_capacity_reservations"
        return FakePaginator(lambda **request: iter([self.describe_capacity_reservations(**request)]))

    @property
    def alive(self) -> list[str]:
        return [name for name, one in self.made.items() if one["State"] in {"active", "pending"}]

    def _lose(self, operation: str) -> None:
        if operation in self.lost_answers:
            self.lost_answers.remove(operation)
            raise EndpointConnectionError(endpoint_url="https://ec2")


@pytest.fixture
def ec2() -> _Ec2:
    return _Ec2()


def _event(kind: str, physical_id: str = "", request: str = "r1", **changes: Any) -> dict[str, Any]:
    before = changes.pop("before", None)
    properties = {**_PROPERTIES, **changes}
    return {
        "RequestType": kind,
        "RequestId": request,
        "ResponseURL": "https://answer",
        "StackId": "arn:aws:cloudformation:us-east-1:111122223333:stack/pod-cluster/1",
        "LogicalResourceId": "Held",
        "ResourceProperties": {name: value for name, value in properties.items() if value is not None},
        **({"PhysicalResourceId": physical_id} if physical_id else {}),
        **({"OldResourceProperties": {**_PROPERTIES, **before}} if before is not None else {}),
    }


def _do(ec2: _Ec2, kind: str, physical_id: str = "", **more: Any) -> dict[str, Any]:
    client: Any = ec2
    reservations = Reservations(ec2=client, now=_NOW, pause=lambda _: None)
    return answer(_event(kind, physical_id, **more), reservations)


def _made(ec2: _Ec2, **more: Any) -> str:
    said = _do(ec2, "Create", **more)
    assert said["Status"] == "SUCCESS", said
    return str(said["PhysicalResourceId"])


def test_a_reservation_is_made_as_the_template_says_and_carries_what_finds_it(ec2: _Ec2) -> None:
    made = ec2.made[_made(ec2)]
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert tags == {"cdk-training-cluster:cluster": "pod", **_OWN}
    assert (made["TotalInstanceCount"], made["EndDateType"], made["PlacementGroupArn"]) == (8, "unlimited", _ARN)
    assert made["InstanceMatchCriteria"] == "targeted"


def test_a_request_that_is_delivered_twice_makes_one_reservation(ec2: _Ec2) -> None:
    assert _made(ec2) == _made(ec2)
    assert len(ec2.made) == 1


def test_a_lost_answer_of_ec2_s_fails_and_the_deletion_that_follows_cancels_what_was_made(ec2: _Ec2) -> None:
    ec2.lost_answers = ["CreateCapacityReservation"]
    said = _do(ec2, "Create")
    assert said["Status"] == "FAILED"
    assert "EC2 does not reserve 8 p5.48xlarge in us-east-1b: EndpointConnectionError" in said["Reason"]
    assert len(ec2.alive) == 1
    assert _do(ec2, "Delete", said["PhysicalResourceId"], request="r2")["Status"] == "SUCCESS"
    assert ec2.alive == []


@pytest.mark.parametrize("physical_id", ["none-r1", "pod-cluster-Held-A1B2C3D4E5F6", "2026/11/24/[$LATEST]ab"])
def test_a_deletion_without_a_reservation_s_id_finds_it_by_its_tags(ec2: _Ec2, physical_id: str) -> None:
    _made(ec2)
    other = _do(ec2, "Create", request="r9", TagSpecifications=[])  # of the same resource: adopted
    assert other["PhysicalResourceId"] in ec2.alive
    assert _do(ec2, "Delete", physical_id, request="r2")["Status"] == "SUCCESS"
    assert ec2.alive == []


def test_what_ec2_refuses_is_one_sentence_with_what_to_do(ec2: _Ec2) -> None:
    ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity", message="No room.")
    said = _do(ec2, "Create")
    assert (said["Status"], said["PhysicalResourceId"]) == ("FAILED", "none-r1")
    assert said["Reason"] == (
        "EC2 does not reserve 8 p5.48xlarge in us-east-1b: InsufficientInstanceCapacity: No room.; deploy again "
        "later, lower count, or buy the nodes in another way"
    )
    assert _do(ec2, "Delete", "none-r1")["Status"] == "SUCCESS"


def test_a_reservation_that_ec2_does_not_bring_up_fails(ec2: _Ec2) -> None:
    ec2.state = "failed"
    said = _do(ec2, "Create")
    assert (said["Status"], said["Reason"]) == (
        "FAILED",
        "EC2 does not reserve 8 p5.48xlarge in us-east-1b: the reservation cr-00000000000000000 is failed",
    )


def test_an_internal_error_is_answered_and_not_called_a_refusal(ec2: _Ec2) -> None:
    said = _do(ec2, "Create", InstanceCount="many")
    assert said["Status"] == "FAILED"
    assert said["Reason"] == "the reservation function failed with an internal error (ValueError); see its log group"


def test_count_and_end_change_in_place(ec2: _Ec2) -> None:
    made = _made(ec2)
    said = _do(
        ec2, "Update", made, before={}, InstanceCount="16", EndDateType="limited", EndDate="2026-12-24T18:00:00Z"
    )
    assert (said["Status"], said["PhysicalResourceId"]) == ("SUCCESS", made)
    assert ec2.made[made]["TotalInstanceCount"] == 16
    assert ec2.made[made]["EndDate"] == datetime(2026, 12, 24, 18, tzinfo=UTC)
    back = _do(
        ec2, "Update", made, before={"InstanceCount": "16", "EndDate": "2026-12-24T18:00:00Z"}, InstanceCount="16"
    )
    assert (back["Status"], ec2.made[made]["EndDateType"]) == ("SUCCESS", "unlimited")


def test_a_count_that_the_power_function_lowered_stays_while_only_the_end_changes(ec2: _Ec2) -> None:
    made = _made(ec2)
    ec2.made[made]["TotalInstanceCount"] = 1
    _do(ec2, "Update", made, before={}, EndDateType="limited", EndDate="2026-12-24T18:00:00Z")
    assert ec2.made[made]["TotalInstanceCount"] == 1


def test_tags_change_in_place(ec2: _Ec2) -> None:
    made = _made(ec2)
    tags = [
        {"ResourceType": "capacity-reservation", "Tags": [{"Key": "cdk-training-cluster:cluster", "Value": "new"}]}
    ]
    assert _do(ec2, "Update", made, before={}, TagSpecifications=tags)["PhysicalResourceId"] == made
    assert {"Key": "cdk-training-cluster:cluster", "Value": "new"} in ec2.made[made]["Tags"]


@pytest.mark.parametrize(
    "change",
    [
        {"InstanceType": "p4d.24xlarge"},
        {"AvailabilityZone": "us-east-1c"},
        {"PlacementGroupArn": f"{_ARN}-2"},
        {"InstancePlatform": "Ubuntu Pro"},
    ],
)
def test_what_ec2_cannot_change_is_reserved_anew_before_the_other_is_cancelled(
    ec2: _Ec2, change: dict[str, str]
) -> None:
    first = _made(ec2)
    second = _do(ec2, "Update", first, request="r2", before={}, **change)["PhysicalResourceId"]
    assert second != first
    assert ec2.alive == [first, second]
    assert _do(ec2, "Delete", first, request="r3")["Status"] == "SUCCESS"
    assert ec2.alive == [second]


def test_a_rollback_takes_the_reservation_back_that_is_there_still(ec2: _Ec2) -> None:
    first = _made(ec2)
    change = {"InstanceType": "p4d.24xlarge"}
    second = _do(ec2, "Update", first, request="r2", before={}, **change)["PhysicalResourceId"]
    back = _do(ec2, "Update", second, request="r3", before=change)
    assert back["PhysicalResourceId"] == first
    assert len(ec2.made) == 2
    _do(ec2, "Delete", second, request="r4")
    assert ec2.alive == [first]


def test_a_rollback_after_a_lost_answer_cancels_what_the_update_made(ec2: _Ec2) -> None:
    first = _made(ec2)
    change = {"InstanceType": "p4d.24xlarge"}
    ec2.lost_answers = ["CreateCapacityReservation"]
    assert _do(ec2, "Update", first, request="r2", before={}, **change)["Status"] == "FAILED"
    assert len(ec2.alive) == 2
    # CloudFormation knows the first one only.
    assert _do(ec2, "Update", first, request="r3", before=change)["PhysicalResourceId"] == first
    assert ec2.alive == [first]


def test_an_update_that_fails_leaves_what_there_is(ec2: _Ec2) -> None:
    first = _made(ec2)
    ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity")
    said = _do(ec2, "Update", first, request="r2", before={}, InstanceType="p4d.24xlarge")
    assert (said["Status"], said["PhysicalResourceId"], ec2.alive) == ("FAILED", first, [first])


def test_a_reservation_that_has_ended_is_made_anew_when_its_end_changes(ec2: _Ec2) -> None:
    end = {"EndDateType": "limited", "EndDate": "2026-11-23T00:00:00Z"}
    first = _made(ec2, **end)
    ec2.made[first]["State"] = "expired"
    later = {"EndDateType": "limited", "EndDate": "2026-12-24T18:00:00Z"}
    second = _do(ec2, "Update", first, request="r2", before=end, **later)["PhysicalResourceId"]
    assert ec2.alive == [second]
    # Back to an end that is over: there is nothing to restore, and the newer one goes.
    back = _do(ec2, "Update", second, request="r3", before=later, **end)
    ec2.made[second]["State"] = "cancelled"
    again = _do(ec2, "Update", second, request="r4", before=later, **end)
    assert (back["Status"], again["Status"], again["PhysicalResourceId"]) == ("SUCCESS", "SUCCESS", second)


@pytest.mark.parametrize("state", ["cancelled", "expired", "failed"])
def test_what_has_ended_is_deleted_without_a_call(ec2: _Ec2, state: str) -> None:
    made = _made(ec2)
    ec2.made[made]["State"] = state
    assert _do(ec2, "Delete", made)["Status"] == "SUCCESS"
    assert "CancelCapacityReservation" not in ec2.writes
    del ec2.made[made]
    assert _do(ec2, "Delete", made)["Status"] == "SUCCESS"


def test_a_reservation_that_cannot_be_cancelled_fails_the_deletion_and_says_that_it_bills(ec2: _Ec2) -> None:
    made = _made(ec2)
    ec2.fail_next("CancelCapacityReservation", "UnauthorizedOperation", message="Denied.")
    said = _do(ec2, "Delete", made)
    assert (said["Status"], ec2.alive) == ("FAILED", [made])
    assert said["Reason"] == (
        f"EC2 does not cancel the Capacity Reservation {made}, which bills until it is cancelled: "
        "UnauthorizedOperation: Denied."
    )


def test_a_reservation_that_ends_while_it_is_cancelled_is_deleted(ec2: _Ec2) -> None:
    made = _made(ec2)
    ec2.before_next("CancelCapacityReservation", "", lambda: None)
    ec2.on_call = lambda operation: ec2.made[made].update(State="expired") if "Cancel" in operation else None
    ec2.fail_next("CancelCapacityReservation", "IncorrectState")
    assert _do(ec2, "Delete", made)["Status"] == "SUCCESS"


class _Store(BaseHTTPRequestHandler):
    """Takes answers as S3 does, after a number of failures."""

    failures = 0
    taken: list[tuple[str | None, bytes]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if type(self).failures:
            type(self).failures -= 1
            self.send_error(503)
            return
        type(self).taken.append((self.headers["Content-Type"], body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def store() -> Iterator[tuple[str, type[_Store]]]:
    _Store.taken, _Store.failures = [], 0
    server = HTTPServer(("127.0.0.1", 0), _Store)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", _Store
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_answer_is_sent_without_a_content_type_and_again_where_it_is_not_taken(
    store: tuple[str, type[_Store]],
) -> None:
    url, taken = store
    taken.failures = 2
    send(url, {"Status": "SUCCESS"}, pause=lambda _: None)
    ((kind, body),) = taken.taken
    assert (kind or "", json.loads(body)) == ("", {"Status": "SUCCESS"})


def test_an_answer_that_is_never_taken_ends_the_invocation_so_that_lambda_repeats_it(
    store: tuple[str, type[_Store]],
) -> None:
    url, taken = store
    taken.failures = 99
    with pytest.raises(OSError, match="503"):
        send(url, {"Status": "SUCCESS"}, pause=lambda _: None)
