"""What is wrong with a node, and what ends it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cluster_common.times import time_text
from cluster_contract.faults import FaultAction
from cluster_contract.health_settings import SERIALS_REMEMBERED
from cluster_health.node_records import NodeRecord, strongest
from cluster_health.outcomes import Context, GroupView


@dataclass(frozen=True, kw_only=True)
class Need:
    """What ends what is wrong with a node.

    Attributes:
        action: What ends it.
        reason: What is wrong: the end of a sentence that begins with the node.
        since: Since when.
    """

    action: FaultAction
    reason: str
    since: datetime


def find_need(instance_id: str, node: NodeRecord, view: GroupView, context: Context) -> Need | None:
    """Return what ends what is wrong with a node. None: nothing is known to be wrong with it."""
    faults = node.draining_faults
    if faults and node.faulty_since is not None:
        action, said = strongest(faults), "; ".join(map(str, faults))
        since = node.faulty_since
        before = [one for one in view.record.past if one.instance_id == instance_id and one.rebooted]
        if action is FaultAction.REBOOT and before and context.is_recent(before[-1].began, context.policy.window):
            what = f"was rebooted at {time_text(before[-1].began)}, and its last report names a fault ({said})"
            return Need(action=FaultAction.REPLACE, reason=what, since=since)
        known = bad_serial(instance_id, [one.serial for one in faults], context)
        if action is FaultAction.REBOOT and known:
            return Need(
                action=FaultAction.REPLACE, reason=f"{known}, and reports a fault again ({said})", since=since
            )
        clears = "only another node is free of" if action is FaultAction.REPLACE else "a reboot clears"
        return Need(action=action, reason=f"reports what {clears} ({said})", since=since)
    if node.down_since is not None and is_down(node, context):
        said = f"fails the health checks of EC2 or of its owner since {time_text(node.down_since)}"
        return Need(action=FaultAction.REPLACE, reason=said, since=node.down_since)
    return None


def bad_serial(instance_id: str, serials: Iterable[str], context: Context) -> str:
    """Say which accelerator of a node another one was replaced for: the end of a sentence. Empty: none.

    Args:
        instance_id: The node.
        serials: The serials of its accelerators.
        context: What decisions rest on.
    """
    for serial in serials:
        bad = context.bad_serials.get(serial)
        if bad and bad.instance_id != instance_id and context.is_recent(bad.at, SERIALS_REMEMBERED):
            what = f"has the accelerator {serial} of {bad.instance_id}, which was replaced at {time_text(bad.at)}"
            return f"{what} ({bad.reason})"
    return ""


def is_down(node: NodeRecord, context: Context) -> bool:
    """Say whether EC2 or a node's owner has called it unhealthy for long, and does so now, whatever it reports."""
    is_known = node.down_since is not None and context.statuses_read
    return is_known and not context.is_recent(node.down_since or context.now, context.policy.impaired_for)
