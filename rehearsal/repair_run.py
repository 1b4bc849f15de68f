"""A node of the deployed cluster that reports an Xid: rebooted, broken again, and replaced; or only reported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from cluster_common.state_table import StateTable
from cluster_contract.claims import faults_value, verified_value
from cluster_contract.faults import FaultAction, FaultKind, fault_name
from cluster_contract.health import (
    REPORT_DETAIL_TYPE,
    NodeReport,
    ReportedCheck,
    ReportedFault,
    ReportKind,
    report_source,
)
from cluster_contract.state import StatePart
from cluster_contract.tags import FAULTS_TAG, VERIFIED_TAG
from cluster_contract.times import time_text
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.report import table_of

_MINUTE = timedelta(minutes=1)
# As a node reads it in the kernel's log, and in the table of faults.
_XID = ReportedFault(
    code="79",
    kind=FaultKind.XID,
    action=FaultAction.REBOOT,
    device="0000:53:00",
    count=1,
    sentence="The GPU has fallen off the bus",
)
_PASSED = ReportedCheck(name="gpu count", passed=True, found="8", floor="8")

ACTED: tuple[tuple[str, str], ...] = (
    ("it reports Xid 79", "Standby"),
    ("its job has ended", "Standby"),
    ("it has rebooted and is verified", "InService"),
    ("a minute later", "InService"),
    ("it reports Xid 79 again", "Standby"),
    ("its job has ended again", "gone"),
    ("two minutes later", "gone"),
)
"""What happens to the node, and its lifecycle state then, where the function acts."""

REPORTED: tuple[tuple[str, str], ...] = (("it reports Xid 79", "InService"), ("it has recovered", "InService"))
"""Likewise, where the function only reports."""


@dataclass(kw_only=True)
class RepairStory:
    """What became of the node.

    Attributes:
        acts: Whether the function may act.
        node: The node.
        node_group: Its node group.
        size: How many nodes that has.
        states: The node's lifecycle state, by what happened before.
        reboots: How often EC2 was asked to reboot it.
        running: How many nodes of its group ran at the end.
        table: What the state table says of the group's repairs then.
    """

    acts: bool
    node: str
    node_group: str
    size: int
    states: dict[str, str] = field(default_factory=dict)
    reboots: int = 0
    running: int = 0
    table: Mapping[str, Any] = field(default_factory=dict)

    def differences(self) -> Iterator[str]:
        """Say what is not as the policy has it."""
        for moment, wanted in ACTED if self.acts else REPORTED:
            if self.states.get(moment) != wanted:
                yield f"health, {moment}: {self.node} is {self.states.get(moment)}, not {wanted}"
        if self.reboots != int(self.acts):
            yield f"health: {self.node} was rebooted {self.reboots} times, not {int(self.acts)}"
        if self.running != self.size:
            yield f"health: {self.running} nodes of {self.node_group} run, not {self.size}"
        ends = [one["end"] for one in self.table.get("past", ())]
        if ends != (["returned", "replaced"] if self.acts else []) or "repair" in self.table:
            yield f"health: the state table has the repairs {ends}, and under way: {self.table.get('repair')}"

    def results(self) -> dict[str, Any]:
        """Return what is written down."""
        return {"node": self.node, "states": self.states, "reboots": self.reboots, "table": self.table}


class RepairRun:
    """Lets a node report as its watchdog does, through EventBridge."""

    def __init__(
        self,
        aws: LocalAws,
        cluster: str,
        group: Mapping[str, Any],
        *,
        health: DeployedFunction,
        power: DeployedFunction,
        acts: bool,
    ) -> None:
        """Prepare it; nothing is reported yet.

        Args:
            aws: The local AWS.
            cluster: The cluster's name.
            group: The node group of an Auto Scaling group, as it was read back.
            health: The deployed health function.
            power: The deployed power function.
            acts: Whether the policy lets the health function act.
        """
        self._aws, self._cluster, self._group = aws, cluster, group
        self._health, self._power = health, power
        self._later, self._began = timedelta(), datetime.now(UTC)
        self.story = RepairStory(
            acts=acts,
            node=group["instance_ids"][0],
            node_group=group["name"],
            size=len(group["instance_ids"]),
        )

    def run(self, state_table: str) -> None:
        """Let the node report a fault, and what follows from what the function does.

        Args:
            state_table: The name of the cluster's state table.
        """
        self._aws.forget_calls()
        (self._repair if self.story.acts else self._report_only)()
        self._aws.set_clock(timedelta())
        calls = self._aws.calls("RebootInstances")
        self.story.reboots = sum(self.story.node in call.parameters["InstanceIds"] for call in calls)
        self.story.running = sum(state == "InService" for state in self._states().values())
        self.story.table = self._of_table(state_table)

    def _report_only(self) -> None:
        fault, recovered = (moment for moment, _ in REPORTED)
        self._report(fault, ReportKind.FAULT, faults=(_XID,))
        self._report(recovered, ReportKind.RECOVERED)

    def _repair(self) -> None:
        broken, drained, verified, back, again, drained_again, replaced = (moment for moment, _ in ACTED)
        self._report(broken, ReportKind.FAULT, faults=(_XID,))
        self._tick_power()
        self._report(drained, ReportKind.DRAINED)
        self._report(verified, ReportKind.VERIFIED, boot="second", checks=(_PASSED,))
        self._tick(back)
        self._report(again, ReportKind.FAULT, boot="second", faults=(_XID,))
        self._report(drained_again, ReportKind.DRAINED, boot="second")
        self._tick_power()
        self._tick(replaced)

    def _report(
        self,
        moment: str,
        kind: ReportKind,
        *,
        boot: str = "first",
        faults: tuple[ReportedFault, ...] = (),
        checks: tuple[ReportedCheck, ...] = (),
    ) -> None:
        """Send what the node reports a minute after the last, and note its state when that has been handled."""
        self._pass_a_minute()
        report = NodeReport(
            cluster=self._cluster,
            node_group=self.story.node_group,
            instance_id=self.story.node,
            boot_id=boot,
            kind=kind,
            at=(self._began + self._later).replace(microsecond=0),
            faults=faults,
            checks=checks,
            serials=("1320000000001",),
        )
        self._tag(report)
        source = report_source(self._cluster, f"AROAEXAMPLE:{self.story.node}")
        entry = {"Source": source, "DetailType": REPORT_DETAIL_TYPE, "Detail": report.to_json()}
        self._aws.client("events").put_events(Entries=[entry])
        self.story.states[moment] = self._state()

    def _tag(self, report: NodeReport) -> None:
        """Write into the node's own tags what it says of itself, as its watchdog and its verification do."""
        faults = [fault_name(one.kind, one.code) for one in report.faults]
        if report.kind is ReportKind.DRAINED:
            faults = [fault_name(_XID.kind, _XID.code)]
        tags = {FAULTS_TAG: faults_value(report.boot_id, faults, drained=report.kind is ReportKind.DRAINED)}
        if report.kind is ReportKind.VERIFIED:
            tags[VERIFIED_TAG] = verified_value(report.boot_id, (), time_text(report.at))
        written = [{"Key": key, "Value": value} for key, value in tags.items()]
        self._aws.client("ec2").create_tags(Resources=[self.story.node], Tags=written)

    def _tick(self, moment: str) -> None:
        self._pass_a_minute()
        self._health({"action": "tick"}, later=self._later)
        self.story.states[moment] = self._state()

    def _tick_power(self) -> None:
        self._pass_a_minute()
        self._power({"action": "tick"}, later=self._later)

    def _pass_a_minute(self) -> None:
        self._later += _MINUTE
        self._aws.set_clock(self._later)

    def _states(self) -> dict[str, str]:
        name = self._group["auto_scaling_group"]
        found = self._aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return {one["InstanceId"]: one["LifecycleState"] for one in found["AutoScalingGroups"][0]["Instances"]}

    def _state(self) -> str:
        return self._states().get(self.story.node, "gone")

    def _of_table(self, table: str) -> Mapping[str, Any]:
        """Return the item of the node group's repairs."""
        items = StateTable(self._aws.client("dynamodb"), table, StatePart.HEALTH.key(self._cluster))
        return items.read(f"group/{self.story.node_group}").values


def group_to_repair(groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the first node group of an Auto Scaling group that has nodes. None: there is none."""
    return next((one for one in groups if one["auto_scaling_group"] and one["instance_ids"]), None)


def show_repair(console: Console, story: RepairStory) -> None:
    """Show what became of the node."""
    table = table_of(f"{story.node} of {story.node_group}", "what happens", "its state then")
    for moment, state in story.states.items():
        table.add_row(moment, state)
    console.print(table)
