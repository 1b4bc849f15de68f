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
from cluster_contract.tags import NODE_GROUP_TAG, REQUESTS_TAG, RESOURCE_TAG, STACK_TAG, TERMS_TAG
from cluster_contract.times import parse_time

_ID = re.compile(r"cr-[0-9a-f]{8,17}")
_KINDS = ("Create", "Update", "Delete")

# A tag's value has at most 256 characters.
_DIGEST_LENGTH, _REQUESTS = 8, 24

_PLACE = "PlacementGroupArn"

# What EC2 changes of no reservation, and what is not changed here: a reservation with another is another.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
_FIXED = (
    "AvailabilityZone",
    "InstanceMatchCriteria",
    "InstancePlatform",
    "InstanceType",
    _PLACE,
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
        """Read the properties of the custom resource, which are texts.

        Raises:
            ValueError: One is none that a reservation has.
        """
        end, count = properties.get("EndDate"), str(properties["InstanceCount"])
        if not count.isdecimal():
            raise ValueError(
                f"InstanceCount must be a whole number, got {count!r}: give count such a number, and deploy again"
            )
        return cls(
            fixed={name: str(properties[name]) for name in _FIXED if name in properties},
            instances=int(count),
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
        before: What it was before an update. None: nothing that could be read.
        problem: Why the properties cannot be read. Empty: they can.
    """

    kind: str
    id: str
    stack: str
    resource: str
    physical_id: str
    terms: Terms
    before: Terms | None = None
    problem: str = ""

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
        terms, problem = _read(event["ResourceProperties"])
        return cls(
            kind=event["RequestType"],
            id=event["RequestId"],
            stack=event["StackId"],
            resource=event["LogicalResourceId"],
            physical_id=event.get("PhysicalResourceId", ""),
            terms=terms or _NOTHING,
            before=_read(event.get("OldResourceProperties", {}))[0],
            problem=problem,
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
        return {STACK_TAG: self._stack_name, RESOURCE_TAG: self.resource}

    def has_place(self, placement_group: str) -> bool:
        """Say whether a placement group is the request's, or an earlier one of the same resource of the stack.

        CloudFormation names both `<stack>-<logical id>-<random characters>`. Other placement groups of the stack, and
        those of a stack whose name begins with this stack's, differ before the last hyphen.

        Args:
            placement_group: The ARN of the placement group. Empty: none.
        """
        named = [
            each.fixed[_PLACE] for each in (self.terms, self.before) if each is not None and _PLACE in each.fixed
        ]
        known = {each.rpartition("-")[0] for each in named if f"/{self._stack_name}-" in each}
        return placement_group in named or placement_group.rpartition("-")[0] in known

    def tags(self, there: Mapping[str, str]) -> Mapping[str, str]:
        """Return all tags of the reservation that is asked for.

        Args:
            there: The tags of the reservation that is there.
        """
        earlier = [one for one in _requests(there) if one != self._digest]
        requests = " ".join([*earlier, self._digest][-_REQUESTS:])
        return {**self.terms.tags, **self.identity, TERMS_TAG: self.terms.digest, REQUESTS_TAG: requests}

    def is_superseded(self, there: Mapping[str, str]) -> bool:
        """Say whether a newer request was carried out since Lambda delivered this one first.

        Args:
            there: The tags of the reservation.
        """
        return self._digest in _requests(there)[:-1]

    @property
    def _stack_name(self) -> str:
        return self.stack.split("/")[1]

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.id.encode()).hexdigest()[:_DIGEST_LENGTH]


_NOTHING = Terms(fixed={}, instances=0, ends=None, tags={}, releases=False)


def _read(properties: Mapping[str, Any]) -> tuple[Terms | None, str]:
    """Return the terms, or why there are none."""
    try:
        return Terms.of(properties), ""
    except (KeyError, ValueError) as error:
        return None, f"the properties of the reservation cannot be read: {error}"


def _requests(tags: Mapping[str, str]) -> list[str]:
    return tags.get(REQUESTS_TAG, "").split()
