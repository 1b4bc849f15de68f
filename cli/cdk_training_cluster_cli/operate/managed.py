"""Which nodes Systems Manager reaches."""

from collections.abc import Sequence

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.target import Target

# A filter of DescribeInstanceInformation takes so many values.
_MAX_ASKED = 100
OFFLINE = (
    "its SSM agent is not connected, as in the first minutes of a node; try again, or see why with "
    "training-cluster why"
)
"""Why a node cannot be reached."""


def offline(target: Target, ids: Sequence[str]) -> frozenset[str]:
    """Return the instances whose SSM agent is not connected.

    Args:
        target: The cluster.
        ids: The instances' ids.

    Raises:
        ValueError: AWS refuses.

    Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeInstanceInformation.html
    """
    online = set[str]()
    with plain_refusals("the nodes' SSM agents"):
        pages = target.client("ssm").get_paginator("describe_instance_information")
        for start in range(0, len(ids), _MAX_ASKED):
            asked = list(ids[start : start + _MAX_ASKED])
            filters = [{"Key": "InstanceIds", "Values": asked}, {"Key": "PingStatus", "Values": ["Online"]}]
            online |= {
                one["InstanceId"]
                for page in pages.paginate(Filters=filters)
                for one in page["InstanceInformationList"]
            }
    return frozenset(ids) - online
