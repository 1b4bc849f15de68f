"""Create, change and cancel Capacity Reservations so that none is paid for without an owner.

Each reservation carries the stack's name and the resource's logical id. CloudFormation may deliver a request twice,
lose an answer, or roll back: the function first looks for the reservation that the request is about, and creates one
only where there is none.

Sources: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html and
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-custom-resources.html
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cluster_common.errors import AWS_ERRORS, error_code, error_text
from cluster_reservations.request import FIXED, Request, Wanted

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

_ALIVE = ("active", "pending")
_PENDING_POLLS = 12
_SECONDS_BETWEEN_POLLS = 5.0
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_ABSENT = "InvalidCapacityReservationId"
_NO_CAPACITY = ("InsufficientInstanceCapacity", "InsufficientCapacity", "ReservationCapacityExceeded")


class RefusedError(Exception):
    """Say in one sentence why EC2 does not do what the template asks for."""


@dataclass(frozen=True, kw_only=True)
class Reservations:
    """The reservations of one custom resource.

    Attributes:
        ec2: The client of EC2.
        now: The time.
        pause: Waits for some seconds.
    """

    ec2: "EC2Client"
    now: datetime
    pause: Callable[[float], None]

    def apply(self, request: Request) -> str:
        """Do what a request asks for, and return the physical id.

        Args:
            request: The request.

        Raises:
            RefusedError: EC2 does not do it.
        """
        match request.kind:
            case "Create":
                return self._adopted(request) or self._create(request)
            case "Update":
                return self._update(request)
            case _:
                self._delete(request)
                return request.physical_id

    def _update(self, request: Request) -> str:
        found = self._described(request.reservation_id) if request.reservation_id else None
        if found is None or found["State"] not in _ALIVE:
            return self._update_of_an_ended_one(request)
        if not _is_alike(found, request.wanted):
            # CloudFormation deletes the other one when all resources have been updated.
            return self._adopted(request) or self._create(request)
        before = request.before or request.wanted
        self._modify(found, request, count_before=before.count)
        # What an update left behind whose answer was lost, or whose rollback this is.
        for other in self._own(request):
            if other["CapacityReservationId"] != request.physical_id:
                self._cancel(other["CapacityReservationId"])
        return request.physical_id

    def _update_of_an_ended_one(self, request: Request) -> str:
        adopted = self._adopted(request)
        end = request.wanted.end
        if adopted is None and end is not None and end <= self.now:
            # A rollback to a reservation that has ended since: there is nothing to restore.
            return request.physical_id
        return adopted or self._create(request)

    def _modify(self, found: Mapping[str, Any], request: Request, *, count_before: int) -> None:
        """Change what differs. The power function changes the count too, which then stays."""
        wanted = request.wanted
        changes: dict[str, Any] = {}
        if wanted.count != count_before:
            changes["InstanceCount"] = wanted.count
        if wanted.end != _end_of(found):
            changes |= _end_settings(wanted.end)
        reservation_id = found["CapacityReservationId"]
        if changes:
            self._called(
                f"EC2 does not change the Capacity Reservation {reservation_id}",
                lambda: self.ec2.modify_capacity_reservation(CapacityReservationId=reservation_id, **changes),
            )
        tags = {**wanted.tags, **request.own_tags}
        if not tags.items() <= _tags_of(found).items():
            self._called(
                f"EC2 does not tag the Capacity Reservation {reservation_id}",
                lambda: self.ec2.create_tags(Resources=[reservation_id], Tags=_tag_list(tags)),
            )

    def _create(self, request: Request) -> str:
        wanted = request.wanted
        sentence = (
            f"EC2 does not reserve {wanted.count} {wanted.fixed.get('InstanceType')} in "
            f"{wanted.fixed.get('AvailabilityZone')}"
        )
        answer = self._called(
            sentence,
            lambda: self.ec2.create_capacity_reservation(
                # Each delivery of a request has its id: EC2 makes one reservation for all of them.
                ClientToken=request.id,
                InstanceCount=wanted.count,
                TagSpecifications=[
                    {
                        "ResourceType": "capacity-reservation",
                        "Tags": _tag_list({**wanted.tags, **request.own_tags}),
                    }
                ],
                **wanted.fixed,  # type: ignore[arg-type]  # texts of the template, which EC2 checks
                **_end_settings(wanted.end),
            ),
        )
        reservation: Mapping[str, Any] = answer["CapacityReservation"]
        reservation_id = str(reservation["CapacityReservationId"])
        for _ in range(_PENDING_POLLS):
            if reservation["State"] != "pending":
                break
            self.pause(_SECONDS_BETWEEN_POLLS)
            reservation = self._described(reservation_id) or reservation
        if reservation["State"] not in _ALIVE:
            raise RefusedError(f"{sentence}: the reservation {reservation_id} is {reservation['State']}")
        return reservation_id

    def _delete(self, request: Request) -> None:
        if request.reservation_id is not None:
            self._cancel(request.reservation_id)
            return
        # CloudFormation has no id of a reservation whose answer was lost.
        for one in self._own(request):
            self._cancel(one["CapacityReservationId"])

    def _cancel(self, reservation_id: str) -> None:
        found = self._described(reservation_id)
        if found is None or found["State"] not in _ALIVE:
            return
        try:
            self._called(
                f"EC2 does not cancel the Capacity Reservation {reservation_id}, which bills until it is cancelled",
                lambda: self.ec2.cancel_capacity_reservation(CapacityReservationId=reservation_id),
            )
        except RefusedError:
            found = self._described(reservation_id)
            if found is not None and found["State"] in _ALIVE:
                raise

    def _adopted(self, request: Request) -> str | None:
        """Return a reservation of this custom resource that a lost answer or a rollback left; None: there is none."""
        for found in self._own(request):
            if _is_alike(found, request.wanted) and found["CapacityReservationId"] != request.physical_id:
                # A rollback takes a reservation as it is, which the power function may have lowered.
                count = found["TotalInstanceCount"] if request.kind == "Create" else request.wanted.count
                self._modify(found, request, count_before=count)
                return str(found["CapacityReservationId"])
        return None

    def _own(self, request: Request) -> list[Mapping[str, Any]]:
        """Return the reservations of the custom resource that have not ended."""
        # DescribeCapacityReservations has no filter for tags.
        pages = self.ec2.get_paginator("describe_capacity_reservations").paginate(
            Filters=[
                {"Name": "state", "Values": list(_ALIVE)},
                {"Name": "instance-match-criteria", "Values": ["targeted"]},
            ]
        )
        found: list[Mapping[str, Any]] = self._called(
            "EC2 does not list the Capacity Reservations of the account",
            lambda: [each for page in pages for each in page["CapacityReservations"]],
        )
        return [each for each in found if request.own_tags.items() <= _tags_of(each).items()]

    def _described(self, reservation_id: str) -> Mapping[str, Any] | None:
        try:
            answer = self.ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
        except AWS_ERRORS as error:
            if error_code(error).startswith(_ABSENT):
                return None
            raise RefusedError(
                f"EC2 does not describe the Capacity Reservation {reservation_id}: {error_text(error)}"
            ) from error
        return next(iter(answer["CapacityReservations"]), None)

    def _called(self, sentence: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the call returns
        try:
            return call()
        except AWS_ERRORS as error:
            advice = ""
            if error_code(error) in _NO_CAPACITY:
                advice = "; deploy again later, lower count, or buy the nodes in another way"
            raise RefusedError(f"{sentence}: {error_text(error)}{advice}") from error


def _is_alike(found: Mapping[str, Any], wanted: Wanted) -> bool:
    """Tell whether a reservation has the settings that EC2 cannot change."""
    return all(found.get(name) == wanted.fixed.get(name) for name in FIXED)


def _end_of(found: Mapping[str, Any]) -> datetime | None:
    end: datetime | None = found.get("EndDate")
    return None if end is None else end.astimezone(UTC).replace(microsecond=0)


def _end_settings(end: datetime | None) -> dict[str, Any]:
    return {"EndDateType": "unlimited"} if end is None else {"EndDateType": "limited", "EndDate": end}


def _tags_of(found: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}


def _tag_list(tags: Mapping[str, str]) -> list[Any]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
