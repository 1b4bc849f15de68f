"""The Spot Fleet actions of EC2; moto's launch nothing from launch templates.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestSpotFleet.html
"""

from collections.abc import Callable, Sequence
from functools import wraps
from threading import RLock
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.utils import convert_tag_spec

from local_aws.refusal import Refusal
from local_aws.services.answers import naive, page
from local_aws.services.spot_fleet_requests import SpotFleet
from local_aws.services.spot_fleet_rules import check, check_pools

_MODIFIABLE = ("Context", "ExcessCapacityTerminationPolicy", "LaunchTemplateConfigs", "TargetCapacity")
_PAGE = 1000

_lock = RLock()


def _one_at_a_time(action: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return an action that looks after the fleets of its region first, with no other beside it."""

    @wraps(action)
    def locked(response: Any) -> ActionResult:
        with _lock:
            for fleet in _fleets(response).values():
                fleet.look()
            return action(response)

    return locked


def _fleets(response: Any) -> dict[str, SpotFleet]:
    """Return the requests of the region, by id: moto's own place for them."""
    fleets: dict[str, SpotFleet] = response.ec2_backend.spot_fleet_requests
    return fleets


def _fleet(response: Any, fleet_id: str) -> SpotFleet:
    fleet = _fleets(response).get(fleet_id)
    if fleet is None:
        raise Refusal("InvalidSpotFleetRequestId.NotFound", f"The spot fleet request ID '{fleet_id}' does not exist")
    return fleet


@_one_at_a_time
def request_spot_fleet(response: Any) -> ActionResult:
    """Answer RequestSpotFleet."""
    config = dict(response._get_params()["SpotFleetRequestConfig"])
    ec2 = response.ec2_backend
    check(ec2, config)
    response.error_on_dryrun()
    tags = convert_tag_spec(config.get("TagSpecifications") or []).get("spot-fleet-request", {})
    fleet = SpotFleet(ec2, config)
    _fleets(response)[fleet.id] = fleet
    ec2.create_tags([fleet.id], tags)
    fleet.note("fleetRequestChange", "submitted")
    fleet.note("fleetRequestChange", "active")
    fleet.look()
    return ActionResult({"SpotFleetRequestId": fleet.id})


@_one_at_a_time
def describe_spot_fleet_requests(response: Any) -> ActionResult:
    """Answer DescribeSpotFleetRequests."""
    wanted = response._get_param("SpotFleetRequestIds", [])
    shown = [_fleet(response, each) for each in wanted] if wanted else list(_fleets(response).values())
    some, token = _page(response, [fleet.described() for fleet in shown])
    return ActionResult({"SpotFleetRequestConfigs": some, "NextToken": token})


@_one_at_a_time
def describe_spot_fleet_instances(response: Any) -> ActionResult:
    """Answer DescribeSpotFleetInstances."""
    fleet = _fleet(response, response._get_param("SpotFleetRequestId"))
    some, token = _page(response, [member.described() for member in fleet.instances])
    return ActionResult({"SpotFleetRequestId": fleet.id, "ActiveInstances": some, "NextToken": token})


@_one_at_a_time
def describe_spot_fleet_request_history(response: Any) -> ActionResult:
    """Answer DescribeSpotFleetRequestHistory, oldest first."""
    fleet = _fleet(response, response._get_param("SpotFleetRequestId"))
    start, kind = naive(response._get_params()["StartTime"]), response._get_param("EventType")
    records = [
        record for record in fleet.history if record["Timestamp"] >= start and kind in {None, record["EventType"]}
    ]
    some, token = _page(response, records)
    return ActionResult(
        {
            "HistoryRecords": some,
            "LastEvaluatedTime": None if token else utcnow(),
            "NextToken": token,
            "SpotFleetRequestId": fleet.id,
            "StartTime": start,
        }
    )


@_one_at_a_time
def modify_spot_fleet_request(response: Any) -> ActionResult:
    """Answer ModifySpotFleetRequest."""
    params = response._get_params()
    fleet = _fleet(response, params["SpotFleetRequestId"])
    if fleet.state != "active":
        raise Refusal(
            "FleetNotInModifiableState",
            f"Fleet Request: {fleet.id} is {fleet.state}. The Spot Fleet request must be in the active state to "
            "modify it.",
        )
    if "OnDemandTargetCapacity" in params:
        raise NotImplementedError("OnDemandTargetCapacity in a Spot Fleet")
    changes = {name: params[name] for name in _MODIFIABLE if name in params}
    if int(changes.get("TargetCapacity", 0)) < 0:
        raise Refusal("InvalidParameterValue", f"Value ({changes['TargetCapacity']}) for TargetCapacity is invalid.")
    check_pools(fleet.ec2, {**fleet.config, **changes})
    fleet.modify(changes)
    return ActionResult({"Return": True})


@_one_at_a_time
def cancel_spot_fleet_requests(response: Any) -> ActionResult:
    """Answer CancelSpotFleetRequests."""
    done, refused = [], []
    for fleet_id in response._get_param("SpotFleetRequestIds", []):
        fleet = _fleets(response).get(fleet_id)
        if fleet is None:
            problem = {"Code": "fleetRequestIdDoesNotExist", "Message": f"{fleet_id} does not exist"}
            refused.append({"SpotFleetRequestId": fleet_id, "Error": problem})
        elif fleet.state.startswith("cancelled"):
            problem = {"Code": "fleetRequestNotInCancellableState", "Message": f"{fleet_id} is {fleet.state}"}
            refused.append({"SpotFleetRequestId": fleet_id, "Error": problem})
        else:
            before = fleet.state
            now = fleet.cancel(terminate=response._get_bool_param("TerminateInstances", False))
            done.append(
                {
                    "SpotFleetRequestId": fleet_id,
                    "PreviousSpotFleetRequestState": before,
                    "CurrentSpotFleetRequestState": now,
                }
            )
    return ActionResult({"SuccessfulFleetRequests": done, "UnsuccessfulFleetRequests": refused})


def _page(response: Any, items: list[dict[str, Any]]) -> tuple[Sequence[dict[str, Any]], str | None]:
    return page(items, response._get_param("NextToken"), response._get_int_param("MaxResults", _PAGE))


# The control request


def look_after_all() -> None:
    """Let every fleet that is short try again, as Spot Fleet does by itself."""
    with _lock:
        for _, _, backend in list(ec2_backends.iter_backends()):
            for fleet in list(backend.spot_fleet_requests.values()):
                fleet.look()
