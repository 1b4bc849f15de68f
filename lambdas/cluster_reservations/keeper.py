"""Makes, changes and cancels the reservation of one custom resource, so that none is billed that nobody knows.

Whatever is made carries the stack's id and the resource's logical id as tags. CloudFormation knows a reservation from
the answer only; one whose answer was lost is found by these tags, and used or cancelled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.clients import Clients
from cluster_common.errors import error_code, error_text
from cluster_common.reservations import ENDED, PENDING, Reservation, find_reservations, read_reservations
from cluster_contract.tags import TERMS_TAG
from cluster_contract.times import time_text
from cluster_reservations.refusals import RefusedError, explain, is_certain
from cluster_reservations.requests import Request, Terms

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import TagTypeDef

NO_RESERVATION = "no-reservation"
"""What CloudFormation is told to call the resource where nothing was made."""

_POLL_SECONDS, _POLLS = 5, 12
_LOOK_SECONDS, _LOOKS = 10, 3


class NotSettledError(Exception):
    """Say that a reservation is neither there nor refused yet; Lambda delivers the request again."""


class Keeper:
    """Carries out one request."""

    def __init__(self, request: Request, clients: Clients, logger: Logger, *, now: datetime) -> None:
        """Take a request.

        Args:
            request: What CloudFormation asks for.
            clients: What the function talks to.
            logger: Where it is written what is done.
            now: The time.
        """
        self._request, self._terms = request, request.terms
        self._clients, self._ec2, self._logger, self._now = clients, clients.ec2(), logger, now

    def carry_out(self) -> str:
        """Carry the request out, and return what CloudFormation should call the resource.

        Raises:
            RefusedError: It cannot be met.
            NotSettledError: It is not certain yet.
        """
        work: Mapping[str, Callable[[], str]] = {
            "Create": self._obtain,
            "Update": self._update,
            "Delete": self._delete,
        }
        try:
            return work[self._request.kind]()
        except ClientError as error:
            if not is_certain(error):
                raise
            raise RefusedError(f"node group {self._terms.node_group}: AWS says: {error_text(error)}") from error

    def _update(self) -> str:
        known, before = self._request.reservation_id, self._request.before
        if known is None or before is None or before.fixed != self._terms.fixed:
            return self._obtain()
        self._cancel_strays(find_reservations(self._ec2, self._request.identity), known)
        reservation = self._settled(known)
        if reservation is None or reservation.state in ENDED:
            self._refuse_to_restore(reservation, before)
        else:
            self._fit(reservation, before)
        return known

    def _obtain(self) -> str:
        """Return a reservation that fits: one that was made before, as its tags say, or a new one."""
        made = find_reservations(self._ec2, self._request.identity)
        fitting = [one for one in made if one.tags.get(TERMS_TAG) == self._terms.digest]
        fitting.sort(key=lambda one: (one.id != self._request.reservation_id, one.id))
        chosen = fitting[0].id if fitting else ""
        self._cancel_strays(made, chosen)
        if not chosen:
            return self._make()
        self._logger.info("a reservation that was made before is used", extra={"reservation": chosen})
        reservation = self._settled(chosen)
        if reservation is None or reservation.state in ENDED:
            raise NotSettledError(f"{chosen} ended while it was looked at")
        self._fit(reservation, None)
        return chosen

    def _make(self) -> str:
        self._refuse_past(self._terms.ends)
        self._refuse_unawaited()
        terms = self._terms
        parameters: dict[str, Any] = {
            **terms.fixed,
            "InstanceCount": terms.instances,
            **_end(terms.ends),
            "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": _tags(self._request.tags)}],
            # However often Lambda delivers the request, and whatever becomes of an answer, one is made.
            # https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
            "ClientToken": self._request.id,
        }
        try:
            made = self._ec2.create_capacity_reservation(**parameters)["CapacityReservation"]
        except ClientError as error:
            if not is_certain(error):
                raise
            raise explain(error, terms, f"reserve {terms}") from error
        named, state = str(made["CapacityReservationId"]), str(made["State"])
        self._logger.info("a reservation was made", extra={"reservation": named, "state": state})
        if state == PENDING:
            settled = self._settled(named, made=True)
            state = "failed" if settled is None else settled.state
        if state in ENDED:
            raise RefusedError(
                f"node group {terms.node_group}: EC2 did not reserve {terms}: capacity reservation {named} is {state}"
            )
        return named

    def _fit(self, reservation: Reservation, before: Terms | None) -> None:
        """Change what differs of a reservation: of what the template changed, or of all where that is not known."""
        terms = self._terms
        wrong = {key: value for key, value in self._request.tags.items() if reservation.tags.get(key) != value}
        if wrong:
            self._ec2.create_tags(Resources=[reservation.id], Tags=_tags(wrong))
        changes: dict[str, Any] = {}
        instances = _instances(terms, before, reservation)
        if instances is not None:
            changes["InstanceCount"] = instances
        if terms.ends != (reservation.ends if before is None else before.ends):
            self._refuse_past(terms.ends)
            changes |= _end(terms.ends)
        if not changes:
            return
        try:
            self._ec2.modify_capacity_reservation(CapacityReservationId=reservation.id, **changes)
        except ClientError as error:
            if not is_certain(error):
                raise
            what = ", ".join(f"{name} {value}" for name, value in sorted(changes.items()))
            raise explain(error, terms, f"change capacity reservation {reservation.id} to {what}") from error
        self._logger.info("a reservation was changed", extra={"reservation": reservation.id, **changes})

    def _refuse_past(self, ends: datetime | None) -> None:
        if ends is not None and ends <= self._now:
            raise RefusedError(
                f"node group {self._terms.node_group}: the end of its capacity reservation, {time_text(ends)}, is in "
                "the past: give a later end in the cluster's file, and deploy again"
            )

    def _refuse_to_restore(self, reservation: Reservation | None, before: Terms) -> None:
        """Refuse another end for a reservation that has ended; of all else nothing is left to be changed."""
        known = before.ends if reservation is None else reservation.ends
        if self._terms.ends in (known, before.ends):
            self._logger.warning("the reservation has ended: nothing is changed")
            return
        state = "cannot be found" if reservation is None else f"has ended ({reservation.state})"
        raise RefusedError(
            f"node group {self._terms.node_group}: its capacity reservation {self._request.physical_id} {state}, and "
            "cannot be restored. Give the node group another name and a new end in the cluster's file, and deploy, "
            "which terminates its nodes"
        )

    def _refuse_unawaited(self) -> None:
        """Buy nothing that CloudFormation does not wait for: the request may be late, and its resource deleted."""
        detail = self._detail()
        status = str(detail.get("ResourceStatus", "gone"))
        waits = status.endswith("_IN_PROGRESS") and not status.startswith("DELETE")
        if not waits or (self._request.kind == "Update" and not self._is_current(detail)):
            raise RefusedError(
                f"node group {self._terms.node_group}: nothing was reserved, because CloudFormation no longer waits "
                f"for this request (the resource is {status})"
            )

    def _delete(self) -> str:
        known, others = self._request.reservation_id, self._others()
        if others and not self._is_current(self._detail()):
            # What is deleted was replaced, by one of these.
            others = []
        failures = [text for one in (*filter(None, [known]), *others) for text in self._cancel(one)]
        if failures:
            raise RefusedError("; ".join(failures))
        return self._request.physical_id or NO_RESERVATION

    def _others(self) -> list[str]:
        """Return the other reservations of the resource.

        Where CloudFormation has no answer, one may have been made a moment ago that is not listed yet.
        https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
        """
        known, is_certain = self._request.reservation_id, self._request.physical_id == NO_RESERVATION
        looks = 1 if known is not None or is_certain else _LOOKS
        for look in range(looks):
            if look:
                self._clients.pause(_LOOK_SECONDS)
            found = find_reservations(self._ec2, self._request.identity)
            if found:
                return [one.id for one in found if one.id != known]
        return []

    def _cancel_strays(self, made: Sequence[Reservation], chosen: str) -> None:
        """Cancel what was made for the resource and is known to nobody."""
        strays = [one.id for one in made if one.id not in (chosen, self._request.reservation_id)]
        if not strays or not self._is_current(self._detail()):
            return
        failures = [text for one in strays for text in self._cancel(one)]
        if failures:
            raise RefusedError("; ".join(failures))

    def _cancel(self, named: str) -> Iterable[str]:
        """Cancel a reservation unless it has ended; yield why it could not be."""
        reservation = self._settled(named)
        if reservation is None or reservation.state in ENDED:
            return
        try:
            self._ec2.cancel_capacity_reservation(CapacityReservationId=named)
        except ClientError as error:
            if not is_certain(error):
                raise
            after = self._settled(named)
            if after is not None and after.state not in ENDED:
                yield (
                    f"capacity reservation {named} could not be cancelled and is billed. Correct the cause and "
                    f"delete again, or run: aws ec2 cancel-capacity-reservation --capacity-reservation-id {named}. "
                    f"AWS says: {error_text(error)}"
                )
                return
        self._logger.info("a reservation was cancelled", extra={"reservation": named})

    def _settled(self, named: str, *, made: bool = False) -> Reservation | None:
        """Return a reservation once it is no longer pending. None: there is none.

        Args:
            named: Its id.
            made: Whether it was made just now, and may not be described yet. Default: - not.
        """
        for poll in range(_POLLS):
            if poll or made:
                self._clients.pause(_POLL_SECONDS)
            found = read_reservations(self._ec2, [named]).found.get(named)
            if found.state != PENDING if found else not made:
                return found
        raise NotSettledError(f"capacity reservation {named} is pending; CloudFormation's request is delivered again")

    def _detail(self) -> Mapping[str, Any]:
        """Return what CloudFormation knows of the resource; nothing if it has left the template."""
        request = self._request
        try:
            answer = self._clients.cloudformation().describe_stack_resource(
                StackName=request.stack, LogicalResourceId=request.resource
            )
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            return {}
        detail: Mapping[str, Any] = answer["StackResourceDetail"]
        return detail

    def _is_current(self, detail: Mapping[str, Any]) -> bool:
        """Say whether the request is about what CloudFormation has now, and not about what was before it."""
        return detail.get("PhysicalResourceId") in (None, "", self._request.physical_id)


def _tags(tags: Mapping[str, str]) -> "list[TagTypeDef]":
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def _end(ends: datetime | None) -> dict[str, Any]:
    return {"EndDateType": "unlimited"} if ends is None else {"EndDateType": "limited", "EndDate": ends}


def _instances(terms: Terms, before: Terms | None, reservation: Reservation) -> int | None:
    """Return for how many instances a reservation should hold capacity. None: for as many as it does.

    The power function raises a reservation that it has lowered before it starts the node group: until then, nothing
    more is bought.
    """
    held, wanted = reservation.instances, terms.instances
    if before is not None and (before.instances, before.releases) == (wanted, terms.releases):
        return None
    full = wanted if before is None else before.instances
    if terms.releases and held < full:
        return wanted if held > wanted else None
    return None if held == wanted else wanted
