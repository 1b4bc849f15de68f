"""Access entries of EKS: who may do what in a cluster.

https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
"""

import uuid
from typing import Any

from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services.eks_kept import Record, answer, arn_of, check_role, cluster_of, found_in, params_of, time_now
from local_aws.services.eks_rules import IN_USE, INVALID


def create_access_entry(response: Any) -> ActionResult:
    """Answer CreateAccessEntry."""
    cluster, params = cluster_of(response), params_of(response)
    principal = params["principalArn"]
    if (cluster.described.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP") == "CONFIG_MAP":
        raise Refusal(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
            "operation.",
        )
    if principal in cluster.entries:
        raise Refusal(IN_USE, "The specified access entry resource is already in use on this cluster.")
    check_role(response, principal, "The specified principalArn is invalid: invalid principal.")
    cluster.entries[principal] = {
        "type": "STANDARD",
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "clusterName": params["name"],
        "accessEntryArn": arn_of(response, f"access-entry/{params['name']}/{uuid.uuid4()}"),
        "createdAt": time_now(),
        "_policies": {},
    }
    return answer("accessEntry", cluster.entries[principal])


def associate_access_policy(response: Any) -> ActionResult:
    """Answer AssociateAccessPolicy."""
    entry, params = _entry(response), params_of(response)
    if ":eks::aws:cluster-access-policy/" not in params["policyArn"]:
        raise Refusal(INVALID, "The policyArn parameter format is not valid")
    entry["_policies"][params["policyArn"]] = params["accessScope"]
    associated = {"policyArn": params["policyArn"], "accessScope": params["accessScope"]}
    return ActionResult({"clusterName": params["name"], "associatedAccessPolicy": associated})


def describe_access_entry(response: Any) -> ActionResult:
    """Answer DescribeAccessEntry."""
    return answer("accessEntry", _entry(response))


def list_access_entries(response: Any) -> ActionResult:
    """Answer ListAccessEntries."""
    return answer("accessEntries", sorted(cluster_of(response).entries))


def list_associated_access_policies(response: Any) -> ActionResult:
    """Answer ListAssociatedAccessPolicies."""
    policies = [{"policyArn": arn, "accessScope": scope} for arn, scope in _entry(response)["_policies"].items()]
    return answer("associatedAccessPolicies", policies)


def delete_access_entry(response: Any) -> ActionResult:
    """Answer DeleteAccessEntry."""
    del cluster_of(response).entries[_entry(response)["principalArn"]]
    return ActionResult({})


def _entry(response: Any) -> Record:
    message = "The specified principalArn could not be found. You can view your available access entries."
    return found_in(cluster_of(response).entries, response._get_param("principalArn"), message)


ACTIONS = (
    *(create_access_entry, describe_access_entry, list_access_entries, delete_access_entry),
    *(associate_access_policy, list_associated_access_policies),
)
