"""What a test steers the local AWS with: faults, a record of calls, and things that only time would bring."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
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
            lost: "answer" if the operation is done all the same, "request" if it is not. Default: answer
            **aim: As for `fail`.
        """
        self._control("fault", {"operation": operation, "lost": lost, **aim})

    def hide_new_reservations(self, requests: int) -> None:
        """Let EC2 not find Capacity Reservations that are made from now on, until `clear_faults`.

        Args:
            requests: For how many requests that list, describe, change, tag or cancel each of them.
        """
        self._control("hidden-reservations", {"requests": requests})

    def clear_faults(self) -> list[str]:
        """Take back all faults and the statuses of metrics, and show all Capacity Reservations.

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

    def instance_credentials(self, role_name: str, instance_id: str) -> dict[str, str]:
        """Return credentials of an instance's role, which EC2 gives to the instance.

        Args:
            role_name: The role's name.
            instance_id: The instance's id, which names the session.
        """
        request = {**self._place, "role": role_name, "instance_id": instance_id}
        return dict(self._control("instance-credentials", request))

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

    def set_quota(self, service_code: str, quota_code: str, value: float) -> None:
        """Let AWS grant another value of a quota.

        Args:
            service_code: Such as "ec2".
            quota_code: Such as "L-417A185B".
            value: The value.
        """
        self._control("quota", {"service_code": service_code, "quota_code": quota_code, "value": value})

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

    def keep_busy(self, *instance_ids: str, busy: bool = True) -> None:
        """Let jobs run on nodes: a lifecycle hook of a group that terminates one then holds it; or let them end.

        Args:
            instance_ids: The nodes.
            busy: Whether jobs run. Default: True
        """
        self._control("jobs", {"instance_ids": instance_ids, "busy": busy})

    def announce(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Let a service of AWS send an event, which PutEvents cannot; it is handled when this returns.

        Args:
            source: The service, such as "aws.ec2".
            detail_type: Such as "EC2 Spot Instance Interruption Warning".
            detail: The detail.
        """
        request = {"source": source, "detail_type": detail_type, "detail": detail}
        self._control("event", {**self._place, **request})

    def suspend_launching(self, auto_scaling_group: str) -> None:
        """Let Auto Scaling suspend the process Launch of a group, as after a day of failed launches.

        Args:
            auto_scaling_group: The group's name.
        """
        self._control("suspend-launching", {**self._place, "group": auto_scaling_group})

    def put_objects(self, bucket: str, prefix: str, count: int, text: str = "") -> None:
        """Put many small objects into a bucket at once, without an event; each key is the prefix and a number.

        Args:
            bucket: The bucket.
            prefix: How the keys start.
            count: How many.
            text: What each has before its number. Default: - nothing
        """
        self._control("objects", {**self._place, "bucket": bucket, "prefix": prefix, "count": count, "text": text})

    def file_system_directory(self, file_system_id: str) -> Path:
        """Bring what has changed in linked buckets and files to the other side, and return the directory.

        `files/` in it is what nodes mount, `objects/` has the contents of linked objects, and `faults.json` says what
        the stand-in for Lustre's client fails at.

        Args:
            file_system_id: The file system.
        """
        return Path(self._control("file-system", {**self._place, "file_system_id": file_system_id})["directory"])

    def set_link_fate(self, file_system_path: str, lifecycle: str | None, message: str = "") -> None:
        """Let the links of a directory have a lifecycle, such as CREATING, MISCONFIGURED or FAILED.

        Args:
            file_system_path: The directory, such as "/data".
            lifecycle: The lifecycle; None for what FSx finds.
            message: The message of its FailureDetails. Default: - none
        """
        request = {"file_system_path": file_system_path, "lifecycle": lifecycle, "message": message}
        self._control("link", request)

    def set_task_fate(self, task_type: str, lifecycle: str | None, message: str = "") -> None:
        """Let data repository tasks of a type stay PENDING or EXECUTING, or end as FAILED or CANCELED.

        Args:
            task_type: Such as "IMPORT_METADATA_FROM_REPOSITORY".
            lifecycle: The lifecycle; None lets them go on.
            message: The message of its FailureDetails. Default: - none
        """
        self._control("task", {"type": task_type, "lifecycle": lifecycle, "message": message})

    def set_up_nodes(
        self,
        *,
        path: Iterable[Path] = (),
        root: Path | None = None,
        mounts: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        runs_any_shell: bool = False,
    ) -> None:
        """Say what nodes have of this machine when Run Command runs something on them.

        Args:
            path: Directories that come first in PATH. Default: - none
            root: A directory whose entries every node has in its root directory, the variable ROOT of a document's
                lines, such as `usr/local/bin`. Default: - none
            mounts: The ids of file systems by the directories that they are mounted at. Default: - none
            variables: More variables. Default: - none
            runs_any_shell: Whether AWS-RunShellScript runs what a user sends, on this machine and as this user.
                Default: - it is refused; a document of the cluster runs its own lines
        """
        request = {"path": [str(one) for one in path], "mounts": mounts or {}, "variables": variables or {}}
        self._control("nodes", {**request, "root": str(root) if root else "", "runs_any_shell": runs_any_shell})

    def set_node(self, instance_id: str, *, online: bool = True, fate: str | None = None) -> None:
        """Let a node be unreachable for Systems Manager, or commands that are sent to it from now on have a fate.

        Args:
            instance_id: The instance.
            online: Whether its agent is connected. Default: True
            fate: The details of the commands' status: Pending, InProgress, Delayed, Cancelled, Failed, Undeliverable,
                DeliveryTimedOut or ExecutionTimedOut; they are not run then. Default: - they are run
        """
        self._control("node", {"instance_id": instance_id, "online": online, "fate": fate})
