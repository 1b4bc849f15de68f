"""Sessions of roles: who may take one, and for how long; moto gives one of any role, even of none, to anybody.

https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from moto.iam.models import iam_backends
from moto.sts.models import AssumedRole, sts_backends
from moto.utilities.utils import get_partition

from local_aws import defaults
from local_aws.policies import Call, as_list, is_allowed
from local_aws.refusal import Refusal
from local_aws.services.roles import statements_of

_SECONDS = 3600
_ACTION = "sts:AssumeRole"


def authorized(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return AssumeRole, which the role's trust policy must allow, and for a session of a role its own policies too.

    That AWS needs no policy of the identity where the trust policy names it is documented for users only.
    """

    @wraps(original)
    def assume_role(response: Any) -> Any:
        arn = response._get_param("RoleArn")
        backend = sts_backends[response.current_account][response.partition]
        key = response.get_access_key()
        session = backend.get_assumed_role_from_access_key(key)
        _, caller, _ = backend.get_caller_identity(key, response.region)
        role = _role(arn, response.current_account, response.partition)
        knows = session is not None or key == defaults.ACCESS_KEY_ID
        if role is None or not knows or not _may_take(session, role, response.current_account, response.region):
            raise Refusal(
                "AccessDenied", f"User: {caller} is not authorized to perform: {_ACTION} on resource: {arn}"
            )
        seconds = response._get_int_param("DurationSeconds", _SECONDS)
        if seconds > int(role.max_session_duration or _SECONDS):
            raise Refusal(
                "ValidationError", "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
            )
        # https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html#iam-term-role-chaining
        if session is not None and seconds > _SECONDS:
            raise Refusal(
                "ValidationError",
                "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining",
            )
        return original(response)

    return assume_role


def instance_credentials(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give an instance the credentials of its role, as EC2 does."""
    partition = get_partition(request["region"])
    role = iam_backends[request["account"]][partition].get_role(request["role"])
    trusted = trust_of(role, request["account"], partition)
    if not is_allowed(trusted, Call(action=_ACTION, resource="*", principal="ec2.amazonaws.com")):
        raise ValueError(f"role {request['role']} does not trust ec2.amazonaws.com")
    session = sts_backends[request["account"]][partition].assume_role(
        request["region"], request["instance_id"], role.arn, "", _SECONDS, ""
    )
    return {
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": session.secret_access_key,
        "SessionToken": session.session_token,
    }


def _role(arn: str, account: str, partition: str) -> Any:
    roles = iam_backends[account][partition].roles.values()
    return next((role for role in roles if role.arn == arn), None)


def _may_take(session: AssumedRole | None, role: Any, account: str, region: str) -> bool:
    root = f"arn:{get_partition(region)}:iam::{account}:root"
    named = [root] if session is None else [session.role_arn, session.arn, root]
    trusted = trust_of(role, account, get_partition(region))
    calls = [Call(action=_ACTION, resource="*", principal=one, region=region) for one in named]
    denied = [{**each, "Effect": "Allow"} for each in trusted if each["Effect"] == "Deny"]
    if any(is_allowed(denied, call) for call in calls) or not any(is_allowed(trusted, call) for call in calls):
        return False
    own = Call(action=_ACTION, resource=role.arn, region=region)
    return session is None or is_allowed(statements_of(session.role_arn), own)


def trust_of(role: Any, account: str, partition: str) -> list[dict[str, Any]]:
    """Return the statements of a trust policy, in which an account's number stands for its root.

    Args:
        role: The role, as moto keeps it.
        account: The account.
        partition: Its partition.
    """
    root = f"arn:{partition}:iam::{account}:root"
    statements = []
    for each in as_list(json.loads(role.assume_role_policy_document)["Statement"]):
        principal = each.get("Principal", {})
        if isinstance(principal, Mapping):
            principal = {
                kind: [root if one == account else one for one in as_list(names)] for kind, names in principal.items()
            }
        statements.append({**each, "Principal": principal, "Resource": "*"})
    return statements
