"""The calls to EC2 and CloudFormation, which allow for what EC2 and IAM do not show yet.

EC2 may not find a reservation, or allow an action, seconds after the reservation or the role was made:
https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.clients import Clients
from cluster_common.errors import error_code, error_text
from cluster_common.reservations import ENDED, PENDING, Reservation, find_reservations, read_reservations
from cluster_reservations.refusals import RefusedError, cancel_command, is_certain
from cluster_reservations.requests import Request

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import TagTypeDef

T = TypeVar("T")

_PAUSES = (1, 2, 4, 8, 15, 30)
"""The seconds between calls whose answer may be late: together one minute."""

_POLL_SECONDS = 5
_ANSWER_SECONDS = 90
"""The time that one more call to AWS and the answer to CloudFormation take at most."""

_NOT_FOUND = "InvalidCapacityReservationId.NotFound"
_LATE = re.compile(
    rf"AccessDenied\w*|UnauthorizedOperation|IncorrectState|InvalidPlacementGroup\w*\.\w+|{re.escape(_NOT_FOUND)}"
)
"""The codes of what may be correct a moment later."""


class ReservationApi:
    """Calls EC2 and CloudFormation for one request."""

    def __init__(self, request: Request, clients: Clients, logger: Logger, *, remaining: Callable[[], float]) -> None:
        """Take a request.

        Args:
            request: CloudFormation's request.
            clients: The clients of AWS.
            logger: The log.
            remaining: Returns the seconds until Lambda ends the function.
        """
        self._request, self._remaining = request, remaining
        self._clients, self._ec2, self._logger = clients, clients.ec2(), logger

    def find(self) -> list[Reservation]:
        """Return the reservations of the resource that are active or pending.

        Others may write the tags too, and cannot put a reservation that is there into a placement group of the stack.
        """
        found = self._ask(find_reservations, self._ec2, self._request.identity)
        return [one for one in found if self._request.has_place(one.placement_group)]

    def find_recent(self) -> list[Reservation]:
        """Return the same, and look for a minute where there is none: one may have been made a moment ago."""
        for pause in (*_PAUSES, None):
            found = self.find()
            if found or pause is None or not self._wait(pause):
                break
        return found

    def settled(self, named: str, *, patient: bool = True) -> Reservation | None:
        """Return a reservation that is not pending. None: EC2 has not found it for a minute.

        Args:
            named: The reservation's id.
            patient: Whether one that EC2 does not find is looked for again. Default: - it is.

        Raises:
            RefusedError: It is pending until the function has to answer.
        """
        pauses = iter(_PAUSES if patient else ())
        while True:
            found = self._ask(read_reservations, self._ec2, [named]).found.get(named)
            if found is not None and found.state != PENDING:
                return found
            pause = next(pauses, None) if found is None else _POLL_SECONDS
            if pause is None:
                return None
            if not self._wait(pause):
                raise self._unsettled(named, "not shown by EC2" if found is None else f"still {PENDING}")

    def make(self, parameters: Mapping[str, Any]) -> tuple[str, str]:
        """Make a reservation, and return its id and its state."""
        made = self._ask(
            self._ec2.create_capacity_reservation,
            **parameters,
            TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": _tags(self._request.tags({}))}],
            # However often Lambda delivers the request, and whatever becomes of an answer, one is made.
            # https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
            ClientToken=self._request.id,
        )["CapacityReservation"]
        named, state = str(made["CapacityReservationId"]), str(made["State"])
        self._logger.info("a reservation was made", extra={"reservation": named, "state": state})
        return named, state

    def change(self, named: str, changes: Mapping[str, Any]) -> None:
        """Change a reservation's count or end."""
        self._ask(self._ec2.modify_capacity_reservation, CapacityReservationId=named, **changes)
        self._logger.info("a reservation was changed", extra={"reservation": named, **changes})

    def retag(self, reservation: Reservation, stale: Iterable[str]) -> None:
        """Write the tags of the request on a reservation, and remove others.

        Args:
            reservation: The reservation.
            stale: The keys of tags that the template had before and has no more.
        """
        there = reservation.tags
        wanted = self._request.tags(there)
        if wrong := {key: value for key, value in wanted.items() if there.get(key) != value}:
            self._ask(self._ec2.create_tags, Resources=[reservation.id], Tags=_tags(wrong))
        if gone := sorted(key for key in stale if key in there and key not in wanted):
            self._ask(self._ec2.delete_tags, Resources=[reservation.id], Tags=[{"Key": key} for key in gone])

    def cancel(self, named: str) -> Iterable[str]:
        """Cancel a reservation unless it has ended; yield why it could not be.

        One that EC2 does not show is cancelled all the same: it may have been made a moment ago.
        """
        failure = ""
        # EC2 cancels no pending one: the second time it is pending no more.
        for patient in (False, True):
            shown = self.settled(named, patient=patient)
            if patient if shown is None else shown.state in ENDED:
                return
            try:
                self._ask(self._ec2.cancel_capacity_reservation, CapacityReservationId=named)
            except ClientError as error:
                if not is_certain(error):
                    raise
                if error_code(error) == _NOT_FOUND:
                    return
                failure = error_text(error)
            else:
                self._logger.info("a reservation was cancelled", extra={"reservation": named})
                return
        yield (
            f"capacity reservation {named} could not be cancelled and is billed. Correct the cause and delete again, "
            f"or {cancel_command(named)}. AWS says: {failure}"
        )

    def resource(self) -> Mapping[str, Any]:
        """Return what CloudFormation knows of the resource; nothing if it has left the template."""
        request = self._request
        try:
            answer = self._ask(
                self._clients.cloudformation().describe_stack_resource,
                StackName=request.stack,
                LogicalResourceId=request.resource,
            )
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            return {}
        detail: Mapping[str, Any] = answer["StackResourceDetail"]
        return detail

    def rolls_back(self) -> bool:
        """Say whether CloudFormation restores what was before a deployment."""
        stacks = self._ask(self._clients.cloudformation().describe_stacks, StackName=self._request.stack)["Stacks"]
        return "ROLLBACK" in str(stacks[0]["StackStatus"])

    def _unsettled(self, named: str, state: str) -> RefusedError:
        remedy = "Delete again, or" if self._request.kind == "Delete" else "The rollback cancels it. If it does not,"
        return RefusedError(
            f"node group {self._request.terms.node_group}: capacity reservation {named} is {state}, and is billed "
            f"when it is active. {remedy} {cancel_command(named)}"
        )

    def _ask(self, call: Callable[..., T], *arguments: object, **parameters: object) -> T:
        """Call AWS, again for a minute where the answer may be late."""
        for pause in _PAUSES:
            try:
                return call(*arguments, **parameters)
            except ClientError as error:
                if not _LATE.fullmatch(error_code(error)) or not self._wait(pause):
                    raise
        return call(*arguments, **parameters)

    def _wait(self, seconds: float) -> bool:
        """Wait, and return whether there was time to."""
        if self._remaining() < seconds + _ANSWER_SECONDS:
            return False
        self._clients.pause(seconds)
        return True


def _tags(tags: Mapping[str, str]) -> "list[TagTypeDef]":
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
