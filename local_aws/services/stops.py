"""What EC2 refuses to stop: all or nothing, where moto stops nearly anything.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StopInstances.html
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

from local_aws.launch_facts import Ec2Refusal
from local_aws.services import group_members, hyperpod
from local_aws.services.spot_fleet_requests import FLEET_TAG
from local_aws.services.spot_requests import request_of

_ID = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
_STOPPABLE = frozenset({"pending", "running", "stopping", "stopped"})
_STOPPED = frozenset({"stopping", "stopped"})


def stop_instances(response: Any) -> ActionResult:
    """Answer StopInstances: nothing is stopped if one of them cannot be."""
    ec2 = response.ec2_backend
    instances = _instances(ec2, list(response._get_param("InstanceIds", [])))
    hibernate = response._get_bool_param("Hibernate", False)
    for instance in instances:
        for refusal in _refusals(ec2, instance, hibernate=hibernate):
            raise refusal
    response.error_on_dryrun()
    states = [
        {
            "InstanceId": instance.id,
            "PreviousState": {"Code": instance.state_code, "Name": instance.state},
            "CurrentState": {"Code": 80, "Name": "stopped"}
            if instance.state == "stopped"
            else {"Code": 64, "Name": "stopping"},
        }
        for instance in instances
    ]
    running = [instance for instance in instances if instance.state not in _STOPPED]
    ec2.stop_instances([instance.id for instance in running])
    for instance in running:
        group_members.replace_stopped(instance)
    return ActionResult({"StoppingInstances": states})


def _instances(ec2: Any, ids: list[str]) -> list[Any]:
    for each in ids:
        if not _ID.fullmatch(each):
            raise Ec2Refusal("InvalidInstanceID.Malformed", f'Invalid id: "{each}"')
    found: list[Any] = ec2.get_multi_instances_by_id(ids)  # refuses unknown ones as EC2 does
    return found


def _refusals(ec2: Any, instance: Any, *, hibernate: bool) -> Iterator[Ec2Refusal]:
    """Yield why EC2 does not stop an instance, in the words in which its users quote it."""
    request = request_of(ec2, instance)
    if instance.state not in _STOPPABLE:
        yield Ec2Refusal(
            "IncorrectInstanceState",
            f"This instance '{instance.id}' is not in a state from which it can be stopped.",
        )
    if FLEET_TAG in ec2.tags.get(instance.id, {}):
        yield Ec2Refusal(
            "UnsupportedOperation",
            f"You can't stop the Spot Instance '{instance.id}' because it is in a fleet, which does not support "
            "stop.",
        )
    if request is not None and request.type != "persistent":
        yield Ec2Refusal(
            "UnsupportedOperation",
            f"You can't stop the Spot Instance '{instance.id}' because it is associated with a one-time Spot "
            "Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.",
        )
    if instance.root_device_type != "ebs":
        yield Ec2Refusal(
            "UnsupportedOperation",
            f"The instance '{instance.id}' does not have an 'ebs' root device type and cannot be stopped.",
        )
    if instance.disable_api_stop:
        yield Ec2Refusal(
            "OperationNotPermitted",
            f"The instance '{instance.id}' may not be stopped. Modify its 'disableApiStop' instance attribute and "
            "try again.",
        )
    if hibernate and not (instance.hibernation_options or {}).get("Configured"):
        # No source quotes the sentence; AWS's own scheduler reads the id after its last colon.
        yield Ec2Refusal(
            "UnsupportedHibernationConfiguration",
            f"The following instance is not configured for hibernation: {instance.id}",
        )


def set_launch_time(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let instances have been launched at another time."""
    ec2 = ec2_backends[str(request["account"])][str(request["region"])]
    moment = datetime.fromisoformat(request["launch_time"]).astimezone(UTC).replace(tzinfo=None)
    for instance_id in request["instance_ids"]:
        if hyperpod.set_launch_time(str(request["account"]), str(request["region"]), instance_id, moment):
            continue
        instance = ec2.get_instance_by_id(instance_id)
        if instance is None:
            raise ValueError(f"there is no instance {instance_id}")
        instance.launch_time = moment
    return {}
