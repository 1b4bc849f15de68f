"""Spot Instance requests: one for each Spot Instance, however it was launched.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html
"""

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import convert_tag_spec

_GONE = frozenset({"shutting-down", "terminated"})
_STATUS = {
    "active": ("fulfilled", "Your spot request is fulfilled."),
    "disabled": ("instance-stopped-by-user", "The instance was stopped by its user."),
    "closed": ("instance-terminated-by-user", "The instance was terminated by its user."),
}


class SpotRequest(TaggedEC2Resource):  # type: ignore[misc] # moto's modules are untyped here
    """One request and its instance, in the attributes that moto's answers and filters read."""

    def __init__(self, ec2: Any, instance: Any, options: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        self.ec2_backend = ec2
        self.id = f"sir-{token_hex(4)}"
        self.instance = instance
        self.type = str(options.get("SpotInstanceType") or "one-time")
        self.instance_interruption_behavior = str(options.get("InstanceInterruptionBehavior") or "terminate")
        self.valid_until = options.get("ValidUntil")
        self.create_time = utcnow()
        self.add_tags(dict(tags))

    @property
    def spot_instance_request_id(self) -> str:
        """The id, as the answer names it."""
        return self.id

    @property
    def instance_id(self) -> str:
        """The instance's id."""
        return str(self.instance.id)

    @property
    def state(self) -> str:
        """What became of the request; a persistent one of a stopped instance is disabled."""
        if self.instance.state in _GONE:
            return "closed"
        return "active" if self.instance.state in {"pending", "running"} else "disabled"

    @property
    def status(self) -> dict[str, Any]:
        """Why the state is what it is."""
        code, message = _STATUS[self.state]
        return {"Code": code, "Message": message, "UpdateTime": self.create_time}

    @property
    def product_description(self) -> str:
        """What it runs."""
        return "Linux/UNIX"

    @property
    def launched_availability_zone(self) -> str:
        """Where its instance runs."""
        return str(self.instance.placement.zone)

    @property
    def launch_specification(self) -> dict[str, Any]:
        """What its instance was launched from."""
        return {"ImageId": self.instance.image_id, "InstanceType": self.instance.instance_type}


def requests_of(ec2: Any) -> dict[str, SpotRequest]:
    """Return the requests of a region, by id: moto's own place for them."""
    requests: dict[str, SpotRequest] = ec2.spot_instance_requests
    return requests


def request_of(ec2: Any, instance: Any) -> SpotRequest | None:
    """Return the request that an instance came from; None of one that is no Spot Instance."""
    return requests_of(ec2).get(getattr(instance, "spot_instance_request_id", None) or "")


def place(ec2: Any, instance: Any, data: Mapping[str, Any]) -> None:
    """Make the request that a Spot Instance comes from, by the data that it is launched from."""
    options = (data.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
    tags = convert_tag_spec(data.get("TagSpecifications") or []).get("spot-instances-request", {})
    request = SpotRequest(ec2, instance, options, tags)
    requests_of(ec2)[request.id] = request
    instance.spot_instance_request_id = request.id
