"""Commands of the AWS CLI that messages give operators, each for one line of a shell."""

import json
import shlex
from datetime import datetime

from cluster_common.owners.groups import OwnerTraits
from cluster_common.times import time_text
from cluster_contract.aliases import Alias
from cluster_contract.tags import KEEP_UNTIL_TAG


def start_group(power_function: str, node_group: str, region: str) -> str:
    """Return the command that starts a node group.

    Args:
        power_function: The power function's name.
        node_group: The node group's name.
        region: The cluster's region.
    """
    order = shlex.quote(json.dumps({"action": "start", "node_groups": [node_group]}, separators=(",", ":")))
    return (
        f"aws lambda invoke --region {region} --function-name {power_function}:{Alias.OPERATE} "
        f"--cli-binary-format raw-in-base64-out --payload {order} /dev/stdout"
    )


def keep_owner(owner: OwnerTraits, id: str, until: datetime, region: str) -> str:
    """Return the command that keeps what owns a node group's nodes until a time.

    Args:
        owner: What kind of owner it is.
        id: Its name or id.
        until: The time.
        region: The cluster's region.
    """
    if owner.tag_command is not None:
        return owner.tag_command(id, KEEP_UNTIL_TAG, time_text(until), region)
    tag = f"Key={KEEP_UNTIL_TAG},Value={time_text(until)}"
    return f"aws ec2 create-tags --region {region} --resources {id} --tags {tag}"
