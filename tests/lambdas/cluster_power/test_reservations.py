from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from cluster_common.reservations import NO_RESERVATIONS, Absence, Reservation, read_reservations, set_instances
from fake_auto_scaling import FakeGroup
from fake_ec2 import FakeEc2

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

START = datetime(2026, 11, 2, 8, 0, 0, 123456, tzinfo=UTC)


def client(fake: FakeEc2) -> "EC2Client":
    return cast("EC2Client", fake)


def test_a_block_is_read_as_ec2_describes_it() -> None:
    fake = FakeEc2()
    fake.add_reservation(
        "cr-1", 8, starts=START, ends=START + timedelta(days=1), is_block=True, group=FakeGroup("a", {}, in_service=3)
    )

    found = read_reservations(client(fake), ["cr-1"])

    assert found.find("cr-1") == Reservation(
        id="cr-1",
        state="active",
        instances=8,
        used=3,
        zone="us-east-1b",
        starts=START.replace(microsecond=0),
        ends=START.replace(microsecond=0) + timedelta(days=1),
    )


def test_a_reservation_without_an_end_is_read() -> None:
    fake = FakeEc2()
    fake.add_reservation("cr-1", 8, others=2)

    assert read_reservations(client(fake), ["cr-1"]).find("cr-1") == Reservation(
        id="cr-1", state="active", instances=8, used=2, zone="us-east-1b", plain=True
    )


def test_all_reservations_are_read_in_one_call() -> None:
    fake = FakeEc2()
    for number in range(3):
        fake.add_reservation(f"cr-{number}", number + 1)

    found = read_reservations(client(fake), ["cr-2", "cr-0", "cr-1", "cr-0"])

    assert sorted(found.found) == ["cr-0", "cr-1", "cr-2"]
    assert [parameters["CapacityReservationIds"] for _, parameters in fake.requests] == [["cr-0", "cr-1", "cr-2"]]


def test_a_reservation_that_does_not_exist_hides_no_other() -> None:
    fake = FakeEc2()
    fake.add_reservation("cr-1", 8)

    found = read_reservations(client(fake), ["cr-0", "cr-1"])

    assert found.find("cr-0") is Absence.NOT_FOUND
    assert isinstance(found.find("cr-1"), Reservation)


def test_a_refusal_is_raised() -> None:
    fake = FakeEc2()
    fake.fail_next("DescribeCapacityReservations", "UnauthorizedOperation")

    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        read_reservations(client(fake), ["cr-0"])


def test_where_none_is_named_none_is_found() -> None:
    assert NO_RESERVATIONS.find("cr-1") is Absence.NOT_FOUND


def test_the_number_of_instances_is_set_and_the_end_is_not_touched() -> None:
    fake = FakeEc2()
    fake.add_reservation("cr-1", 8)

    set_instances(client(fake), "cr-1", 1)

    assert fake.requests == [("ModifyCapacityReservation", {"CapacityReservationId": "cr-1", "InstanceCount": 1})]
    assert fake.reservations["cr-1"].bought == 1
