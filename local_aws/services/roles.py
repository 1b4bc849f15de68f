"""What a role may do, and what IAM refuses of its trust policy; moto stores whatever it is given.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements.html
"""

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from moto.iam.models import iam_backends

from local_aws.policies import as_list
from local_aws.refusal import Refusal

_EFFECTS = ("Allow", "Deny")


def checked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return CreateRole so that it reads the trust policy first."""

    @wraps(original)
    def create_role(backend: Any, role_name: str, assume_role_policy_document: str, *more: Any, **named: Any) -> Any:
        statements = json.loads(assume_role_policy_document).get("Statement", [])
        for statement in [statements] if isinstance(statements, dict) else statements:
            if statement.get("Effect") not in _EFFECTS:
                raise Refusal("MalformedPolicyDocument", f"Invalid effect: {statement.get('Effect')}")
            if "Principal" not in statement and "NotPrincipal" not in statement:
                raise Refusal("MalformedPolicyDocument", "Missing required field Principal")
            if "Action" not in statement and "NotAction" not in statement:
                raise Refusal("MalformedPolicyDocument", "Missing required field Action")
        return original(backend, role_name, assume_role_policy_document, *more, **named)

    return create_role


def statements_of(role_arn: str) -> list[Mapping[str, Any]]:
    """Return the statements of all policies of a role.

    Args:
        role_arn: The role's ARN.
    """
    _, partition, _, _, account, name = role_arn.split(":")
    role = iam_backends[account][partition].get_role(name.rpartition("/")[2])
    documents = [*role.policies.values(), *(_document(policy) for policy in role.managed_policies.values())]
    return [statement for document in documents for statement in as_list(json.loads(document)["Statement"])]


def trust_of(role_arn: str) -> list[Mapping[str, Any]]:
    """Return the statements of a role's trust policy, each with the resource that they leave out.

    Args:
        role_arn: The role's ARN.
    """
    _, partition, _, _, account, name = role_arn.split(":")
    role = iam_backends[account][partition].get_role(name.rpartition("/")[2])
    return [{"Resource": "*", **one} for one in as_list(json.loads(role.assume_role_policy_document)["Statement"])]


def _document(policy: Any) -> str:
    """Return the default version of a managed policy."""
    return next(str(version.document) for version in policy.versions if version.is_default)
