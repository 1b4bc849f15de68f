"""An Auto Scaling service in memory: it answers, refuses, launches and records every call."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from fake_service import ACCOUNT, REGION, STACK, FakePaginator, FakeService, refusal

STACK_ID_TAG = "aws:cloudformation:stack-id"

NO_CAPACITY = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have "
    "sufficient "
    "p4de.24xlarge capacity in the Availability Zone you requested (us-east-1b). Launching EC2 instance "
    "failed."
)

_PAGE = 2


@dataclass
class FakeGroup:
    """One Auto Scaling group.

    Attributes:
        capacity: How many nodes EC2 has for it; more fail with `failure`.
        protected: How many of its nodes are protected from scale-in.
        hooked: Whether a lifecycle hook keeps the nodes that leave in Terminating:Wait.
        others: The lifecycle states of its nodes that are neither in service nor launching.
        terminating: The ids of its nodes that were terminated and are still there.
        slow: Whether those show for a while that they are in service.
        zones: The Availability Zones it launches in.
        policies: Which of its nodes end first where it has too many.
        suspended: Why it launches nothing. None: it launches.
        terminating_suspended: Why it terminates nothing. None: it terminates.
        version: The version of its launch template. None: it does not say.
        warm: The nodes in its warm pool, and the version that each was launched from.
        standby: The ids of its nodes in Standby.
        unhealthy: The ids of its nodes that Auto Scaling calls unhealthy.
        dead: The ids of those that EC2 has terminated: they are replaced once they are in service.
    """

    name: str
    tags: dict[str, str]
    desired: int = 0
    minimum: int = 0
    maximum: int = 8
    in_service: int = 0
    launching: int = 0
    capacity: int = 1000
    failure: str = NO_CAPACITY
    deleting: bool = False
    policies: list[str] = field(default_factory=lambda: ["NewestInstance"])
    suspended: str | None = None
    terminating_suspended: str | None = None
    protected: int = 0
    hooked: bool = False
    others: list[str] = field(default_factory=list)
    terminating: list[str] = field(default_factory=list)
    slow: bool = False
    zones: list[str] = field(default_factory=lambda: ["us-east-1b"])
    activities: list[dict[str, Any]] = field(default_factory=list)
    version: int | None = None
    warm: dict[str, int] = field(default_factory=dict)
    standby: list[str] = field(default_factory=list)
    unhealthy: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    _versions: dict[str, int | None] = field(default_factory=dict)
    _ids: dict[str, list[str]] = field(default_factory=dict)
    _launched: int = 0
    _asked: list[str] = field(default_factory=list)

    @property
    def arn(self) -> str:
        """The ARN, with an id as the service makes it."""
        return (
            f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:"
            f"11111111-2222-3333-4444-555555555555:autoScalingGroupName/{self.name}"
        )

    @property
    def alive(self) -> int:
        """How many instances EC2 bills for it; the tests put no stopped warm-pool instance here."""
        return self.in_service + self.launching + len(self.others) + len(self.terminating) + len(self.standby)

    @property
    def nodes(self) -> list[tuple[str, str]]:
        """The id and the lifecycle state of each node; a node keeps its id while its state stays."""
        states = {"InService": ["InService"] * self.in_service, "Pending": ["Pending"] * self.launching}
        living = [
            (one, state)
            for kind, every in (states | {"others": self.others}).items()
            for one, state in zip(self._name(kind, len(every)), every, strict=True)
        ]
        state = "InService" if self.slow else "Terminating:Wait" if self.hooked else "Terminating"
        return living + [(one, "Standby") for one in self.standby] + [(one, state) for one in self.terminating]

    def _name(self, kind: str, number: int) -> list[str]:
        """Return the ids of the nodes of a kind: the newest go first, and new ones get new ids."""
        ids = self._ids.setdefault(kind, [])
        del ids[number:]
        while len(ids) < number:
            self._launched += 1
            ids.append(f"i-{zlib.crc32(self.name.encode()):08x}{self._launched:04x}")
            self._versions[ids[-1]] = self.version
        return ids

    def terminate(self, instance_id: str, *, lowers: bool = True) -> None:
        """Terminate a node and lower the size; who asks for one that goes already lowers it again."""
        self.desired -= lowers
        if instance_id in self.terminating:
            return
        if instance_id in self.standby:
            self.standby.remove(instance_id)
        else:
            state = dict(self.nodes)[instance_id]
            self._ids[state if state in ("InService", "Pending") else "others"].remove(instance_id)
            self.in_service -= state == "InService"
            self.launching -= state == "Pending"
        self.terminating.append(instance_id)
        self._asked.append(instance_id)

    def enter_standby(self, instance_id: str, *, lowers: bool = True) -> None:
        """Put a node that is in service into Standby, and lower the size."""
        self._ids["InService"].remove(instance_id)
        self.standby.append(instance_id)
        self.in_service -= 1
        self.desired -= lowers

    def exit_standby(self, instance_id: str) -> None:
        """Put a node in Standby back into service, and raise the size."""
        self.standby.remove(instance_id)
        self._ids.setdefault("InService", []).append(instance_id)
        self.in_service += 1
        self.desired += 1

    def settle(self, now: datetime) -> None:
        """Do what Auto Scaling does in a minute: terminate, launch, and fail to launch."""
        for one in self.dead & set(self._ids.get("InService", [])):
            self.terminate(one, lowers=False)
        while self._asked:
            self._record(now, f"Terminating EC2 instance: {self._asked.pop()}", "InProgress", "")
        if not self.hooked:
            self.terminating.clear()
            self.others = [state for state in self.others if state != "Terminating:Wait"]
        leaving = self.in_service - max(self.desired, self.protected)
        if leaving > 0 and self.terminating_suspended is None:
            self._record(now, "Terminating EC2 instance: i-0", "InProgress" if self.hooked else "Successful", "")
            self.in_service -= leaving
            self.others += ["Terminating:Wait"] * (leaving if self.hooked else 0)
        if self.suspended is not None:
            return
        wanted = self.desired - self.in_service
        launched = min(wanted, max(0, self.capacity - self.in_service))
        if launched > 0:
            self._record(now, "Launching a new EC2 instance: i-1", "Successful", "")
            self.in_service += launched
        if wanted > launched:
            self._record(now, "Launching a new EC2 instance.", "Failed", self.failure)

    def _record(self, now: datetime, description: str, status: str, message: str) -> None:
        activity = {"Description": description, "StatusCode": status, "StatusMessage": message}
        self.activities.insert(0, {**activity, "StartTime": now})

    def describe(self) -> dict[str, Any]:
        """Return the group as DescribeAutoScalingGroups does."""
        raw: dict[str, Any] = {
            "AutoScalingGroupName": self.name,
            "AutoScalingGroupARN": self.arn,
            "MinSize": self.minimum,
            "MaxSize": self.maximum,
            "DesiredCapacity": self.desired,
            "AvailabilityZones": self.zones,
            "TerminationPolicies": self.policies,
            "Instances": [
                {
                    "InstanceId": name,
                    "InstanceType": "p4de.24xlarge",
                    "LifecycleState": state,
                    "HealthStatus": "Unhealthy" if name in self.unhealthy else "Healthy",
                    "ProtectedFromScaleIn": number < self.protected,
                    **_launch_template(self._versions.get(name)),
                }
                for number, (name, state) in enumerate(self.nodes)
            ],
            "Tags": [
                {"ResourceId": self.name, "Key": key, "Value": value, "PropagateAtLaunch": False}
                for key, value in sorted(self.tags.items())
            ],
        }
        raw |= _launch_template(self.version)
        raw["SuspendedProcesses"] = [
            {"ProcessName": name, "SuspensionReason": reason}
            for name, reason in (("Launch", self.suspended), ("Terminate", self.terminating_suspended))
            if reason is not None
        ]
        if self.deleting:
            raw["Status"] = "Delete in progress"
        return raw


class FakeAutoScaling(FakeService):
    """The client of Auto Scaling.

    Attributes:
        members: The ids of the instances of groups whose nodes a scene makes itself.
        states: The lifecycle states of those that are not in service.
        protected: The ids of those that are protected from scale-in.
    """

    def __init__(self) -> None:
        super().__init__("autoscaling")
        self.members: dict[str, list[str]] = {}
        self.states: dict[str, str] = {}
        self.protected: set[str] = set()
        self.groups: dict[str, FakeGroup] = {}
        self.old: list[dict[str, dict[str, Any]]] = []
        """What the next descriptions show, whatever was written since: each is what `describe_all` returned."""

    def describe_all(self) -> dict[str, dict[str, Any]]:
        """Return what descriptions show now, by the group's name."""
        return {name: group.describe() for name, group in self.groups.items()}

    def add(
        self, name: str, *, cluster: str, node_group: str, stack: str | None = STACK, **settings: Any
    ) -> FakeGroup:
        """Make a group that carries a cluster's tags, in a stack or in none."""
        tags = {"cdk-training-cluster:cluster": cluster, "cdk-training-cluster:node-group": node_group}
        tags |= {STACK_ID_TAG: stack} if stack else {}
        self.groups[name] = FakeGroup(name=name, tags=tags | settings.pop("tags", {}), **settings)
        return self.groups[name]

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {
            "describe_auto_scaling_groups": self.describe_groups,
            "describe_warm_pool": self.describe_warm_pool,
        }
        return FakePaginator(pages[operation])

    def describe_warm_pool(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeWarmPool, an instance a page."""
        group = self._group(parameters["AutoScalingGroupName"])
        self.record("DescribeWarmPool", parameters, names=[group.name])
        for name, version in group.warm.items():
            instance = {"InstanceId": name, "LifecycleState": "Warmed:Stopped", **_launch_template(version)}
            yield {"Instances": [instance]}

    def describe_groups(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeAutoScalingGroups, page by page."""
        assert parameters.pop("PaginationConfig", {}).get("PageSize", 0) <= 100
        names = parameters.get("AutoScalingGroupNames")
        self.record("DescribeAutoScalingGroups", parameters, names=names or [])
        if names and parameters.get("Filters"):
            # Seen in the field: https://github.com/topfreegames/kubernetes-kops-operator/pull/39
            raise _validation(
                "AutoScalingGroupNames and Filters cannot be used together", "DescribeAutoScalingGroups"
            )
        old = self.old.pop() if self.old else {}
        found = [
            old.get(name) or self._describe(self.groups[name])
            for name in names or list(self.groups)
            if name in self.groups and _matches(self.groups[name], parameters.get("Filters", []))
        ]
        for start in range(0, max(1, len(found)), _PAGE):
            yield {"AutoScalingGroups": found[start : start + _PAGE]}

    def _describe(self, group: FakeGroup) -> dict[str, Any]:
        members = [
            {
                "InstanceId": one,
                "LifecycleState": self.states.get(one, "InService"),
                "ProtectedFromScaleIn": one in self.protected,
            }
            for one in self.members.get(group.name, [])
        ]
        return {**group.describe(), **({"Instances": members} if group.name in self.members else {})}

    def describe_scaling_activities(self, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeScalingActivities."""
        self.record("DescribeScalingActivities", parameters, names=[parameters["AutoScalingGroupName"]])
        group = self._group(parameters["AutoScalingGroupName"])
        return {"Activities": group.activities[: parameters["MaxRecords"]]}

    def set_desired_capacity(self, **parameters: Any) -> dict[str, Any]:
        """Answer SetDesiredCapacity."""
        group = self._group(parameters["AutoScalingGroupName"])
        self.record("SetDesiredCapacity", parameters, names=[group.name], arn=group.arn, tags=group.tags)
        size = parameters["DesiredCapacity"]
        if size > group.maximum:
            raise _validation(f"New SetDesiredCapacity value {size} is above max value {group.maximum}")
        if size < group.minimum:
            raise _validation(f"New SetDesiredCapacity value {size} is below min value {group.minimum}")
        group.desired = size
        return {}

    def resume_processes(self, **parameters: Any) -> dict[str, Any]:
        """Answer ResumeProcesses."""
        group = self._group(parameters["AutoScalingGroupName"])
        self.record("ResumeProcesses", parameters, names=[group.name], arn=group.arn, tags=group.tags)
        assert parameters["ScalingProcesses"] == ["Launch"]
        group.suspended = None
        return {}

    def terminate_instance_in_auto_scaling_group(self, **parameters: Any) -> dict[str, Any]:
        """Answer TerminateInstanceInAutoScalingGroup."""
        operation, instance = "TerminateInstanceInAutoScalingGroup", parameters["InstanceId"]
        group = next((one for one in self.groups.values() if instance in dict(one.nodes)), None)
        if group is None:
            self.record(operation, parameters, names=[instance])
            raise _validation(
                f"Instance Id not found - No managed instance found for instance ID {instance}", operation
            )
        self.record(operation, parameters, names=[instance, group.name], arn=group.arn, tags=group.tags)
        lowers = parameters["ShouldDecrementDesiredCapacity"]
        if lowers and group.desired <= group.minimum:
            raise _validation(
                f"Currently, desiredSize equals minSize ({group.minimum}). Terminating instance without replacement "
                "will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false "
                "or lower group's min size.",
                operation,
            )
        group.terminate(instance, lowers=lowers)
        return {"Activity": {"ActivityId": "1", "AutoScalingGroupName": group.name, "StatusCode": "InProgress"}}

    def enter_standby(self, **parameters: Any) -> dict[str, Any]:
        """Answer EnterStandby."""
        group = self._standby_group("EnterStandby", "InService", parameters)
        lowers = parameters["ShouldDecrementDesiredCapacity"]
        if lowers and group.desired <= group.minimum:
            raise _validation("AutoScalingGroup would have less than its minimum size", "EnterStandby")
        group.enter_standby(parameters["InstanceIds"][0], lowers=lowers)
        return {"Activities": []}

    def exit_standby(self, **parameters: Any) -> dict[str, Any]:
        """Answer ExitStandby."""
        group = self._standby_group("ExitStandby", "Standby", parameters)
        group.exit_standby(parameters["InstanceIds"][0])
        return {"Activities": []}

    def _standby_group(self, operation: str, state: str, parameters: dict[str, Any]) -> FakeGroup:
        """Record a call that moves one node, and refuse it where the node has another state.

        The text is Auto Scaling's own: https://github.com/aws-samples/aws-codedeploy-samples/issues/50
        """
        group, [instance] = self._group(parameters["AutoScalingGroupName"]), parameters["InstanceIds"]
        self.record(operation, parameters, names=[instance, group.name], arn=group.arn, tags=group.tags)
        if dict(group.nodes).get(instance) != state:
            raise _validation(f"The instance {instance} is not in {state}.", operation)
        return group

    def create_or_update_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer CreateOrUpdateTags."""
        tags = parameters["Tags"]
        group = self._group(tags[0]["ResourceId"])
        keys = [tag["Key"] for tag in tags]
        self.record(
            "CreateOrUpdateTags", parameters, names=[group.name], arn=group.arn, tags=group.tags, tag_keys=keys
        )
        assert len(tags) <= 25
        for tag in tags:
            assert tag["ResourceId"] == group.name
            assert tag["PropagateAtLaunch"] is False
            assert len(tag["Value"]) <= 256
            group.tags[tag["Key"]] = tag["Value"]
        return {}

    def delete_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer DeleteTags."""
        tags = parameters["Tags"]
        group = self._group(tags[0]["ResourceId"])
        keys = [tag["Key"] for tag in tags]
        self.record("DeleteTags", parameters, names=[group.name], arn=group.arn, tags=group.tags, tag_keys=keys)
        for key in keys:
            group.tags.pop(key, None)
        return {}

    def _group(self, name: str) -> FakeGroup:
        if name not in self.groups:
            raise _validation(f"AutoScalingGroup name not found - {name}")
        return self.groups[name]


def _launch_template(version: int | None) -> dict[str, Any]:
    return {} if version is None else {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": str(version)}}


def _matches(group: FakeGroup, filters: list[dict[str, Any]]) -> bool:
    return all(group.tags.get(one["Name"].removeprefix("tag:")) in one["Values"] for one in filters)


def _validation(message: str, operation: str = "SetDesiredCapacity") -> ClientError:
    return refusal(operation, "ValidationError", message)
