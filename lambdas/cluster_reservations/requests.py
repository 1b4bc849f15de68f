"""What CloudFormation asks for: the terms of a reservation, and which one it knows."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cluster_common.errors import InvalidEventError
from cluster_contract.reservations import ON_IDLE, RELEASE
from cluster_contract.tags import NODE_GROUP_TAG, RESOURCE_TAG, STACK_TAG, TERMS_TAG
from cluster_contract.times import parse_time

_ID = re.compile(r"cr-[0-9a-f]{8,17}")
_KINDS = ("Create", "Update", "Delete")

# What EC2 changes of no reservation, and what is not changed here: a reservation with another is another.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
_FIXED = (
    "AvailabilityZone",
    "InstanceMatchCriteria",
    "InstancePlatform",
    "InstanceType",
    "PlacementGroupArn",
    "Tenancy",
)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a reservation should be.

    Attributes:
        fixed: What can never be changed of it, by the names of EC2's parameters.
        instances: For how many instances.
        ends: When it ends. None: when it is cancelled.
        tags: Its tags, beside those by which this function finds it.
        releases: Whether the power function lowers it while the node group is stopped.
    """

    fixed: Mapping[str, str]
    instances: int
    ends: datetime | None
    tags: Mapping[str, str]
    releases: bool

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> "Terms":
        """Read the properties of the custom resource, which are texts."""
        end = properties.get("EndDate")
        return cls(
            fixed={name: str(properties[name]) for name in _FIXED if name in properties},
            instances=int(properties["InstanceCount"]),
            ends=parse_time(end) if end else None,
            tags={tag["Key"]: tag["Value"] for each in properties["TagSpecifications"] for tag in each["Tags"]},
            releases=properties.get(ON_IDLE) == RELEASE,
        )

    @property
    def node_group(self) -> str:
        """The name of the node group that it is for."""
        return self.tags.get(NODE_GROUP_TAG, "")

    @property
    def digest(self) -> str:
        """What tells reservations apart that cannot become each other."""
        return hashlib.sha256(json.dumps(dict(self.fixed), sort_keys=True).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.instances} {self.fixed['InstanceType']} in {self.fixed['AvailabilityZone']}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request of CloudFormation's.

    Attributes:
        kind: `Create`, `Update` or `Delete`.
        id: The request's id, which is the same whenever Lambda delivers it again.
        stack: The id of the stack.
        resource: The logical id of the resource.
        physical_id: What CloudFormation calls what there is. Empty: nothing.
        terms: What the reservation should be; of a deletion, what it is.
        before: What it was before an update.
    """

    kind: str
    id: str
    stack: str
    resource: str
    physical_id: str
    terms: Terms
    before: Terms | None = None

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Request":
        """Read an event.

        Raises:
            InvalidEventError: It is no request of CloudFormation's.
        """
        if event.get("RequestType") not in _KINDS or "ResponseURL" not in event:
            raise InvalidEventError(
                "the reservation function takes requests of CloudFormation only: change the cluster's file and deploy"
            )
        old = event.get("OldResourceProperties")
        return cls(
            kind=event["RequestType"],
            id=event["RequestId"],
            stack=event["StackId"],
            resource=event["LogicalResourceId"],
            physical_id=event.get("PhysicalResourceId", ""),
            terms=Terms.of(event["ResourceProperties"]),
            before=None if old is None else Terms.of(old),
        )

    @property
    def reservation_id(self) -> str | None:
        """The reservation that CloudFormation knows. None: it knows none."""
        return self.physical_id if _ID.fullmatch(self.physical_id) else None

    @property
    def identity(self) -> Mapping[str, str]:
        """The tags of all reservations that were ever made for the resource.

        The name of a stack outlives it: a stack that is made again uses what an earlier one has left.
        """
        return {STACK_TAG: self.stack.split("/")[1], RESOURCE_TAG: self.resource}

    @property
    def tags(self) -> Mapping[str, str]:
        """All tags of the reservation that is asked for."""
        return {**self.terms.tags, **self.identity, TERMS_TAG: self.terms.digest}
