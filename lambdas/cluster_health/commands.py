"""Commands that messages give operators of a broken node, each for one line of a shell."""

import shlex

from cluster_common.owners.groups import OwnedGroup
from cluster_contract.faults import FaultAction
from cluster_contract.tags import KEEP_TAG
from cluster_health.outcomes import GroupView


def by_hand(view: GroupView, instance_id: str, action: FaultAction, region: str) -> str:
    """Return how an operator repairs a node. Empty: what owns it repairs it.

    Args:
        view: Its node group.
        instance_id: The node.
        action: What ends its fault.
        region: The cluster's region.
    """
    if view.traits.own_repair or view.group is None:
        return ""
    if action is FaultAction.REBOOT and view.traits.reboots:
        out = _standby("enter", view, instance_id, region) + " --should-decrement-desired-capacity"
        reboot = f"aws ec2 reboot-instances --region {region} --instance-ids {instance_id}"
        back = _standby("exit", view, instance_id, region)
        return f"To reboot it, when its job has saved a checkpoint:\n{out}\n{reboot}\nand when it is up:\n{back}"
    if view.traits.reboots:
        verb = f"autoscaling terminate-instance-in-auto-scaling-group --region {region} --instance-id {instance_id}"
        command = f"aws {verb} --no-should-decrement-desired-capacity"
        if view.wanted is not None and not view.is_place_kept(instance_id):
            command += f"\n{_give_place(view.group, region)}"
    else:
        command = f"aws ec2 terminate-instances --region {region} --instance-ids {instance_id}"
    return f"To replace it, when its job has saved a checkpoint:\n{command}"


def put_back(view: GroupView, instance_id: str, region: str) -> str:
    """Return how an operator puts a node back into service.

    Args:
        view: Its node group.
        instance_id: The node.
        region: The cluster's region.
    """
    return f"To put it back into service:\n{_standby('exit', view, instance_id, region)}"


def replace_or_put_back(view: GroupView, instance_id: str, region: str) -> str:
    """Return how an operator replaces a node, and how it is put back into service where it can be out of it.

    Args:
        view: Its node group.
        instance_id: The node.
        region: The cluster's region.
    """
    replaced = by_hand(view, instance_id, FaultAction.REPLACE, region)
    return f"{replaced}\n{put_back(view, instance_id, region)}" if view.traits.reboots else replaced


def end_activity(view: GroupView, region: str) -> str:
    """Return how an operator sees what an Auto Scaling group is busy with, and ends an instance refresh.

    Args:
        view: The node group.
        region: The cluster's region.
    """
    name = shlex.quote(view.group.name if view.group is not None else view.name)
    group = f"--region {region} --auto-scaling-group-name {name}"
    see = f"To see what it is busy with:\naws autoscaling describe-scaling-activities {group} --max-items 5"
    return f"{see}\nTo end an instance refresh:\naws autoscaling cancel-instance-refresh {group}"


def keep_it(instance_id: str, region: str) -> str:
    """Return how an operator keeps a node from being rebooted or replaced.

    Args:
        instance_id: The node.
        region: The cluster's region.
    """
    tag = f"Key={KEEP_TAG},Value=true"
    command = f"aws ec2 create-tags --region {region} --resources {instance_id} --tags {tag}"
    return f"To keep it from being rebooted or replaced:\n{command}"


def verify_again(instance_id: str, region: str, *, joins: bool = False) -> str:
    """Return how an operator lets a node be verified again.

    Args:
        instance_id: The node.
        region: The cluster's region.
        joins: Whether its launch waits for that: the service that sets it up also answers the lifecycle hook.
    """
    called = "systemctl restart cdk-training-cluster-boot" if joins else "cluster-node verify"
    document = f"--document-name AWS-RunShellScript --parameters 'commands=[\"{called}\"]'"
    command = f"aws ssm send-command --region {region} --instance-ids {instance_id} {document}"
    return f"To verify it again, once what is wrong is mended:\n{command}"


def give_place(group: OwnedGroup, region: str) -> str:
    """Return how an operator gives a group back the place of a node that went while it was out of service.

    Args:
        group: The group.
        region: The cluster's region.
    """
    return f"Its group has one place less than before its repair. To give it back:\n{_give_place(group, region)}"


def _give_place(group: OwnedGroup, region: str) -> str:
    size = f"--auto-scaling-group-name {shlex.quote(group.name)} --desired-capacity {group.desired + 1}"
    return f"aws autoscaling set-desired-capacity --region {region} {size}"


def _standby(verb: str, view: GroupView, instance_id: str, region: str) -> str:
    name = shlex.quote(view.group.name if view.group is not None else view.name)
    return (
        f"aws autoscaling {verb}-standby --region {region} --auto-scaling-group-name {name} "
        f"--instance-ids {instance_id}"
    )
