"""What AWS says of the cluster's nodes, and what the power function wants of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.keep_tags import KeepTags
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.making import make_owners
from cluster_common.power_records import GroupState
from cluster_common.state_table import StateItem, StateTable
from cluster_common.times import time_text
from cluster_contract.claims import Claim, read_claim
from cluster_contract.health_settings import HealthFunctionSettings
from cluster_contract.state import StatePart
from cluster_contract.tags import CLUSTER_TAG, FAULTS_TAG
from cluster_health.node_records import Notice
from cluster_health.outcomes import PlannedSize

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceStatusTypeDef

_LATER = "the next run reads it again, and until then nothing is done there"

# With more values of a filter DescribeInstances answers FilterLimitExceeded.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_MAX_VALUES = 200

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html
_EVENTS = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
_OVER = ("[Completed]", "[Canceled]")

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
_STOPPED = ("stopping", "stopped")
_TERMINATED = ("shutting-down", "terminated")


@dataclass(frozen=True, kw_only=True)
class Statuses:
    """What EC2's status checks and scheduled events say of instances of the account.

    Attributes:
        impaired: Since when instances are impaired, by their ids. None: that is not known of an instance.
        notices: What EC2 has scheduled next for instances.
    """

    impaired: Mapping[str, datetime | None] = field(default_factory=dict)
    notices: Mapping[str, Notice] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Instances:
    """What EC2 says of broken nodes.

    Attributes:
        kept: Why an operator keeps nodes, by their ids: the end of a sentence, or empty.
        stopped: The nodes that are stopped, or being stopped.
        terminated: Those that are terminated, or being terminated.
        claims: What the nodes' own tags say.
    """

    kept: Mapping[str, str]
    stopped: frozenset[str]
    terminated: frozenset[str]
    claims: Mapping[str, Claim]


class HealthReader:
    """Read what decisions rest on. What cannot be read is a failure of the run, and unknown."""

    def __init__(self, settings: HealthFunctionSettings, clients: Clients, failures: Failures, now: datetime) -> None:
        """Read nothing yet.

        Args:
            settings: The function's settings.
            clients: What it talks to.
            failures: Where it is kept what could not be read.
            now: The time.
        """
        self._settings = settings
        self._clients = clients
        self._failures = failures
        self._now = now
        self.owners = make_owners(settings.groups, clients, settings.cluster, now, stack_id=settings.stack_id)

    def read_groups(self, node_group: str | None = None) -> dict[str, OwnedGroup]:
        """Read the owners and nodes of node groups, by name. One that has two owners at the moment is left out.

        Args:
            node_group: The one node group. Default: - all.
        """
        found: dict[str, list[OwnedGroup]] = {}
        for owner in self.owners:
            if node_group is not None and node_group not in owner.node_groups:
                continue
            try:
                reading = owner.read(node_group)
            except AWS_ERRORS as error:
                self._failures.add(", ".join(owner.node_groups), f"its nodes could not be read: {_LATER}", error)
                continue
            for name, why in reading.unread.items():
                self._failures.add(name, f"its nodes could not be read: {_LATER}", why)
            for group in reading.groups:
                if group.node_group in self._settings.groups and group.is_configured:
                    found.setdefault(group.node_group, []).append(group)
        return {name: groups[0] for name, groups in found.items() if len(groups) == 1}

    def read_statuses(self) -> Statuses | None:
        """Read which instances are impaired, and what EC2 has scheduled. None: that could not be read.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html
        """
        try:
            impaired = {
                one.get("InstanceId", ""): _impaired_since(one)
                for check in ("instance-status.status", "system-status.status")
                for one in self._describe({"Name": check, "Values": ["impaired"]})
            }
            scheduled = {
                one.get("InstanceId", ""): min(notices, key=self._order)
                for one in self._describe({"Name": "event.code", "Values": _EVENTS})
                if (notices := list(self._scheduled(one)))
            }
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, f"its status checks could not be read: {_LATER}", error)
            return None
        return Statuses(impaired=impaired, notices=scheduled)

    def _describe(self, condition: "FilterTypeDef") -> "Iterable[InstanceStatusTypeDef]":
        pages = self._clients.ec2().get_paginator("describe_instance_status").paginate(Filters=[condition])
        return [one for page in pages for one in page["InstanceStatuses"]]

    def _scheduled(self, status: "InstanceStatusTypeDef") -> Iterable[Notice]:
        for event in status.get("Events", []):
            said, code = event.get("Description", ""), event.get("Code", "event")
            if said.startswith(_OVER):
                continue
            starts = event.get("NotBefore")
            at = f" at {time_text(starts)}" if starts else ""
            yield Notice(code=code, at=self._now, deadline=starts, sentence=f"EC2 has scheduled {code}{at}: {said}")

    def _order(self, notice: Notice) -> tuple[bool, datetime]:
        """Return what sorts notices: by their deadlines; those that have none, or whose has passed, come last."""
        deadline = notice.deadline or self._now
        return notice.deadline is None or deadline < self._now, deadline

    def read_wanted(self, groups: Mapping[str, OwnedGroup]) -> dict[str, PlannedSize]:
        """Read what the power function wants of node groups, by name; those of which it is not known are left out."""
        part = StatePart.POWER.key(self._settings.cluster)
        table = StateTable(self._clients.dynamodb(), self._settings.state_table, part)
        try:
            items = table.read_all()
        except AWS_ERRORS as error:
            what = f"the power function's records could not be read: {_LATER}"
            self._failures.add(self._settings.cluster, what, error)
            return {}
        wanted = {name: _wanted(items[name], group) for name, group in groups.items() if items.get(name) is not None}
        return {name: one for name, one in wanted.items() if one is not None}

    def read_instances(self, ids: Iterable[str]) -> Instances:
        """Read the tags of nodes, and which EC2 has stopped or terminated, as far as it says that.

        Args:
            ids: The nodes.
        """
        asked, kept, states, claims = sorted(ids), dict[str, str](), dict[str, str](), dict[str, Claim]()
        try:
            for start in range(0, len(asked), _MAX_VALUES):
                condition: FilterTypeDef = {"Name": "instance-id", "Values": asked[start : start + _MAX_VALUES]}
                for one, tags, state in self._instances(condition):
                    kept[one] = KeepTags.from_tags(tags).kept(self._now) or ""
                    states[one], claims[one] = state, read_claim(tags)
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, f"tags of broken nodes could not be read: {_LATER}", error)
        stopped, terminated = (
            frozenset(one for one, state in states.items() if state in some) for some in (_STOPPED, _TERMINATED)
        )
        return Instances(kept=kept, stopped=stopped, terminated=terminated, claims=claims)

    def read_claims(self) -> dict[str, Claim]:
        """Read what the tags of the cluster's nodes say that have named faults, by node."""
        has_faults: FilterTypeDef = {"Name": "tag-key", "Values": [FAULTS_TAG]}
        own: FilterTypeDef = {"Name": f"tag:{CLUSTER_TAG}", "Values": [self._settings.cluster]}
        try:
            return {one: read_claim(tags) for one, tags, _ in self._instances(has_faults, own)}
        except AWS_ERRORS as error:
            self._failures.add(self._settings.cluster, f"tags of its nodes could not be read: {_LATER}", error)
            return {}

    def _instances(self, *conditions: "FilterTypeDef") -> Iterator[tuple[str, dict[str, str], str]]:
        """Yield the id, the tags and the state of each instance that meets conditions."""
        pages = self._clients.ec2().get_paginator("describe_instances").paginate(Filters=list(conditions))
        for one in (i for page in pages for r in page["Reservations"] for i in r.get("Instances", [])):
            tags = {tag.get("Key", ""): tag.get("Value", "") for tag in one.get("Tags", [])}
            yield one.get("InstanceId", ""), tags, one.get("State", {}).get("Name", "")


def _impaired_since(status: "InstanceStatusTypeDef") -> datetime | None:
    checks = (status.get("InstanceStatus", {}), status.get("SystemStatus", {}))
    since = [one.get("ImpairedSince") for check in checks for one in check.get("Details", [])]
    return min((one for one in since if one is not None), default=None)


def _wanted(item: StateItem, group: OwnedGroup) -> PlannedSize | None:
    """Return what the power function wants of a node group, as its item says. None: it says nothing of its size."""
    try:
        record = GroupState.from_values(item.values).record(group.name)
    except ValueError:
        return None  # The power function reports it.
    if record.size is None or record.state is None:
        return PlannedSize(size=0) if record.is_stopped else None
    given, size = record.desired, record.size
    if given is None:
        # A desired capacity that the power function does not explain is an operator's.
        return PlannedSize(size=size, stopped=record.is_stopped, goal=min(size, group.desired + group.standby))
    return PlannedSize(size=size, stopped=record.is_stopped, standby=frozenset(given.standby), goal=given.goal)
