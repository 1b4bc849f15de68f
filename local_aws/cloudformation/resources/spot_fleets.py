"""Spot Fleets."""

from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    changed,
    picked,
    tag_changes,
    tags_of,
    wait_for_termination,
)

_CONFIG = "SpotFleetRequestConfigData"
# Of the properties that are not create-only, those that ModifySpotFleetRequest takes.
_IN_PLACE = frozenset({"Context", "ExcessCapacityTerminationPolicy", "LaunchTemplateConfigs", "TargetCapacity"})


class SpotFleet(Handler):
    """A fleet whose every update sends the template's target, whatever somebody has made of it since.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-spotfleet.html
    """

    type = "AWS::EC2::SpotFleet"
    carries_out = frozenset({_CONFIG, "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        config = _config(properties)
        tags = tags_of(properties)
        if tags:
            own = {"ResourceType": "spot-fleet-request", "Tags": as_tags(tags)}
            config["TagSpecifications"] = [*(config.get("TagSpecifications") or []), own]
        answer = call.client("ec2").request_spot_fleet(SpotFleetRequestConfig=config)
        return {"Id": call.made(answer["SpotFleetRequestId"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        fixed = changed(properties[_CONFIG], before[_CONFIG]) - _IN_PLACE
        if fixed:
            raise self.cannot_change(f"{_CONFIG}.{name}" for name in fixed)
        ec2, config = call.client("ec2"), _config(properties)
        ec2.modify_spot_fleet_request(
            SpotFleetRequestId=call.physical_id,
            **{"ExcessCapacityTerminationPolicy": "default", **picked(config, *_IN_PLACE)},
        )
        put, removed = tag_changes(properties, before)
        if put:
            ec2.create_tags(Resources=[call.physical_id], Tags=as_tags(put))
        if removed:
            ec2.delete_tags(Resources=[call.physical_id], Tags=[{"Key": key} for key in removed])
        return {}

    def delete(self, call: Call) -> None:
        answer = call.client("ec2").cancel_spot_fleet_requests(
            SpotFleetRequestIds=[call.physical_id], TerminateInstances=True
        )
        for refused in answer["UnsuccessfulFleetRequests"]:
            if refused["Error"]["Code"] not in {"fleetRequestIdDoesNotExist", "fleetRequestNotInCancellableState"}:
                raise HandlerError(refused["Error"]["Message"])
        wait_for_termination(call, "aws:ec2spot:fleet-request-id")


def _config(properties: Properties) -> dict[str, Any]:
    """Return the request as EC2 takes it.

    Raises:
        HandlerError: for a launch template's version that CloudFormation does not take:
            https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-ec2-spotfleet-fleetlaunchtemplatespecification.html
    """
    config = dict(properties[_CONFIG])
    for each in config.get("LaunchTemplateConfigs") or []:
        version = (each.get("LaunchTemplateSpecification") or {}).get("Version", "")
        if version in {"$Latest", "$Default"}:
            # As seen in https://github.com/awsdocs/aws-cloudformation-user-guide/issues/862.
            raise HandlerError(
                "CloudFormation does not support using $Latest or $Default for LaunchTemplate version. Please "
                "specify a version number or name."
            )
    if "ExcessCapacityTerminationPolicy" in config:
        # The template may spell it with a capital letter; EC2's API does not.
        policy = config["ExcessCapacityTerminationPolicy"]
        config["ExcessCapacityTerminationPolicy"] = policy[0].lower() + policy[1:]
    return config


HANDLERS: tuple[Handler, ...] = (SpotFleet(),)
