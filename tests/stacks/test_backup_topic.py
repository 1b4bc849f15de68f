"""The backup topic of a cluster file: what the stack makes of it, and what it does not replace."""

from pathlib import Path

import pytest
from aws_cdk import App

from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from cluster_contract.codec import BACKUP_TOPIC_VARIABLE
from cluster_files import RIGHT
from synthesis import resources, warnings

_TOPIC = "arn:aws:sns:us-east-1:111122223333:{name}"


def _stack(directory: Path, alerts: str) -> ClusterStack:
    (directory / "cluster.yaml").write_text(f"{RIGHT}alerts: {alerts}\n")
    cluster = read_cluster_file("cluster.yaml", relative_to=directory)
    app = App()
    foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
    return ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)


@pytest.mark.parametrize("emails", [True, False])
def test_functions_know_the_topic_which_replaces_no_address(emails: bool, tmp_path: Path) -> None:
    topic = _TOPIC.format(name="on-call")
    stack = _stack(tmp_path, f"{{backup_topic_arn: '{topic}'{', emails: [a@example.com]' if emails else ''}}}")
    told = resources(stack, "AWS::Lambda::Function", {"Environment": {"Variables": {BACKUP_TOPIC_VARIABLE: topic}}})
    assert len(told) == len(stack.training_cluster.guardrails)
    # SNS takes a message that nobody subscribed to, so it does not go to the backup topic.
    assert any("noAlerts" in text for text in warnings(stack)) is not emails


def test_the_clusters_own_topic_is_no_backup(tmp_path: Path) -> None:
    (own,) = resources(_stack(tmp_path, "{emails: [a@example.com]}"), "AWS::SNS::Topic")
    topic = _TOPIC.format(name=f"pod-cluster-{own}-AbCdEf123456")
    with pytest.raises(ValueError, match="must not be the cluster's own alert topic"):
        _stack(tmp_path, f"{{backup_topic_arn: '{topic}'}}")
