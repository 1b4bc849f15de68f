"""A cluster in memory that both the power function and the health function work on, with nodes that report."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_contract.aliases import EVENTS_ALIAS
from cluster_contract.claims import faults_value, read_claim, verified_value
from cluster_contract.codec import read
from cluster_contract.faults import FaultAction, FaultKind, fault_name
from cluster_contract.health import (
    REPORT_DETAIL_TYPE,
    NodeReport,
    ReportedCheck,
    ReportedFault,
    ReportKind,
    report_source,
)
from cluster_contract.health_settings import HealthFunctionSettings, HealthPolicySettings
from cluster_contract.owners import OwnedGroupSettings
from cluster_contract.tags import CLUSTER_TAG, FAULTS_TAG, KEEP_TAG, VERIFIED_TAG
from cluster_contract.times import time_text
from cluster_health.health import Health
from cluster_health.node_records import NodeRecord
from cluster_health.records import GroupRecord
from fake_auto_scaling import FakeGroup
from fake_dynamodb import TABLE
from fake_service import ACCOUNT, REGION, STACK, FakePaginator, FakeService, refusal
from policy_evaluator import Call
from power_scene import CLUSTER, Scene

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_sns.client import SNSClient

HEALTH_PART = f"health#{CLUSTER}"

REBOOT = ReportedFault("95", FaultKind.XID, FaultAction.REBOOT, "0000:53:00", 1, "Uncontained memory error")
REPLACE = ReportedFault("64", FaultKind.XID, FaultAction.REPLACE, "0000:53:00", 1, "Rows could not be remapped")
OBSERVE = ReportedFault("63", FaultKind.XID, FaultAction.OBSERVE, "0000:53:00", 1, "A row is remapped")
LOST = ReportedFault("gpu_lost", FaultKind.CHECK, FaultAction.REBOOT, "0000:53:00", 1, "7 GPUs of 8")
PASSED = ReportedCheck("gpus", passed=True, found="8")
FAILED = ReportedCheck("gpus", passed=False, found="7", floor="8")


class FakeNodesEc2(FakeService):
    """The client of EC2, as far as the health function asks it.

    Attributes:
        tags: The tags of instances, by their ids.
        impaired: Since when instances are impaired.
        events: The scheduled events of instances.
        stopped: The instances that are stopped, and cannot be rebooted.
        terminated: Those that are terminated: Auto Scaling, which checks none in Standby, lists them there still.
        rebooted: The instances that were rebooted, in order.
    """

    def __init__(self) -> None:
        super().__init__("ec2")
        self.tags: dict[str, dict[str, str]] = {}
        self.impaired: dict[str, datetime] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.stopped: set[str] = set()
        self.terminated: set[str] = set()
        self.rebooted: list[str] = []

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {"describe_instances": self.describe_pages, "describe_instance_status": self.describe_statuses}
        return FakePaginator(pages[operation])

    def describe_pages(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeInstances by ids, or by the key of a tag."""
        condition = parameters["Filters"][0]
        tagged = [one for one, tags in self.tags.items() if condition["Values"][0] in tags]
        named = condition["Values"] if condition["Name"] == "instance-id" else tagged
        self.record("DescribeInstances", parameters, names=named)
        for one in named:
            tags = [{"Key": key, "Value": value} for key, value in self.tags.get(one, {}).items()]
            ended = "stopped" if one in self.stopped else "running"
            state = {"Name": "terminated" if one in self.terminated else ended}
            yield {"Reservations": [{"Instances": [{"InstanceId": one, "Tags": tags, "State": state}]}]}

    def describe_statuses(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeInstanceStatus by one filter."""
        [condition] = parameters["Filters"]
        self.record("DescribeInstanceStatus", parameters)
        if condition["Name"] == "event.code":
            yield {"InstanceStatuses": [{"InstanceId": one, "Events": raw} for one, raw in self.events.items()]}
            return
        key = "InstanceStatus" if condition["Name"].startswith("instance") else "SystemStatus"
        for one, since in self.impaired.items():
            details = [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]
            yield {"InstanceStatuses": [{"InstanceId": one, key: {"Status": "impaired", "Details": details}}]}

    def reboot_instances(self, **parameters: Any) -> None:
        """Answer RebootInstances."""
        [one] = parameters["InstanceIds"]
        arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{one}"
        self.record("RebootInstances", parameters, names=[one], arn=arn, tags={CLUSTER_TAG: CLUSTER})
        if one in self.stopped | self.terminated:
            raise refusal(
                "RebootInstances", "IncorrectInstanceState", f"The instance '{one}' is not in a valid state"
            )
        self.rebooted.append(one)


@dataclass
class HealthScene(Scene):
    """A cluster in memory, the function that owns its sizes, and the one that repairs its nodes.

    Attributes:
        policy: What the health function may do.
        nodes_ec2: The client of EC2 that the health function has.
        boots: During which boot each node is.
        summary: What the health function said last, by node.
        health_calls: What the health function has called.
    """

    policy: HealthPolicySettings = field(default_factory=lambda: HealthPolicySettings(act=True))
    nodes_ec2: FakeNodesEc2 = field(default_factory=FakeNodesEc2)
    boots: dict[str, int] = field(default_factory=dict)
    summary: dict[str, dict[str, str]] = field(default_factory=dict)
    health_calls: list[Call] = field(default_factory=list)

    def start(self, **settings: Any) -> FakeGroup:
        """Deploy a node group, and let its nodes come."""
        group = self.add(**settings)
        self.minute(3)
        return group

    def health(self, event: dict[str, Any] | None = None, alias: str = "") -> dict[str, dict[str, str]]:
        """Invoke the health function through an alias, or none, and return its summary by node."""
        groups = {name: OwnedGroupSettings(owner=own.owner) for name, own in self.settings.groups.items()}
        settings = HealthFunctionSettings(
            cluster=CLUSTER,
            groups=groups,
            policy=self.policy,
            topic_arn=self.topic or "",
            state_table=TABLE,
            stack_id=STACK,
            region="us-east-1",
        )
        clients = Clients(
            auto_scaling=lambda: cast("AutoScalingClient", self.auto_scaling),
            auto_scaling_once=lambda: cast("AutoScalingClient", self.auto_scaling),
            dynamodb=lambda: cast("DynamoDBClient", self.dynamodb),
            ec2=lambda: cast("EC2Client", self.nodes_ec2),
            sns=lambda: cast("SNSClient", self.sns),
        )
        made = [self.auto_scaling.calls, self.nodes_ec2.calls, self.dynamodb.calls, self.sns.calls]
        before = list(map(len, made))
        try:
            answer: Any = Health(settings, clients, Logger(service="health"), self.now).run(event or {}, alias)
        finally:
            for calls, number in zip(made, before, strict=True):
                self.health_calls += calls[number:]
        self.summary = {one["instance_id"]: one for one in answer["nodes"]}
        return self.summary

    def both(self, number: int = 1) -> dict[str, dict[str, str]]:
        """Let minutes pass in which both functions tick."""
        for _ in range(number):
            self.minute()
            self.health()
        return self.summary

    def report(self, instance_id: str, kind: ReportKind, **details: Any) -> dict[str, dict[str, str]]:
        """Let a node write its own tags, and report; another sender writes no tags of it."""
        sender, writes_tags = details.pop("sender", ""), details.pop("tags", True)
        report = NodeReport(
            cluster=CLUSTER,
            node_group=details.pop("node_group", "workers"),
            instance_id=instance_id,
            boot_id=details.pop("boot_id", f"boot-{self.boots.get(instance_id, 0)}"),
            kind=kind,
            at=details.pop("at", self.now),
            **details,
        )
        if writes_tags and not sender:
            self.tag(report)
        return self.bring(report_event(report, sender or instance_id))

    def keep(self, instance_id: str, value: str = "true") -> None:
        """Let an operator keep a node, or no longer."""
        self.nodes_ec2.tags.setdefault(instance_id, {})[KEEP_TAG] = value

    def tag(self, report: NodeReport) -> None:
        """Write into a node's tags what its report says, as the node does."""
        tags = self.nodes_ec2.tags.setdefault(report.instance_id, {})
        boot, drained = report.boot_id, report.kind is ReportKind.DRAINED
        names = [fault_name(one.kind, one.code) for one in report.faults if one.action.drains]
        if report.kind is ReportKind.VERIFIED:
            failed = () if report.provisional else tuple(one.name for one in report.checks if not one.passed)
            codes = tuple(one.code for one in report.faults)
            tags[VERIFIED_TAG] = verified_value(boot, [*failed, *codes], time_text(report.at))
        known = read_claim(tags)
        if report.kind not in (ReportKind.FAULT, ReportKind.RECOVERED) and known.boot_id == boot:
            names = sorted(known.faults)
        if names or drained or known.boot_id:
            tags[FAULTS_TAG] = faults_value(boot, names, drained=drained)

    def bring(self, event: dict[str, Any]) -> dict[str, dict[str, str]]:
        """Let EventBridge bring an event."""
        return self.health({"time": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"), **event}, EVENTS_ALIAS)

    def fault(self, instance_id: str, *faults: ReportedFault, **details: Any) -> dict[str, dict[str, str]]:
        """Let a node report faults."""
        return self.report(instance_id, ReportKind.FAULT, faults=faults or (REBOOT,), **details)

    def verified(self, instance_id: str, *checks: ReportedCheck, **details: Any) -> dict[str, dict[str, str]]:
        """Let a node boot anew, and report that it was verified."""
        self.boots[instance_id] = self.boots.get(instance_id, 0) + 1
        return self.report(instance_id, ReportKind.VERIFIED, checks=checks or (PASSED,), **details)

    def drained(self, instance_id: str) -> dict[str, dict[str, str]]:
        """Let a node report that its job has ended."""
        return self.report(instance_id, ReportKind.DRAINED)

    def group_record(self, node_group: str = "workers") -> GroupRecord:
        """Return what the health function has recorded of a node group."""
        values = self.dynamodb.values(HEALTH_PART, f"group/{node_group}")
        return read(GroupRecord, _plain(values))

    def node_record(self, instance_id: str) -> NodeRecord:
        """Return what the health function has recorded of a node."""
        return read(NodeRecord, _plain(self.dynamodb.values(HEALTH_PART, f"node/{instance_id}")))

    def set_policy(self, **settings: Any) -> None:
        """Change what the health function may do."""
        self.policy = replace(self.policy, **settings)

    def watch_repairs(self) -> list[str]:
        """Return a list in which the operations appear that change a node from now on, in order."""
        found: list[str] = []

        def watch(operation: str) -> None:
            if not operation.startswith(("Describe", "Get", "Query", "Put", "Create")):
                found.append(operation)

        self.auto_scaling.on_call = self.nodes_ec2.on_call = watch
        return found


def report_event(report: NodeReport, sender: str) -> dict[str, Any]:
    """Return the event in which EventBridge brings a report that a node has sent."""
    source = report_source(report.cluster, f"AROAEXAMPLE:{sender}")
    return {"source": source, "detail-type": REPORT_DETAIL_TYPE, "detail": json.loads(report.to_json())}


def aws_event(kind: str, at: datetime, **detail: Any) -> dict[str, Any]:
    """Return the event in which EventBridge brings what AWS announces."""
    source = "aws.health" if "Health" in kind else "aws.ec2"
    time = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"source": source, "detail-type": kind, "time": time, "detail": detail}


def ids(group: FakeGroup, state: str = "InService") -> list[str]:
    """Return the ids of a group's nodes in a state."""
    return [one for one, now in group.nodes if now == state]


def shown(group: FakeGroup) -> tuple[int, int, int]:
    """Return the desired capacity of a group, and how many of its nodes are in service and in Standby."""
    return group.desired, group.in_service, len(group.standby)


def minutes(number: float) -> timedelta:
    """Return minutes."""
    return timedelta(minutes=number)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in ("part", "name", "version", "expires")}
