"""The Spot Instance actions of EC2; moto's forget what an instance came from.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestSpotInstances.html
"""

from typing import Any

from moto.core.responses import ActionResult

from local_aws.launch_facts import Ec2Refusal
from local_aws.services import launches
from local_aws.services.spot_requests import request_of, requests_of

_PAGE = 1000


def request_spot_instances(response: Any) -> ActionResult:
    """Carry out RequestSpotInstances: all of them are launched at once."""
    ec2, params = response.ec2_backend, response._get_params()
    specification = dict(params.get("LaunchSpecification") or {})
    options = {
        "SpotInstanceType": params.get("Type", "one-time"),
        "InstanceInterruptionBehavior": params.get("InstanceInterruptionBehavior"),
        "ValidUntil": params.get("ValidUntil"),
    }
    data = {
        **specification,
        "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": options},
        "TagSpecifications": params.get("TagSpecifications") or [],
    }
    subnet_id = data.pop("SubnetId", None)
    launches.check(ec2, data, subnet_id, room=True)
    response.error_on_dryrun()
    launched, reason = launches.launch(
        ec2,
        launches.LaunchRequest(data=data, subnet_id=subnet_id, count=int(params.get("InstanceCount", 1)), tags={}),
    )
    if reason is not None:
        ec2.terminate_instances([instance.id for instance in launched])
        raise reason
    return ActionResult({"SpotInstanceRequests": [request_of(ec2, instance) for instance in launched]})


def describe_spot_instance_requests(response: Any) -> ActionResult:
    """Carry out DescribeSpotInstanceRequests."""
    ec2, wanted = response.ec2_backend, response._get_param("SpotInstanceRequestIds", [])
    _check_ids(ec2, wanted)
    found = ec2.describe_spot_instance_requests(
        filters=response._filters_from_querystring(), spot_instance_ids=wanted
    )
    start = int(response._get_param("NextToken") or 0)
    end = start + response._get_int_param("MaxResults", _PAGE)
    token = str(end) if end < len(found) else None
    return ActionResult({"SpotInstanceRequests": found[start:end], "NextToken": token})


def cancel_spot_instance_requests(response: Any) -> ActionResult:
    """Carry out CancelSpotInstanceRequests: the instances go on."""
    ec2, wanted = response.ec2_backend, response._get_param("SpotInstanceRequestIds", [])
    _check_ids(ec2, wanted)
    response.error_on_dryrun()
    for request_id in wanted:
        requests_of(ec2)[request_id].cancelled = True
    cancelled = [{"SpotInstanceRequestId": request_id, "State": "cancelled"} for request_id in wanted]
    return ActionResult({"CancelledSpotInstanceRequests": cancelled})


def _check_ids(ec2: Any, wanted: list[str]) -> None:
    for request_id in wanted:
        if request_id not in requests_of(ec2):
            raise Ec2Refusal(
                "InvalidSpotInstanceRequestID.NotFound", f"The spot instance request ID '{request_id}' does not exist"
            )
