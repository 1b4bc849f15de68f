"""Add-ons of EKS: what EKS keeps of each is kept, and none runs.

https://docs.aws.amazon.com/eks/latest/userguide/eks-add-ons.html
"""

import uuid
from typing import Any

from moto.core.responses import ActionResult

from local_aws.refusal import Refusal
from local_aws.services.eks_kept import (
    Record,
    answer,
    arn_of,
    check_role,
    cluster_of,
    found_in,
    params_of,
    time_now,
    update_of,
)
from local_aws.services.eks_rules import IN_USE, INVALID

_ADD_ON_CONFIG = ("addonVersion", "configurationValues")

# https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
_ADD_ONS = frozenset(
    {
        *("vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"),
        *("aws-fsx-csi-driver", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver"),
        *("amazon-cloudwatch-observability", "metrics-server", "kube-state-metrics", "prometheus-node-exporter"),
        *("cert-manager", "external-dns", "fluent-bit", "amazon-sagemaker-hyperpod-training-operator"),
        *("amazon-sagemaker-hyperpod-taskgovernance", "amazon-sagemaker-hyperpod-observability"),
    }
)


def create_addon(response: Any) -> ActionResult:
    """Answer CreateAddon."""
    cluster, params = cluster_of(response), params_of(response)
    name = params["addonName"]
    if name in cluster.addons:
        raise Refusal(IN_USE, "Addon already exists.")
    if not name.isascii() or not name.replace("-", "").isalnum() or name not in _ADD_ONS:
        raise Refusal(
            INVALID, f"Addon specified is not supported in {cluster.described['version']} Kubernetes version"
        )
    for each in params.get("podIdentityAssociations") or []:
        check_role(response, each["roleArn"])
    cluster.addons[name] = {
        "addonVersion": "v1.0.0-eksbuild.1",
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "podIdentityAssociations": [uuid.uuid4().hex for _ in params.get("podIdentityAssociations") or []],
        "clusterName": params["name"],
        "addonArn": arn_of(response, f"addon/{params['name']}/{name}/{uuid.uuid4()}"),
        "status": "ACTIVE",
        "createdAt": time_now(),
    }
    return answer("addon", cluster.addons[name])


def describe_addon(response: Any) -> ActionResult:
    """Answer DescribeAddon."""
    return answer("addon", _add_on(response))


def list_addons(response: Any) -> ActionResult:
    """Answer ListAddons."""
    return answer("addons", sorted(cluster_of(response).addons))


def update_addon(response: Any) -> ActionResult:
    """Answer UpdateAddon."""
    add_on, params = _add_on(response), params_of(response)
    add_on.update({name: params[name] for name in _ADD_ON_CONFIG if name in params})
    return update_of("AddonUpdate")


def delete_addon(response: Any) -> ActionResult:
    """Answer DeleteAddon."""
    add_on = _add_on(response)
    del cluster_of(response).addons[add_on["addonName"]]
    return answer("addon", {**add_on, "status": "DELETING"})


def _add_on(response: Any) -> Record:
    name = response._get_param("addonName")
    return found_in(
        cluster_of(response).addons, name, f"No addon: {name} found in cluster: {response._get_param('name')}"
    )


ACTIONS = (create_addon, describe_addon, list_addons, update_addon, delete_addon)
