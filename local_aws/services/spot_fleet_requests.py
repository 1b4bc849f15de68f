"""One Spot Fleet request: launches from launch templates, replacements, modifications and the history.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-spot-fleets.html
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from moto.core.exceptions import ServiceException
from moto.core.utils import utcnow

from local_aws.services import launches
from local_aws.services.spot_fleet_rules import Pool, as_spot, pools, role_of

FLEET_TAG = "aws:ec2spot:fleet-request-id"

_GONE = frozenset({"shutting-down", "terminated"})

_ROLES = {"spotfleet.amazonaws.com": "AWSServiceRoleForEC2SpotFleet"}


@dataclass(frozen=True)
class FleetInstance:
    """An instance of a fleet."""

    instance: Any

    def described(self) -> dict[str, str]:
        """Return the instance as DescribeSpotFleetInstances shows it."""
        return {
            "InstanceId": self.instance.id,
            "InstanceType": self.instance.instance_type,
            "SpotInstanceRequestId": self.instance.spot_instance_request_id,
            "InstanceHealth": "healthy",
        }


@dataclass
class SpotFleet:
    """One Spot Fleet request: what was asked for, what runs, and what happened."""

    ec2: Any
    config: dict[str, Any]
    id: str = field(default_factory=lambda: f"sfr-{uuid4()}")
    state: str = "active"
    created: datetime = field(default_factory=utcnow)
    instances: list[FleetInstance] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    failed: bool = False

    @property
    def target(self) -> int:
        """How many instances the fleet shall have."""
        return int(self.config["TargetCapacity"])

    @property
    def terminates_excess(self) -> bool:
        """Whether instances beyond the target are terminated."""
        return str(self.config.get("ExcessCapacityTerminationPolicy", "default")).lower() == "default"

    def note(self, kind: str, event: str, description: str | None = None, instance: str | None = None) -> None:
        """Add an event to the history.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_EventInformation.html
        """
        information = {"EventSubType": event, "EventDescription": description, "InstanceId": instance}
        self.history.append({"EventType": kind, "EventInformation": information, "Timestamp": utcnow()})

    def look(self) -> None:
        """Notice what is gone, and launch or terminate until the fleet has its size or EC2 has no more to give."""
        for member in [each for each in self.instances if each.instance.state in _GONE]:
            self.instances.remove(member)
            self.note("instanceChange", "terminated", instance=member.instance.id)
        if self.state.startswith("cancelled"):
            if not self.instances and self.state != "cancelled":
                self._become("cancelled")
            return
        if self.state != "active":
            return
        missing = self.target - len(self.instances)
        if missing > 0:
            self._launch(missing)
        elif missing < 0 and self.terminates_excess:
            self._terminate(self.instances[missing:])

    def modify(self, changes: Mapping[str, Any]) -> None:
        """Bring the fleet to what is asked for."""
        asked = f" Requested targetCapacity: {changes['TargetCapacity']}" if "TargetCapacity" in changes else ""
        self.note("fleetRequestChange", "modify_in_progress", f"Modify request received.{asked}")
        self.config.update(changes)
        self.note("fleetRequestChange", "modify_succeeded", f"New targetCapacity: {self.target}")
        self.look()

    def cancel(self, *, terminate: bool) -> str:
        """Cancel the request, with its instances if they shall go too, and return the new state."""
        self._become("cancelled_terminating" if terminate else "cancelled_running")
        state = self.state
        if terminate:
            self._terminate(list(self.instances))
        self.look()
        return state

    def _become(self, state: str) -> None:
        self.state = state
        self.note("fleetRequestChange", state)

    def _launch(self, missing: int) -> None:
        """Launch from the pools in turn; what one cannot give is asked of the next."""
        self.failed = False
        role = role_of(self.ec2, self.config["IamFleetRole"])
        if role is None or not (role.managed_policies or role.policies):
            self._fail("iamFleetRoleInvalid", "The IAM fleet role does not have the permissions to launch instances.")
            return
        for pool in pools(self.ec2, self.config):
            missing -= self._launch_from(pool, missing)
            if missing == 0:
                return

    def _launch_from(self, pool: Pool, count: int) -> int:
        tags = {
            FLEET_TAG: self.id,
            "aws:ec2launchtemplate:id": pool.template_id,
            "aws:ec2launchtemplate:version": str(pool.template_version),
        }
        data = as_spot(pool.data, self.config)
        request = launches.LaunchRequest(data=data, subnet_id=pool.subnet_id, count=count, tags=tags, roles=_ROLES)
        failure: ServiceException | None
        try:
            launched, failure = launches.launch(self.ec2, request)
        except ServiceException as refusal:
            launched, failure = [], refusal
        for instance in launched:
            self.instances.append(FleetInstance(instance))
            self.note("instanceChange", "launched", _description(instance), instance.id)
        if launched:
            # As seen in https://github.com/kubernetes-retired/kube-aws/issues/843.
            self.note(
                "fleetRequestChange",
                "progress",
                f"{pool}, {launched[0].placement.zone}, capacityUnitsRequested: {count:.1f}, "
                f"totalCapacityUnitsFulfilled: {len(self.instances):.1f}, targetCapacity: {self.target}",
            )
        if failure is not None:
            # As seen in https://github.com/c6fc/npk/issues/70, where capacity was missing.
            self._fail("spotFleetRequestConfigurationInvalid", f"{pool}: {failure.message}")
        return len(launched)

    def _fail(self, event: str, description: str) -> None:
        self.failed = True
        self.note("error", event, description)

    def _terminate(self, doomed: Sequence[FleetInstance]) -> None:
        for member in doomed:
            self.note("instanceChange", "termination_notified", instance=member.instance.id)
        if doomed:
            self.ec2.terminate_instances([member.instance.id for member in doomed])
        self.look()

    def _activity(self) -> str | None:
        if self.state != "active":
            return None
        if len(self.instances) > self.target and self.terminates_excess:
            return "pending_termination"
        if len(self.instances) >= self.target:
            return "fulfilled"
        return "error" if self.failed else "pending_fulfillment"

    def described(self) -> dict[str, Any]:
        """Return the request as DescribeSpotFleetRequests shows it."""
        defaults = {
            "AllocationStrategy": "lowestPrice",
            "ExcessCapacityTerminationPolicy": "default",
            "InstanceInterruptionBehavior": "terminate",
            "OnDemandFulfilledCapacity": 0.0,
            "OnDemandTargetCapacity": 0,
            "ReplaceUnhealthyInstances": False,
            "Type": "maintain",
        }
        shown = {**defaults, **self.config, "FulfilledCapacity": float(len(self.instances))}
        return {
            "ActivityStatus": self._activity(),
            "CreateTime": self.created,
            "SpotFleetRequestConfig": shown,
            "SpotFleetRequestId": self.id,
            "SpotFleetRequestState": self.state,
            "Tags": [{"Key": key, "Value": value} for key, value in self.ec2.tags.get(self.id, {}).items()],
        }


def _description(instance: Any) -> str:
    return json.dumps(
        {
            "instanceType": instance.instance_type,
            "image": instance.image_id,
            "productDescription": "Linux/UNIX",
            "availabilityZone": instance.placement.zone,
        },
        separators=(",", ":"),
    )
