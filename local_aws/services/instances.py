"""DescribeInstances by pages of instances, and tags found without a search through everybody's.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
"""

import re
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix, passes_filter_dict, simple_aws_filter_to_re

from local_aws.launch_facts import Ec2Refusal
from local_aws.services import placement_groups
from local_aws.services.answers import page

_LEAST, _MOST = 5, 1000
# What moto's filters lack: the filter's name, and how moto's instances call it.
_MORE_FILTERS = {"capacity-reservation-id": "capacity_reservation_id", "instance-lifecycle": "lifecycle"}
# What moto's filters take, and EC2 does not.
_UNKNOWN_FILTERS = frozenset({"group-id"})


def describe_instances(response: Any) -> ActionResult:
    """Answer DescribeInstances. A page has up to MaxResults instances, whatever reservation they came with."""
    response.error_on_dryrun()
    ec2, params = response.ec2_backend, response._get_params()
    wanted, size = params.get("InstanceIds") or [], params.get("MaxResults")
    if wanted and size is not None:
        raise Ec2Refusal(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    if size is not None and not _LEAST <= int(size) <= _MOST:
        raise Ec2Refusal(
            "InvalidParameterValue",
            f"Value ( {size} ) for parameter maxResults is invalid. Expecting a value between {_LEAST} and {_MOST}.",
        )
    if wanted:
        ec2.get_multi_instances_by_id(wanted)  # refuses unknown ones
    filters = response._filters_from_querystring()
    for name in _UNKNOWN_FILTERS.intersection(filters):
        raise Ec2Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
    asked = frozenset(wanted)
    found = [pair for pair in _pairs(ec2) if (not asked or pair[1].id in asked) and _passes(pair[1], filters)]
    some, token = page(found, params.get("NextToken"), size or _MOST)
    placement_groups.have_terminated(instance for _, instance in some)
    return ActionResult({"Reservations": _reservations(some), "NextToken": token})


def _pairs(ec2: Any) -> Iterator[tuple[Any, Any]]:
    for reservation in list(ec2.reservations.values()):
        for instance in reservation.instances:
            yield reservation, instance


def _passes(instance: Any, filters: dict[str, Any]) -> bool:
    for name, values in filters.items():
        if name in _MORE_FILTERS:
            if getattr(instance, _MORE_FILTERS[name], None) not in values:
                return False
        elif name == "instance.group-id":
            groups = {group.id for group in instance.security_groups}
            if not any(re.fullmatch(simple_aws_filter_to_re(value), group) for value in values for group in groups):
                return False
        elif name.startswith("tag:") and not any(sign in value for value in values for sign in "*?"):
            # moto compiles each value to a pattern, for each instance.
            if instance.ec2_backend.tags.get(instance.id, {}).get(name[4:]) not in values:
                return False
        elif not passes_filter_dict(instance, {name: values}):
            return False
    return True


def _reservations(found: Sequence[tuple[Any, Any]]) -> list[Any]:
    shown: dict[str, Any] = {}
    for reservation, instance in found:
        if reservation.id not in shown:
            shown[reservation.id] = copy(reservation)
            shown[reservation.id].instances = []
        shown[reservation.id].instances.append(instance)
    return list(shown.values())


def cpu_options(instance: Any) -> dict[str, int]:
    """Return what DescribeInstances says of an instance's CPUs: what its type has by default."""
    facts = INSTANCE_TYPES[instance.instance_type]["VCpuInfo"]
    threads = facts.get("DefaultThreadsPerCore", 1)
    return {"CoreCount": facts["DefaultVCpus"] // threads, "ThreadsPerCore": threads}


def transition_reason(instance: Any) -> str:
    """Return StateTransitionReason, such as `User initiated (2026-11-22 18:30:00 GMT)`."""
    reason: str = instance._reason
    return reason.replace(" UTC)", " GMT)")


def tags_of(resource: Any) -> list[dict[str, str]]:
    """Return a resource's tags; replaces `TaggedEC2Resource.get_tags`, which reads the tags of all resources."""
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "") if resource.id else ""
    tags = resource.ec2_backend.tags.get(resource.id) or {}
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind} for key, value in tags.items()
    ]
