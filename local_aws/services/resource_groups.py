"""Resource groups as far as launches target them: groups of Capacity Reservations, and what is in them.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups.html
https://docs.aws.amazon.com/ARG/latest/APIReference/about-slg.html
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from moto.ec2.models import ec2_backends
from moto.resourcegroups.models import resourcegroups_backends

from local_aws.refusal import Refusal
from local_aws.services.reserved_capacity import reservations_of

_POOL, _GENERIC = "AWS::EC2::CapacityReservationPool", "AWS::ResourceGroups::Generic"
_RESERVATION = "AWS::EC2::CapacityReservation"


def targetable(ec2: Any) -> frozenset[str]:
    """Return the ARNs of the groups that a launch can target."""
    groups = resourcegroups_backends[ec2.account_id][ec2.region_name].groups.by_arn
    return frozenset(arn for arn, group in groups.items() if _is_pool(group))


def reservations_in(ec2: Any, arn: str) -> list[str]:
    """Return the ids of the reservations in a group, in the order in which they were put there."""
    group = resourcegroups_backends[ec2.account_id][ec2.region_name].groups.by_arn[arn]
    return [member.rpartition("/")[2] for member in _members(group)]


def checked(original: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return CreateGroup or PutGroupConfiguration so that it refuses a configuration that lacks its other half.

    https://docs.aws.amazon.com/ARG/latest/userguide/about-slg-types.html
    """

    @wraps(original)
    def with_configuration(response: Any) -> str:
        _check_configuration(response._get_param("Configuration") or [])
        return original(response)

    return with_configuration


def _check_configuration(configuration: Iterable[Mapping[str, Any]]) -> None:
    items = {item["Type"]: item.get("Parameters") or [] for item in configuration}
    allowed = {
        value
        for parameter in items.get(_GENERIC, [])
        if parameter["Name"] == "allowed-resource-types"
        for value in parameter.get("Values") or []
    }
    if _POOL in items and allowed != {_RESERVATION}:
        raise Refusal(
            "BadRequestException",
            f"A group configuration of the type {_POOL} needs another one of the type {_GENERIC} with the parameter "
            f"allowed-resource-types set to {_RESERVATION}.",
        )
    if _RESERVATION in allowed and _POOL not in items:
        raise Refusal(
            "BadRequestException",
            f"A group configuration that allows {_RESERVATION} needs another one of the type {_POOL}.",
        )


def group_resources(response: Any) -> str:
    """Answer GroupResources for Capacity Reservations.

    https://docs.aws.amazon.com/ARG/latest/APIReference/API_GroupResources.html
    """
    group, arns = _group(response), response._get_param("ResourceArns") or []
    if not _is_pool(group):
        raise NotImplementedError("GroupResources for other groups than those of Capacity Reservations")
    ec2 = ec2_backends[response.current_account][response.region]
    known = {reservation.arn for reservation in reservations_of(ec2).values()}
    added = [arn for arn in arns if arn in known]
    group.members = list(dict.fromkeys([*_members(group), *added]))
    failed = [
        {"ResourceArn": arn, "ErrorCode": "RESOURCE_NOT_FOUND", "ErrorMessage": f"The resource {arn} does not exist."}
        for arn in arns
        if arn not in known
    ]
    return json.dumps({"Succeeded": added, "Failed": failed, "Pending": []})


def ungroup_resources(response: Any) -> str:
    """Answer UngroupResources."""
    group, arns = _group(response), response._get_param("ResourceArns") or []
    group.members = [arn for arn in _members(group) if arn not in arns]
    return json.dumps({"Succeeded": arns, "Failed": [], "Pending": []})


def list_group_resources(response: Any) -> str:
    """Answer ListGroupResources."""
    group = _group(response)
    identifiers = [{"ResourceArn": arn, "ResourceType": _RESERVATION} for arn in _members(group)]
    return json.dumps({"Resources": [{"Identifier": one} for one in identifiers], "ResourceIdentifiers": identifiers})


def _group(response: Any) -> Any:
    named = response._get_param("Group") or response._get_param("GroupName")
    groups = response.resourcegroups_backend.groups
    group = groups.by_arn.get(named) or groups.by_name.get(named)
    if group is None:
        raise Refusal("NotFoundException", f"The group {named} does not exist.")
    return group


def _members(group: Any) -> list[str]:
    return getattr(group, "members", [])


def _is_pool(group: Any) -> bool:
    return any(item["Type"] == _POOL for item in group.configuration or [])
