"""A request of CloudFormation's, and the reservation that it asks for.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/crpg-ref-requests.html
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from cluster_contract.tags import RESERVATION_RESOURCE_TAG, STACK_TAG

_RESERVATION_PREFIX = "cr-"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The reservation that a template describes.

    Attributes:
        fixed: The settings that EC2 cannot change, by their names in EC2's API.
        count: Number of instances.
        end: The time at which EC2 ends it. None: never.
        tags: The tags.
    """

    fixed: Mapping[str, str]
    count: int
    end: datetime | None
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Self:
        """Read the properties of a custom resource, all of whose values are texts.

        Args:
            properties: The properties, named as those of `AWS::EC2::CapacityReservation`.
        """
        end = properties.get("EndDate")
        tags = [tag for each in properties.get("TagSpecifications", ()) for tag in each["Tags"]]
        return cls(
            fixed={name: properties[name] for name in FIXED if name in properties},
            count=int(properties["InstanceCount"]),
            end=None if end is None else datetime.fromisoformat(end),
            tags={tag["Key"]: tag["Value"] for tag in tags},
        )


FIXED = (
    "AvailabilityZone",
    "InstanceMatchCriteria",
    "InstancePlatform",
    "InstanceType",
    "PlacementGroupArn",
    "Tenancy",
)
"""The settings that need a new reservation when they change.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyCapacityReservation.html
"""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request.

    Attributes:
        kind: `Create`, `Update` or `Delete`.
        id: The request's id, which each of its deliveries has.
        stack: The stack's name.
        resource: The logical id of the custom resource.
        physical_id: The id that the function answered before, or one of CloudFormation's own. Empty: there is none.
        wanted: The reservation that the template describes.
        before: The reservation that it described before. None: nothing is updated.
    """

    kind: str
    id: str
    stack: str
    resource: str
    physical_id: str
    wanted: Wanted
    before: Wanted | None

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read an event.

        Args:
            event: What CloudFormation sends.
        """
        before = event.get("OldResourceProperties")
        return cls(
            kind=event["RequestType"],
            id=event["RequestId"],
            stack=event["StackId"].split("/")[1],
            resource=event["LogicalResourceId"],
            physical_id=event.get("PhysicalResourceId", ""),
            wanted=Wanted.of(event["ResourceProperties"]),
            before=None if before is None else Wanted.of(before),
        )

    @property
    def reservation_id(self) -> str | None:
        """The reservation that the function answered before. None: it answered none."""
        return self.physical_id if self.physical_id.startswith(_RESERVATION_PREFIX) else None

    @property
    def own_tags(self) -> Mapping[str, str]:
        """The tags by which the reservations of this custom resource are found."""
        return {STACK_TAG: self.stack, RESERVATION_RESOURCE_TAG: self.resource}
