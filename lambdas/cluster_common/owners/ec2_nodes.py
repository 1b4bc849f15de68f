"""The nodes of owners that do not list them: EC2 finds its instances by their tags."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code, error_text
from cluster_common.owners.groups import OwnedNode

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import FilterTypeDef

# A page of instances with many interfaces takes its place in memory.
_PAGE_SIZE = 200

IN_SERVICE = "InService"
"""What messages and decisions call a node that runs, whatever its owner calls it."""


def read_ec2_nodes(client: "EC2Client", tags: Mapping[str, str]) -> dict[str, OwnedNode]:
    """Return the instances with all of some tags that run or are about to, by id. EC2 bills no others.

    Args:
        client: The client of EC2.
        tags: The tags.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
    """
    filters: list[FilterTypeDef] = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    filters.append({"Name": "instance-state-name", "Values": ["pending", "running"]})
    paginator = client.get_paginator("describe_instances")
    pages = paginator.paginate(Filters=filters, PaginationConfig={"PageSize": _PAGE_SIZE})
    return {
        one.get("InstanceId", ""): OwnedNode(
            state=IN_SERVICE if one.get("State", {}).get("Name") == "running" else "Pending"
        )
        for page in pages
        for reservation in page["Reservations"]
        for one in reservation.get("Instances", [])
    }


def terminate(client: "EC2Client", ids: list[str]) -> None:
    """Terminate instances. One that has gone already fails the call for all, so those are left out."""
    try:
        client.terminate_instances(InstanceIds=ids)
    except AWS_ERRORS as error:
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        left = [one for one in ids if one not in error_text(error)]
        if error_code(error) != "InvalidInstanceID.NotFound" or left == ids:
            raise
        if left:
            client.terminate_instances(InstanceIds=left)


def states(nodes: Mapping[str, OwnedNode]) -> tuple[int, tuple[str, ...]]:
    """Return how many nodes are in service, and the states of the others."""
    others = tuple(sorted(node.state for node in nodes.values() if node.state != IN_SERVICE))
    return len(nodes) - len(others), others
