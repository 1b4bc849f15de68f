"""Makes, changes and cancels the reservation of one custom resource, so that none is billed that nobody knows.

Whatever is made carries the stack's id and the resource's logical id as tags. CloudFormation knows a reservation from
the answer only; one whose answer was lost is found by these tags, and used or cancelled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from cluster_common.errors import error_text
from cluster_common.reservations import ACTIVE, ENDED, Reservation
from cluster_contract.tags import TERMS_TAG
from cluster_contract.times import time_text
from cluster_reservations.api import ReservationApi
from cluster_reservations.refusals import RefusedError, explain, is_certain
from cluster_reservations.requests import Request, Terms

NO_RESERVATION = "no-reservation"
"""What CloudFormation is told to call the resource where EC2 refused to make one."""

UNKNOWN_RESERVATION = "unknown-reservation"
"""What CloudFormation is told to call the resource where one may have been made: its deletion looks for it."""

_SOONEST_END = timedelta(minutes=5)
"""How far ahead an end is that takes the place of one in the past: EC2 takes none in the past."""


class Keeper:
    """Carries out one request.

    Attributes:
        named: What CloudFormation should call the resource if the request is refused.
    """

    def __init__(
        self, request: Request, api: ReservationApi, logger: Logger, *, clock: Callable[[], datetime]
    ) -> None:
        """Take a request.

        Args:
            request: What CloudFormation asks for.
            api: What calls AWS for the request.
            logger: Where it is written what is done.
            clock: Returns the time.
        """
        self._request, self._terms = request, request.terms
        self._api, self._logger, self._clock = api, logger, clock
        self.named: str = request.physical_id or UNKNOWN_RESERVATION

    def carry_out(self) -> str:
        """Carry the request out, and return what CloudFormation should call the resource.

        Raises:
            RefusedError: It cannot be met.
        """
        work: Mapping[str, Callable[[], str]] = {
            "Create": self._obtain,
            "Update": self._update,
            "Delete": self._delete,
        }
        if self._request.problem and self._request.kind != "Delete":
            raise RefusedError(self._request.problem)
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
        self._refuse_unawaited()
        reservation = self._api.settled(known)
        if reservation is not None:
            self._refuse_superseded(reservation)
        self._cancel_strays(self._api.find(), known)
        if reservation is None or reservation.state in ENDED:
            self._refuse_to_restore(reservation, before)
        else:
            self._fit(reservation, before)
        return known

    def _obtain(self) -> str:
        """Return a reservation that fits: one that was made before, as its tags say, or a new one."""
        made = self._api.find()
        for one in made:
            self._refuse_superseded(one)
        fitting = [one for one in made if one.tags.get(TERMS_TAG) == self._terms.digest]
        fitting.sort(key=lambda one: (one.id != self._request.reservation_id, one.id))
        chosen = fitting[0].id if fitting else ""
        self._refuse_unawaited()
        self._cancel_strays(made, chosen)
        if not chosen:
            return self._make()
        self._name(chosen)
        self._logger.info("a reservation that was made before is used", extra={"reservation": chosen})
        self._fit(self._reserved(chosen), None)
        return chosen

    def _make(self) -> str:
        self._refuse_past(self._terms.ends)
        terms = self._terms
        try:
            named, state = self._api.make({**terms.fixed, "InstanceCount": terms.instances, **_end(terms.ends)})
        except ClientError as error:
            if not is_certain(error):
                raise
            self._name(NO_RESERVATION)
            raise explain(error, terms, f"reserve {terms}") from error
        self._name(named)
        if state != ACTIVE:
            self._reserved(named)
        return named

    def _reserved(self, named: str) -> Reservation:
        """Return a reservation that was made, once it is active."""
        reservation = self._api.settled(named)
        state = "not shown by EC2" if reservation is None else reservation.state
        if reservation is None or state != ACTIVE:
            raise RefusedError(
                f"node group {self._terms.node_group}: EC2 did not reserve {self._terms}: capacity reservation "
                f"{named} is {state}"
            )
        return reservation

    def _fit(self, reservation: Reservation, before: Terms | None) -> None:
        """Change what differs of a reservation: of what the template changed, or of all where that is not known."""
        terms = self._terms
        self._api.retag(reservation, before.tags if before else ())
        changes: dict[str, Any] = {}
        instances = _instances(terms, before, reservation)
        if instances is not None:
            changes["InstanceCount"] = instances
        if terms.ends != reservation.ends and (before is None or terms.ends != before.ends):
            changes |= _end(self._next_end(terms.ends))
        if not changes:
            return
        try:
            self._api.change(reservation.id, changes)
        except ClientError as error:
            if not is_certain(error):
                raise
            what = ", ".join(f"{name} {value}" for name, value in sorted(changes.items()))
            raise explain(error, terms, f"change capacity reservation {reservation.id} to {what}") from error

    def _next_end(self, ends: datetime | None) -> datetime | None:
        """Return the end to set: of a rollback the soonest one where the end that it restores has passed."""
        soonest = self._clock() + _SOONEST_END
        if ends is None or ends >= soonest:
            return ends
        if not self._api.rolls_back():
            self._refuse_past(ends)
            return ends
        self._logger.warning(
            "the rollback restores an end that has passed: the reservation ends soon instead",
            extra={"restored": time_text(ends), "end": time_text(soonest)},
        )
        return soonest

    def _refuse_past(self, ends: datetime | None) -> None:
        if ends is not None and ends <= self._clock():
            raise RefusedError(
                f"node group {self._terms.node_group}: the end of its capacity reservation, {time_text(ends)}, is in "
                "the past: give a later end in the cluster's file, and deploy again"
            )

    def _refuse_to_restore(self, reservation: Reservation | None, before: Terms) -> None:
        """Refuse another end or a larger count for a reservation that has ended; nothing else is left to change."""
        known = before.ends if reservation is None else reservation.ends
        asks_more = self._terms.instances > before.instances or self._terms.ends not in (known, before.ends)
        if not asks_more or self._api.rolls_back():
            self._logger.warning("the reservation has ended: nothing is changed")
            return
        state = "cannot be found" if reservation is None else f"has ended ({reservation.state})"
        raise RefusedError(
            f"node group {self._terms.node_group}: its capacity reservation {self._request.physical_id} {state}, and "
            "cannot be restored. Give the node group another name and a new end in the cluster's file, and deploy, "
            "which terminates its nodes"
        )

    def _refuse_superseded(self, reservation: Reservation) -> None:
        """Change nothing for a request that Lambda delivers again after a newer one."""
        if self._request.is_superseded(reservation.tags):
            raise RefusedError(
                f"node group {self._terms.node_group}: nothing was changed, because a newer request changed capacity "
                f"reservation {reservation.id}"
            )

    def _name(self, named: str) -> None:
        if self._request.kind == "Create":
            self.named = named

    def _refuse_unawaited(self) -> None:
        """Change nothing that CloudFormation does not wait for: the request may be late, and its resource deleted."""
        detail = self._api.resource()
        status = str(detail.get("ResourceStatus", "gone"))
        waits = status.endswith("_IN_PROGRESS") and not status.startswith("DELETE")
        if not waits or (self._request.kind == "Update" and not self._is_current(detail)):
            raise RefusedError(
                f"node group {self._terms.node_group}: nothing was changed, because CloudFormation no longer waits "
                f"for this request (the resource is {status})"
            )

    def _delete(self) -> str:
        known, others = self._request.reservation_id, self._others()
        if others and not self._is_deleted(self._api.resource()):
            # What is deleted was replaced by one of these, or the resource was made again.
            others = []
        self._cancel((*filter(None, [known]), *others))
        return self._request.physical_id or NO_RESERVATION

    def _others(self) -> list[str]:
        """Return the other reservations of the resource.

        Where CloudFormation has no answer, one may have been made a moment ago that is not listed yet.
        """
        known, is_certain = self._request.reservation_id, self._request.physical_id == NO_RESERVATION
        found = self._api.find() if known is not None or is_certain else self._api.find_recent()
        return [one.id for one in found if one.id != known]

    def _cancel_strays(self, made: Sequence[Reservation], chosen: str) -> None:
        """Cancel what was made for the resource and is known to nobody."""
        strays = [one.id for one in made if one.id not in (chosen, self._request.reservation_id)]
        if strays and self._is_current(self._api.resource()):
            self._cancel(strays)

    def _cancel(self, ids: Iterable[str]) -> None:
        failures: list[str] = []
        for named in ids:
            try:
                failures += self._api.cancel(named)
            except RefusedError as refused:
                failures.append(str(refused))
        if failures:
            raise RefusedError("; ".join(failures))

    def _is_deleted(self, detail: Mapping[str, Any]) -> bool:
        """Say whether CloudFormation deletes the resource itself, or has deleted it."""
        return not detail or (str(detail.get("ResourceStatus")).startswith("DELETE") and self._is_current(detail))

    def _is_current(self, detail: Mapping[str, Any]) -> bool:
        """Say whether the request is about what CloudFormation has now, and not about what was before it."""
        return detail.get("PhysicalResourceId") in (None, "", self._request.physical_id)


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
