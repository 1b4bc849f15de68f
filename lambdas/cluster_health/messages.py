"""The messages about broken nodes that the alert topic's subscribers receive."""

from cluster_common.messages import subject
from cluster_health.node_records import Notice
from cluster_health.outcomes import Finding, Outcome

_TITLES = {
    Outcome.CORDON: "is broken and is being repaired",
    Outcome.REPLACE: "is broken and is replaced",
    Outcome.RELEASE: "is terminated, and no other takes its place",
    Outcome.RETURNED: "is repaired",
    Outcome.REPLACED: "was replaced",
    Outcome.LEFT: "is no longer under repair",
    Outcome.HELD: "is broken and waits for you",
    Outcome.KEPT: "is broken and kept by an operator",
    Outcome.PLACE: "is broken, and its node group lacks a node",
    Outcome.BUSY: "is broken, and its node group is busy",
    Outcome.BUDGET: "is broken, and no repair is left",
    Outcome.REPORT: "is broken; repairs are off (health: act)",
    Outcome.OWNER: "is broken, and its service repairs it",
}


def finding_message(cluster: str, finding: Finding) -> tuple[str, str]:
    """Return the subject and the text of the message about one node.

    Args:
        cluster: The cluster's name.
        finding: What is decided about the node.
    """
    title = f"{cluster}: {finding.instance_id} of {finding.node_group} {_TITLES[finding.outcome]}"
    undo = f"\n\n{finding.undo}" if finding.undo else ""
    return subject(title), f"Cluster {cluster}\n\n{finding.reason}.{undo}"


def notice_message(cluster: str, node_group: str, instance_id: str, notice: Notice) -> tuple[str, str]:
    """Return the subject and the text of the message about what AWS is about to do with a node.

    Args:
        cluster: The cluster's name.
        node_group: The node group.
        instance_id: The node.
        notice: What AWS says.
    """
    text = f"{instance_id} of {node_group}: {notice.sentence}."
    if notice.deadline is not None:
        text += (
            " The node drains half an hour before that, so that its job saves a checkpoint. If AWS stops or retires "
            "it, what owns it launches another in its place."
        )
    title = f"{cluster}: AWS announces {notice.code} for {instance_id}"
    return subject(title), f"Cluster {cluster}\n\n{text}"
