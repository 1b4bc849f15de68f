"""Whether nodes in a network that exists reach AWS STS, which gives them credentials for their jobs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.hyperpod import route_tables, table_of
from cdk_training_cluster_cli.prepare.preflight.needs import Needs


def judge_sts(
    subnet: str, region: str, answer: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
) -> Verdict:
    """Say whether nodes of a subnet reach AWS STS.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_interface_vpc_endpoints.html

    Args:
        subnet: The subnet's id.
        region: Its region.
        answer: What EC2 says of the route tables of its VPC, and of the endpoints there.
    """
    tables, endpoints = answer
    table = table_of(subnet, tables)
    if table is None:
        return unknown(f"EC2 shows no route table of {subnet}", "check network.vpc_id and AWS_PROFILE")
    routes = (route for route in table["Routes"] if route.get("State", "active") == "active")
    if any(route.get("DestinationCidrBlock") == "0.0.0.0/0" for route in routes):
        return passed(f"{subnet} has a default route")
    for endpoint in endpoints:
        if endpoint["ServiceName"].endswith(f".{region}.sts") and endpoint.get("PrivateDnsEnabled"):
            return passed(f"{subnet} has the endpoint {endpoint['VpcEndpointId']} for AWS STS")
    return failed(
        f"{subnet} has no default route, and its VPC has no endpoint for AWS STS with private DNS, so that jobs get "
        "no credentials",
        "aws ec2 create-vpc-endpoint --vpc-endpoint-type Interface --private-dns-enabled "
        f"--service-name com.amazonaws.{region}.sts --subnet-ids {subnet} --vpc-id VPC",
    )


def credential_checks(needs: Needs) -> Iterator[Check]:
    """Yield the check of a cluster in a network that exists.

    Args:
        needs: What the cluster needs.
    """
    network = needs.cluster.network
    if network is not None and needs.serves_job_role:
        yield Check(
            name=f"AWS STS from {network.subnet_id}",
            ask=partial(_ways_out, network.vpc_id),
            judge=partial(judge_sts, network.subnet_id, needs.region),
        )


def _ways_out(vpc: str, aws: Aws) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcEndpoints.html
    pages = aws.client("ec2").get_paginator("describe_vpc_endpoints")
    found = pages.paginate(Filters=[{"Name": "vpc-id", "Values": [vpc]}]).search("VpcEndpoints[]")
    return route_tables(vpc, aws), [each for each in found if each["State"].lower() == "available"]
