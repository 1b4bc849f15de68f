"""S3 bucket policies, as far as they decide about requests here."""

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult


def permission_by_policy(bucket: Any, action: str, resource: str) -> Any:
    """Return what a bucket's policy says of a request; replaces `FakeBucket.get_permission`.

    Statements with a condition are left out: moto cannot evaluate them and would deny, and the commonest,
    `aws:SecureTransport`, is about TLS, which AWS's clients always use and localhost does not offer.
    """
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    policy = json.loads(bucket.policy)
    statements = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
    policy["Statement"] = [statement for statement in statements if "Condition" not in statement]
    return IAMPolicy(json.dumps(policy)).is_action_permitted(action, resource)
