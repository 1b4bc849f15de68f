"""What the policy of a cluster file's KMS key needs, as the constructs ask for it."""

import json
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from aws_cdk import App

from cdk_training_cluster.core.encryption import KEY_USER_METADATA, KeyPlace, KeyUser, key_policy, key_statements
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack


@dataclass(frozen=True, kw_only=True)
class KeyPolicyTexts:
    """What a key's policy needs, as JSON.

    Attributes:
        statements: What to add to the policy of a key that is in use.
        whole: The policy of a key that nothing else uses.
    """

    statements: str
    whole: str


def key_policy_texts(cluster: ClusterFile) -> KeyPolicyTexts:
    """Return what the policy of `encryption_key` needs; the key of a file system needs no statement of a service.

    FSx uses its key through a grant by the identity that makes the file system, which KMS's default policy lets IAM
    allow.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/encryption-at-rest.html#FSxKMSPolicy

    Args:
        cluster: What the file says.

    Raises:
        ValueError: The file names no key, or a construct refuses its settings.
    """
    keys = cluster.encryption_keys
    if not keys:
        raise ValueError(
            "encryption_key is required for a key's policy: add the ARN of a KMS key in the cluster's region"
        )
    with TemporaryDirectory() as directory:
        app = App(outdir=directory)
        foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
        ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
        entries = [entry for construct in app.node.find_all() for entry in construct.node.metadata]
        found = {str(entry.data) for entry in entries if entry.type == KEY_USER_METADATA}
    place = KeyPlace.known(account=keys[0].split(":")[4], region=cluster.region)
    users = [user for user in KeyUser if user.name in found]
    return KeyPolicyTexts(
        statements=json.dumps([*key_statements(place, *users)], indent=2),
        whole=json.dumps(key_policy(place, *users), indent=2),
    )
