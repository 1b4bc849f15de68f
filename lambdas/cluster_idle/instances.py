"""Instances, as DescribeInstances tells of them: what decides whether and how one can be stopped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cluster_common.messages import printable
from cluster_contract.idle import IdleFunctionSettings
from cluster_contract.tags import NODE_GROUP_TAG
from cluster_idle.idle_tags import NO_IDLE_TAGS, STOPPING_TAG, IdleTags

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

# A page of instances with many interfaces takes its place in memory: 200 of p5, with 32 each, take 50 MiB.
PAGE_SIZE = 200

# Tags that only services can set.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html and
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-spot-fleet.html
GROUP_TAG = "aws:autoscaling:groupName"
SPOT_FLEET_TAG = "aws:ec2spot:fleet-request-id"
EC2_FLEET_TAG = "aws:ec2:fleet-id"

_SPOT = "spot"
_RESERVED_LIFECYCLES: Mapping[str, str] = {
    "capacity-block": "a Capacity Block",
    "interruptible-capacity-reservation": "an interruptible capacity reservation",
}


class OwnerKind(StrEnum):
    """What replaces an instance, and has to be asked to stop it."""

    INSTANCE = "instance"
    AUTO_SCALING_GROUP = "auto_scaling_group"
    SPOT_FLEET = "spot_fleet"
    OTHER = "other"

    @property
    def description(self) -> str:
        """How people are told of it."""
        return (
            self.value.replace("_", " ").replace("auto scaling", "Auto Scaling").replace("spot fleet", "Spot Fleet")
        )


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Owner:
    """What replaces an instance: it itself where nothing does.

    Attributes:
        kind: What it is.
        id: Its name or id; for `OTHER`, how people are told of it.
    """

    kind: OwnerKind
    id: str

    @property
    def description(self) -> str:
        """How people are told of it."""
        name = printable(self.id)
        return name if self.kind in (OwnerKind.INSTANCE, OwnerKind.OTHER) else f"the {self.kind.description} {name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """One instance that lives and is billed.

    Attributes:
        id: Its id.
        instance_type: Its type.
        launched: When it was last started.
        owner: What replaces it.
        node_group: The node group that it belongs to. Empty: to none.
        running: Whether it runs; if not, it is about to.
        reserved: What it runs in that is billed all the same. None: stopping it saves money.
        spot_request: The id of its Spot Instance request. None: it is no Spot Instance.
        ebs_root: Whether its root volume stays when it is stopped.
        hibernates: Whether it is set up to hibernate.
        vcpus: How many vCPUs it has. 0: that is not known.
        idle_tags: What its tags say.
    """

    id: str
    instance_type: str
    launched: datetime
    owner: Owner
    node_group: str = ""
    running: bool = True
    reserved: str | None = None
    spot_request: str | None = None
    ebs_root: bool = True
    hibernates: bool = False
    vcpus: int = 0
    idle_tags: IdleTags = NO_IDLE_TAGS

    @property
    def itself(self) -> Owner:
        """It as that which carries tags."""
        return Owner(kind=OwnerKind.INSTANCE, id=self.id)


def read_cluster(client: "EC2Client", settings: IdleFunctionSettings) -> list[Instance]:
    """Read every instance of the cluster that runs, or is about to."""
    return list(
        _read(
            client,
            settings,
            [
                {"Name": f"tag:{settings.tag}", "Values": [settings.cluster]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ],
        )
    )


def read_again(client: "EC2Client", settings: IdleFunctionSettings, ids: Sequence[str]) -> dict[str, Instance]:
    """Read some instances once more; those that run no longer, or are the cluster's no longer, are left out."""
    found: dict[str, Instance] = {}
    for start in range(0, len(ids), PAGE_SIZE):
        # A filter does not refuse the ids of instances that are gone, and takes as many as a page holds.
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
        filters: list[FilterTypeDef] = [
            {"Name": "instance-id", "Values": list(ids[start : start + PAGE_SIZE])},
            {"Name": f"tag:{settings.tag}", "Values": [settings.cluster]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        found |= {instance.id: instance for instance in _read(client, settings, filters)}
    return found


def read_stopped(client: "EC2Client", settings: IdleFunctionSettings) -> list[Instance]:
    """Read the instances that a run has stopped or terminated, and has not told people of."""
    return list(
        _read(
            client,
            settings,
            [
                {"Name": "tag-key", "Values": [STOPPING_TAG]},
                {"Name": f"tag:{settings.tag}", "Values": [settings.cluster]},
                {"Name": "instance-state-name", "Values": ["stopping", "stopped", "shutting-down", "terminated"]},
            ],
        )
    )


def _read(client: "EC2Client", settings: IdleFunctionSettings, filters: "list[FilterTypeDef]") -> Iterator[Instance]:
    request: dict[str, Any] = {"Filters": filters, "MaxResults": PAGE_SIZE}
    while True:
        answer = client.describe_instances(**request)
        request["NextToken"] = answer.get("NextToken", "")
        for reservation in answer["Reservations"]:
            for raw in reservation.get("Instances", []):
                yield parse_instance(raw, settings)
        del answer  # Two pages at a time would be twice the memory.
        if not request["NextToken"]:
            return


def parse_instance(raw: "InstanceTypeDef", settings: IdleFunctionSettings) -> Instance:
    """Read what DescribeInstances says of one instance."""
    tags = {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
    node_group = _node_group(tags, settings)
    lifecycle = raw.get("InstanceLifecycle", "")
    return Instance(
        id=raw.get("InstanceId", ""),
        instance_type=raw.get("InstanceType", ""),
        launched=raw["LaunchTime"],
        owner=_owner(raw, tags, node_group, settings),
        node_group=node_group,
        running=raw.get("State", {}).get("Name") == "running",
        reserved=_reserved(raw, lifecycle),
        spot_request=raw.get("SpotInstanceRequestId", "") if lifecycle == _SPOT else None,
        ebs_root=raw.get("RootDeviceType") == "ebs",
        hibernates=raw.get("HibernationOptions", {}).get("Configured", False),
        vcpus=_vcpus(raw),
        idle_tags=IdleTags.from_tags(tags),
    )


def _node_group(tags: Mapping[str, str], settings: IdleFunctionSettings) -> str:
    """Return the node group: a node of a Spot Fleet goes with it, whatever people have made of its tags."""
    fleet = tags.get(SPOT_FLEET_TAG)
    of_fleet = (name for name, group in settings.groups.items() if group.fleet and group.fleet == fleet)
    return next(of_fleet, tags.get(NODE_GROUP_TAG, ""))


def _owner(raw: "InstanceTypeDef", tags: Mapping[str, str], node_group: str, settings: IdleFunctionSettings) -> Owner:
    operator, own = raw.get("Operator", {}), settings.groups.get(node_group)
    group, fleet = tags.get(GROUP_TAG), tags.get(SPOT_FLEET_TAG)
    if operator.get("Managed"):
        return _other(operator.get("Principal") or "another service")
    if group and own is not None and own.fleet is None:
        return Owner(kind=OwnerKind.AUTO_SCALING_GROUP, id=group)
    if fleet and own is not None and own.fleet == fleet:
        return Owner(kind=OwnerKind.SPOT_FLEET, id=fleet)
    foreign = {"Auto Scaling group": group, "Spot Fleet request": fleet, "EC2 Fleet": tags.get(EC2_FLEET_TAG)}
    for kind, name in foreign.items():
        if name:
            return _other(f"the {kind} {name}, which is none of the cluster's")
    return Owner(kind=OwnerKind.INSTANCE, id=raw.get("InstanceId", ""))


def _vcpus(raw: "InstanceTypeDef") -> int:
    # An instance may be launched with fewer than its type has.
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CpuOptions.html
    options = raw.get("CpuOptions", {})
    return options.get("CoreCount", 0) * options.get("ThreadsPerCore", 0)


def _other(words: str) -> Owner:
    return Owner(kind=OwnerKind.OTHER, id=words)


def _reserved(raw: "InstanceTypeDef", lifecycle: str) -> str | None:
    # The lifecycle says it too, and is all that a runtime whose boto3 is older than CapacityBlockId shows.
    block, reservation = raw.get("CapacityBlockId"), raw.get("CapacityReservationId")
    if block or lifecycle == "capacity-block":
        return f"the Capacity Block {block or reservation}" if block or reservation else "a Capacity Block"
    if lifecycle in _RESERVED_LIFECYCLES:
        return f"{_RESERVED_LIFECYCLES[lifecycle]}{f' {reservation}' if reservation else ''}"
    return f"the capacity reservation {reservation}" if reservation else None
