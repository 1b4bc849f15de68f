"""Commands that messages give operators, each for one line of a shell."""

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta

from cluster_common.owners.kinds import OwnerTraits
from cluster_common.times import time_text
from cluster_contract.tags import KEEP_UNTIL_TAG

_KEPT_FOR = timedelta(hours=12)
_MAX_IDS = 20


def group_command(action: str, cluster: str, node_group: str, region: str) -> str:
    """Return the command that starts or stops a node group.

    Args:
        action: `start` or `stop`.
        cluster: The cluster's name.
        node_group: The node group's name.
        region: The cluster's region.
    """
    return (
        f"training-cluster {action} {shlex.quote(cluster)} --node-group {shlex.quote(node_group)} --region {region}"
    )


def resume_process(process: str, group: str, region: str) -> str:
    """Return the command that resumes a suspended process of an Auto Scaling group.

    Args:
        process: The process, such as `Launch`.
        group: The Auto Scaling group's name.
        region: The cluster's region.
    """
    of_group = f"--auto-scaling-group-name {shlex.quote(group)}"
    return f"aws autoscaling resume-processes --region {region} {of_group} --scaling-processes {process}"


def remove_protection(group: str, ids: Sequence[str], region: str) -> str:
    """Return the command that removes the scale-in protection of instances.

    Args:
        group: The Auto Scaling group's name.
        ids: The instances' ids; the command names at most 20.
        region: The cluster's region.
    """
    of_group = f"--auto-scaling-group-name {shlex.quote(group)} --instance-ids {' '.join(ids[:_MAX_IDS])}"
    return f"aws autoscaling set-instance-protection --region {region} {of_group} --no-protected-from-scale-in"


def keep_command(targets: Sequence[tuple[OwnerTraits | None, str]], begin: datetime, region: str) -> str:
    """Return the command that keeps what carries tags for half a day from a time on; one kept node keeps its group.

    Args:
        targets: What is kept: what kind of owner it is, and its name or id. None: an instance.
        begin: The time.
        region: The cluster's region.
    """
    return tag_command(targets, KEEP_UNTIL_TAG, time_text(begin + _KEPT_FOR), region)


def tag_command(targets: Sequence[tuple[OwnerTraits | None, str]], key: str, value: str, region: str) -> str:
    """Return the command that writes a tag.

    Args:
        targets: What gets the tag, as `keep_command` takes it.
        key: The tag's key.
        value: Its value, a single word.
        region: The cluster's region.
    """
    for owner, name in targets:
        if owner is not None and owner.tag_command is not None:
            return owner.tag_command(name, key, value, region)
    ids = " ".join(name for _, name in targets[:_MAX_IDS])
    return f"aws ec2 create-tags --region {region} --resources {ids} --tags Key={key},Value={value}"
