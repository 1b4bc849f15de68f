"""Pod Identity associations of EKS: which role the pods of a service account have.

As in EKS, neither the service account nor the agent has to be there.
https://docs.aws.amazon.com/eks/latest/userguide/pod-id-association.html
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from moto.core.responses import ActionResult
from moto.iam.models import iam_backends

from local_aws.policies import Call, is_allowed
from local_aws.refusal import Refusal
from local_aws.services.eks_kept import Record, answer, arn_of, check_role, cluster_of, found_in, params_of, time_now
from local_aws.services.eks_rules import IN_USE, INVALID
from local_aws.services.role_sessions import trust_of

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMES = {"namespace": (_LABEL, 63), "serviceAccount": (rf"{_LABEL}(\.{_LABEL})*", 253)}

# https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html
_SERVICE, _ACTIONS = "pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession")


def create_pod_identity_association(response: Any) -> ActionResult:
    """Answer CreatePodIdentityAssociation: a service account has one role."""
    cluster, params = cluster_of(response), params_of(response)
    for name, (form, longest) in _NAMES.items():
        if not re.fullmatch(form, params[name]) or len(params[name]) > longest:
            # No document says that EKS checks them; Kubernetes has no such thing.
            raise Refusal(INVALID, f"{name} {params[name]} is not a valid Kubernetes name")
    place = {name: params[name] for name in _NAMES}
    _check_trust(response, place, params["roleArn"])
    for each in cluster.associations.values():
        if place.items() <= each.items():
            raise Refusal(IN_USE, f"Association already exists: {each['associationId']}")
    identity = f"a-{uuid.uuid4().hex[:17]}"
    cluster.associations[identity] = {
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "clusterName": params["name"],
        "associationId": identity,
        "associationArn": arn_of(response, f"podidentityassociation/{params['name']}/{identity}"),
        "createdAt": time_now(),
        "modifiedAt": time_now(),
    }
    return answer("association", cluster.associations[identity])


def describe_pod_identity_association(response: Any) -> ActionResult:
    """Answer DescribePodIdentityAssociation."""
    return answer("association", _association(response))


def list_pod_identity_associations(response: Any) -> ActionResult:
    """Answer ListPodIdentityAssociations."""
    return answer("associations", list(cluster_of(response).associations.values()))


def update_pod_identity_association(response: Any) -> ActionResult:
    """Answer UpdatePodIdentityAssociation: another role, and neither another namespace nor account."""
    association, params = _association(response), params_of(response)
    if "roleArn" in params:
        _check_trust(response, association, params["roleArn"])
        association.update(roleArn=params["roleArn"], modifiedAt=time_now())
    return answer("association", association)


def delete_pod_identity_association(response: Any) -> ActionResult:
    """Answer DeletePodIdentityAssociation."""
    association = _association(response)
    del cluster_of(response).associations[association["associationId"]]
    return answer("association", association)


def _association(response: Any) -> Record:
    identity = response._get_param("associationId")
    return found_in(cluster_of(response).associations, identity, f"No association found with id: {identity}")


def _check_trust(response: Any, place: Mapping[str, str], arn: str) -> None:
    """Refuse a role that is not there, or that EKS may not take for the pods of a service account.

    When EKS looks at the conditions no document says: at the latest when a pod asks for credentials.
    """
    check_role(response, arn)
    account, partition = response.current_account, response.partition
    role = next((each for each in iam_backends[account][partition].roles.values() if each.arn == arn), None)
    # https://docs.aws.amazon.com/eks/latest/userguide/pod-id-abac.html
    tags = {
        "eks-cluster-arn": arn_of(response, f"cluster/{response._get_param('name')}"),
        "eks-cluster-name": response._get_param("name"),
        "kubernetes-namespace": place["namespace"],
        "kubernetes-service-account": place["serviceAccount"],
        "kubernetes-pod-name": "node-0",
        "kubernetes-pod-uid": "be559ac0-0a3f-4ad6-a0b2-2b2ea3b1a9ef",
    }
    context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    trusted = [] if role is None else trust_of(role, account, partition)
    for action in _ACTIONS:
        call = Call(action=action, resource="*", principal=_SERVICE, context=context, region=response.region)
        if not is_allowed(trusted, call):
            raise Refusal(INVALID, f"Role {arn} must trust {_SERVICE} with {action} for {place['serviceAccount']}")


ACTIONS = (
    *(create_pod_identity_association, describe_pod_identity_association, list_pod_identity_associations),
    *(update_pod_identity_association, delete_pod_identity_association),
)
