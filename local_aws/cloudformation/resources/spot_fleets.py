"""Spot Fleets."""

from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    changed,
    picked,
    wait_for_termination,
)
from local_aws.cloudformation.resources.tags import retag, tag_specifications

_CONFIG = "SpotFleetRequestConfigData"
# Of the properties that are not create-only, those that ModifySpotFleetRequest takes.
_IN_PLACE = frozenset({"Context", "ExcessCapacityTerminationPolicy", "LaunchTemplateConfigs", "TargetCapacity"})


class SpotFleet(Handler):
    """A fleet whose every update sends the template's target, whatever an operator has made of it since.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-spotfleet.html
    """

    type = "AWS::EC2::SpotFleet"
    supported = frozenset({_CONFIG, "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        config = _config(properties)
        own = tag_specifications(properties, "spot-fleet-request").get("TagSpecifications", [])
        if own:
            config["TagSpecifications"] = [*(config.get("TagSpecifications") or []), *own]
        answer = call.client("ec2").request_spot_fleet(SpotFleetRequestConfig=config)
        return {"Id": call.made(answer["SpotFleetRequestId"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        fixed = changed(properties[_CONFIG], before[_CONFIG]) - _IN_PLACE
        if fixed:
            raise self.cannot_change(f"{_CONFIG}.{name}" for name in fixed)
        config = _config(properties)
        call.client("ec2").modify_spot_fleet_request(
            SpotFleetRequestId=call.physical_id,
            **{"ExcessCapacityTerminationPolicy": "default", **picked(config, *_IN_PLACE)},
        )
        retag(call, "ec2", properties, before)
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
