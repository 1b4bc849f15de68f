"""The Spot Instance requests of EC2; moto's forget what an instance came from.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotInstanceRequests.html
"""

from typing import Any

from moto.core.responses import ActionResult

from local_aws.launch_facts import Ec2Refusal
from local_aws.services.answers import page
from local_aws.services.spot_requests import requests_of

_PAGE = 1000


def describe_spot_instance_requests(response: Any) -> ActionResult:
    """Answer DescribeSpotInstanceRequests."""
    ec2, wanted = response.ec2_backend, response._get_param("SpotInstanceRequestIds", [])
    _check_ids(ec2, wanted)
    found = ec2.describe_spot_instance_requests(
        filters=response._filters_from_querystring(), spot_instance_ids=wanted
    )
    some, token = page(found, response._get_param("NextToken"), response._get_int_param("MaxResults", _PAGE))
    return ActionResult({"SpotInstanceRequests": some, "NextToken": token})


def _check_ids(ec2: Any, wanted: list[str]) -> None:
    for request_id in wanted:
        if request_id not in requests_of(ec2):
            raise Ec2Refusal(
                "InvalidSpotInstanceRequestID.NotFound", f"The spot instance request ID '{request_id}' does not exist"
            )
