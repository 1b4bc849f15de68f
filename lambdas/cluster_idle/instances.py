"""Instances, as DescribeInstances returns them: what decides whether and how one can be stopped."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cluster_common.keep_tags import NO_KEEP_TAGS, KeepTags
from cluster_common.owners.ec2_nodes import IN_SERVICE
from cluster_common.owners.groups import OwnedGroup, node_group_of
from cluster_common.owners.kinds import OWNER_KINDS, OwnerTraits
from cluster_contract.idle import IdleFunctionSettings, IdleGroupSettings
from cluster_contract.tags import IDLE_NOTE_TAG
from cluster_contract.texts import printable

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

# A page of instances with many interfaces takes its place in memory: 200 of p5, with 32 each, take 50 MiB.
PAGE_SIZE = 200

# A tag that only EC2 can set, on instances of fleets that no node group has.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-ec2-fleet.html
EC2_FLEET_TAG = "aws:ec2:fleet-id"

_SPOT = "spot"
_RESERVED_LIFECYCLES: Mapping[str, str] = {
    "capacity-block": "a Capacity Block",
    "interruptible-capacity-reservation": "an interruptible capacity reservation",
}


_INSTANCE, _FOREIGN = "instance", "foreign"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Owner:
    """What replaces an instance when it ends: the instance stands for itself where nothing replaces it.

    Attributes:
        kind: The key of its traits, or that it is the instance itself or belongs to another service.
        id: Its name or id; of another service, how messages name it.
    """

    kind: str
    id: str

    @classmethod
    def itself(cls, instance_id: str) -> "Owner":
        """Return an instance that nothing owns, or that carries tags of its own."""
        return cls(kind=_INSTANCE, id=instance_id)

    @classmethod
    def of(cls, traits: OwnerTraits, name: str) -> "Owner":
        """Return one of the cluster's owners of nodes."""
        return cls(kind=traits.key, id=name)

    @classmethod
    def foreign(cls, description: str) -> "Owner":
        """Return another service, or an owner that is none of the cluster's."""
        return cls(kind=_FOREIGN, id=description)

    @property
    def key(self) -> str:
        """How the state table names it."""
        return f"{self.kind}/{self.id}"

    @property
    def is_instance(self) -> bool:
        """Whether it is an instance that nothing owns."""
        return self.kind == _INSTANCE

    @property
    def is_foreign(self) -> bool:
        """Whether it is another service, or none of the cluster's owners."""
        return self.kind == _FOREIGN

    @property
    def traits(self) -> OwnerTraits | None:
        """What kind of owner it is. None: an instance itself, or a foreign owner."""
        return OWNER_KINDS.get(self.kind)

    @property
    def description(self) -> str:
        """How messages name it."""
        return f"the {self.traits.noun} {printable(self.id)}" if self.traits else printable(self.id)


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
        keep_tags: What its tags say about keeping it.
        has_note: Whether it carries the note of a warning.
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
    keep_tags: KeepTags = NO_KEEP_TAGS
    has_note: bool = False

    @property
    def itself(self) -> Owner:
        """It as that which carries tags."""
        return Owner.itself(self.id)


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


def instances_of(group: OwnedGroup) -> Iterator[Instance]:
    """Yield the nodes of a group that EC2 does not describe, as far as they run or are about to.

    Args:
        group: The group, with its nodes.
    """
    for name, node in group.nodes.items():
        if node.launched is not None and node.state in (IN_SERVICE, "Pending"):
            yield Instance(
                id=name,
                instance_type=node.instance_type,
                launched=node.launched,
                owner=Owner.of(group.owner, group.name),
                node_group=group.node_group,
                running=node.state == IN_SERVICE,
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
    node_group = node_group_of(tags, settings.groups)
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
        keep_tags=KeepTags.from_tags(tags),
        has_note=IDLE_NOTE_TAG in tags,
    )


def _owner(raw: "InstanceTypeDef", tags: Mapping[str, str], node_group: str, settings: IdleFunctionSettings) -> Owner:
    operator, own = raw.get("Operator", {}), settings.groups.get(node_group)
    if operator.get("Managed"):
        return Owner.foreign(operator.get("Principal") or "another service")
    if own is not None and own.owner is not None and not OWNER_KINDS[own.owner.kind].instance_tags:
        # Nothing on the instance names such an owner: what it carries are the tags of its launch template.
        return Owner.of(OWNER_KINDS[own.owner.kind], own.owner.id)
    named = [(kind, name) for kind in OWNER_KINDS.values() if (name := kind.owner_named_by(tags))]
    for kind, name in named:
        if own is not None and _is_owned(own, kind, name):
            return Owner.of(kind, name)
    foreign = [(kind.noun, name) for kind, name in named]
    if tags.get(EC2_FLEET_TAG):
        foreign.append(("EC2 Fleet", tags[EC2_FLEET_TAG]))
    for noun, name in foreign:
        return Owner.foreign(f"the {noun} {name}, which is none of the cluster's")
    return Owner.itself(raw.get("InstanceId", ""))


def _is_owned(own: IdleGroupSettings, kind: OwnerTraits, name: str) -> bool:
    """Say whether a node group is an owner's by the settings: the one that they name, else Auto Scaling groups'."""
    return kind.key is own.owner_kind and (own.owner is None or own.owner.id == name)


def _vcpus(raw: "InstanceTypeDef") -> int:
    # An instance may be launched with fewer than its type has.
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CpuOptions.html
    options = raw.get("CpuOptions", {})
    return options.get("CoreCount", 0) * options.get("ThreadsPerCore", 0)


def _reserved(raw: "InstanceTypeDef", lifecycle: str) -> str | None:
    # The lifecycle says it too, and is all that a runtime whose boto3 is older than CapacityBlockId shows.
    block, reservation = raw.get("CapacityBlockId"), raw.get("CapacityReservationId")
    if block or lifecycle == "capacity-block":
        return f"the Capacity Block {block or reservation}" if block or reservation else "a Capacity Block"
    if lifecycle in _RESERVED_LIFECYCLES:
        return f"{_RESERVED_LIFECYCLES[lifecycle]}{f' {reservation}' if reservation else ''}"
    return f"the capacity reservation {reservation}" if reservation else None


def read_spot_requests(client: "EC2Client", ids: Collection[str]) -> dict[str, str]:
    """Say of Spot Instance requests why their instances cannot be stopped; empty where they can.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/stop-start-spot.html
    """
    found: dict[str, str] = {}
    ordered = sorted(ids)
    for start in range(0, len(ordered), PAGE_SIZE):
        pages = client.get_paginator("describe_spot_instance_requests").paginate(
            Filters=[{"Name": "spot-instance-request-id", "Values": ordered[start : start + PAGE_SIZE]}]
        )
        for page in pages:
            for raw in page["SpotInstanceRequests"]:
                request = raw.get("SpotInstanceRequestId", "")
                why = ""
                if raw.get("Type") != "persistent":
                    why = f"its Spot Instance request {request} is one-time: EC2 cannot stop it, terminate it"
                elif raw.get("LaunchGroup"):
                    why = f"its Spot Instance request {request} has a launch group: EC2 cannot stop it, terminate it"
                found[request] = why
    return found
