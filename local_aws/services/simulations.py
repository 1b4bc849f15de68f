"""IAM's policy simulator: the local AWS enforces no policies, so that each identity that exists may do everything."""

from typing import Any

from moto.core.responses import ActionResult


def simulate_principal_policy(response: Any) -> ActionResult:
    """Answer SimulatePrincipalPolicy.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
    """
    principal = str(response._get_param("PolicySourceArn"))
    if ":role/" in principal:
        response.backend.get_role(principal.rpartition("/")[2])
    resources = response._get_param("ResourceArns") or ["*"]
    results = [
        {"EvalActionName": action, "EvalResourceName": resource, "EvalDecision": "allowed"}
        for action in response._get_param("ActionNames")
        for resource in resources
    ]
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})
