"""What a test steers the local AWS with: faults, a record of calls, and things that only time would bring."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict, Unpack


@dataclass(frozen=True)
class RecordedCall:
    """A call that the local AWS got.

    Attributes:
        service: The service's name in boto3, such as "ec2".
        operation: The operation, such as "StopInstances".
        parameters: Its parameters as boto3 spells them; times are ISO 8601 text. Empty for Amazon S3.
        status: The HTTP status of the answer; None if the answer was lost.
    """

    service: str
    operation: str
    parameters: Mapping[str, Any]
    status: int | None


class Aim(TypedDict, total=False):
    """Which requests of an operation a fault strikes.

    Attributes:
        times: How many; None is all until `clear_faults`. Default: 1
        match: Only those whose path or decoded body has this text. Default: - any
        after: How many such requests pass first. Default: 0
        service: The service's name in boto3, for an operation that two have ("DeleteTags"). Default: - any
    """

    times: int | None
    match: str
    after: int
    service: str


class Steering(ABC):
    """The part of `LocalAws` that a test of something's behaviour under faults needs."""

    @property
    @abstractmethod
    def _place(self) -> Mapping[str, str]:
        """The account and the region."""

    @abstractmethod
    def _control(self, name: str, body: Mapping[str, Any]) -> Any:
        """Make a control request and return its answer."""

    def fail(
        self,
        operation: str,
        code: str,
        message: str = "It fails on order.",
        *,
        status: int | None = None,
        **aim: Unpack[Aim],
    ) -> None:
        """Refuse the next requests of an operation with an error of the service, and carry nothing out.

        Args:
            operation: Such as "StopInstances" or "Invoke".
            code: The error's code, such as "RequestLimitExceeded".
            message: The error's message.
            status: The HTTP status. Default: - what the service's model says of the error, or else 400. EC2
                says 503 with RequestLimitExceeded and 500 with InsufficientInstanceCapacity.
            **aim: Which requests of the operation. Default: - the next one
        """
        self._control("fault", {"operation": operation, "code": code, "message": message, "status": status, **aim})

    def lose(self, operation: str, lost: Literal["request", "answer"] = "answer", **aim: Unpack[Aim]) -> None:
        """Close the connections of the next requests of an operation without an answer: a ConnectionClosedError.

        Args:
            operation: As for `fail`.
            lost: "answer" if the request is carried out all the same, "request" if it is not. Default: answer
            **aim: As for `fail`.
        """
        self._control("fault", {"operation": operation, "lost": lost, **aim})

    def clear_faults(self) -> list[str]:
        """Take back all faults and the statuses of metrics.

        Returns:
            The operations of the faults that struck nothing.
        """
        idle: list[str] = self._control("clear-faults", {})["idle"]
        return idle

    def set_metric_status(
        self, status: Literal["Complete", "PartialData", "InternalError", "Forbidden"], *matches: str
    ) -> None:
        """Let GetMetricData answer queries of some metrics with a status, until `clear_faults`.

        Args:
            status: PartialData leaves out the newer half of the points, InternalError and Forbidden all of them.
            matches: A dimension's value (an instance id), a metric's name or a namespace; each ends what was said
                of it before.
        """
        self._control("metric-status", {"status": status, "matches": matches})

    def calls(self, *operations: str) -> list[RecordedCall]:
        """List the calls since `forget_calls`, in the order in which they came, of all callers.

        Args:
            operations: The operations to list. Default: - all
        """
        listed = (RecordedCall(**call) for call in self._control("calls", {})["calls"])
        return [call for call in listed if not operations or call.operation in operations]

    def forget_calls(self) -> None:
        """Empty the record of calls."""
        self._control("forget-calls", {})

    def set_launch_time(self, launch_time: datetime, *instance_ids: str) -> None:
        """Let instances have been launched at another time.

        Args:
            launch_time: When; with a time zone.
            instance_ids: Which.
        """
        request = {"launch_time": launch_time.isoformat(), "instance_ids": instance_ids}
        self._control("launch-time", {**self._place, **request})

    def add_instance_metric(self, metric: str, instance_id: str, points: Iterable[tuple[datetime, float]]) -> None:
        """Let EC2 have published a metric of an instance, which PutMetricData cannot.

        Args:
            metric: Such as "CPUUtilization".
            instance_id: The instance's id.
            points: Times and values; each time with a zone.
        """
        told = [(moment.isoformat(), value) for moment, value in points]
        request = {"metric": metric, "instance_id": instance_id, "points": told}
        self._control("instance-metric", {**self._place, **request})

    def set_clock(self, later: timedelta) -> None:
        """Let functions that are invoked from now on believe that it is later; the services' own clock stays.

        Args:
            later: How much later than now; `timedelta()` for the right time.
        """
        self._control("clock", {"seconds": later.total_seconds()})

    def set_spot_price(self, instance_type: str, availability_zone: str, usd: float) -> None:
        """Let the price of Spot Instances of a type change in a zone, from now on; there are no others.

        Args:
            instance_type: The type, such as "p5.48xlarge".
            availability_zone: The zone.
            usd: US dollars an hour.
        """
        request = {"instance_type": instance_type, "availability_zone": availability_zone, "usd": usd}
        self._control("spot-price", {**self._place, **request})

    def set_product_price(
        self, service_code: str, attributes: Mapping[str, str], usd: float, unit: str = "Hrs"
    ) -> None:
        """Put a product on the Price List, or give one with the same attributes another price; there are no others.

        Args:
            service_code: Such as "AmazonEC2".
            attributes: What GetProducts filters by, such as "instanceType", "regionCode" and "operatingSystem".
            usd: US dollars for a unit.
            unit: The unit. Default: Hrs
        """
        request = {"service_code": service_code, "attributes": attributes, "usd": usd, "unit": unit}
        self._control("product-price", request)

    def suspend_launching(self, auto_scaling_group: str) -> None:
        """Let Auto Scaling suspend the process Launch of a group, as after a day of failed launches.

        Args:
            auto_scaling_group: The group's name.
        """
        self._control("suspend-launching", {**self._place, "group": auto_scaling_group})
