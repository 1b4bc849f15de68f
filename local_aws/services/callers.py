"""Who makes a request: a function's role has credentials of its own, and everybody else is an administrator.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-intro-execution-role.html
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from moto.iam.models import iam_backends

from local_aws.defaults import access_key_of
from local_aws.policies import Call, as_list, is_allowed
from local_aws.refusal import Refusal

_CREDENTIAL = re.compile(r"Credential=([^/]+)/")


def check_caller(response: Any, calls: Iterable[Call]) -> None:
    """Refuse a request of a function whose role does not allow what a service does in its name.

    Args:
        response: The request.
        calls: What the service does.

    Raises:
        Refusal: The role does not allow one of them.
    """
    key = _CREDENTIAL.search(response.headers.get("Authorization") or "")
    roles = iam_backends[response.current_account][response.partition].roles.values()
    role = next((each for each in roles if key and access_key_of(each.arn) == key[1]), None)
    if role is None:
        return
    statements = [statement for document in _documents(role) for statement in as_list(document["Statement"])]
    for call in calls:
        if not is_allowed(statements, call):
            raise Refusal(
                "AccessDeniedException",
                f"User: {role.arn} is not authorized to perform: {call.action} on resource: {call.resource} because "
                f"no identity-based policy allows the {call.action} action",
            )


def _documents(role: Any) -> list[Mapping[str, Any]]:
    managed = [policy.document for policy in role.managed_policies.values()]
    return [json.loads(text) if isinstance(text, str) else text for text in (*role.policies.values(), *managed)]
