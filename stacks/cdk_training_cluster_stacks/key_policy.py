"""The policy that a cluster file's KMS key needs, as the constructs ask for it."""

import json
from tempfile import TemporaryDirectory

from aws_cdk import App
from aws_cdk.region_info import RegionInfo

from cdk_training_cluster.encryption import KEY_USER_METADATA, KeyPlace, KeyUser, key_policy
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.cluster_file import ClusterFile
from cdk_training_cluster_stacks.foundation import FoundationStack


def key_policy_text(cluster: ClusterFile) -> str:
    """Return the policy as JSON.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: The file names no key, or a construct refuses its settings.
    """
    if cluster.encryption_key is None:
        raise ValueError(
            "encryption_key is required for a key's policy: add the ARN of a KMS key in the cluster's region"
        )
    with TemporaryDirectory() as directory:
        app = App(outdir=directory)
        foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
        ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
        entries = [entry for construct in app.node.find_all() for entry in construct.node.metadata]
        found = {str(entry.data) for entry in entries if entry.type == KEY_USER_METADATA}
    info = RegionInfo.get(cluster.region)
    place = KeyPlace(
        account=cluster.account or cluster.encryption_key.split(":")[4],
        region=cluster.region,
        partition=info.partition or "aws",
        url_suffix=info.domain_suffix or "amazonaws.com",
    )
    users = [user for user in KeyUser if user.name in found]
    return json.dumps(key_policy(place, *users), indent=2)
