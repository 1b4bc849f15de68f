"""Keeps new pods off drained nodes: a DaemonSet that taints its node, and may change nothing else of any."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.group_nodes import affinity_to
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object
from cluster_contract import node_files

KEY = "cdk-training-cluster/drained"
"""The key of the taint of drained nodes, whose value is the first file that drains the node, and of the annotation
that says why."""

IMAGE = "public.ecr.aws/docker/library/python:3.14.3-slim-trixie"
"""Python and nothing else, in megabytes: it is there long before the image of a job.

Source: https://gallery.ecr.aws/docker/library/python
"""

RESOURCES = {"cpu": "10m", "memory": "64Mi"}
"""What it asks for on each node."""

_NAME, _NAMESPACE = "cdk-training-cluster-drained", "kube-system"
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"

# The node of the pod that a token was made for; tokens name it from Kubernetes 1.30 on.
# https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/#ServiceAccountTokenPodNodeInfo
_CLAIM = "authentication.kubernetes.io/node-name"

# What the kubelet may not change of its Node either, beside taints.
# https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
_UNCHANGED = ("metadata.?labels", "metadata.?ownerReferences", "metadata.?finalizers", "spec.?unschedulable")


def drained_nodes(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return the DaemonSet, on the nodes of all node groups, and what it may do.

    Args:
        wanted: The cluster.
    """
    account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _NAME}
    rbac = f"{_RBAC}/v1"
    return [
        an_object("ServiceAccount", _NAME, namespace=_NAMESPACE),
        an_object(
            "ClusterRole",
            _NAME,
            api=rbac,
            rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
        ),
        an_object("ClusterRoleBinding", _NAME, api=rbac, roleRef=role, subjects=[account]),
        *_policy(),
        _daemon_set(wanted),
    ]


def _policy() -> Sequence[Object]:
    """Return what narrows the role, which names no node, to the taint and the annotation of the own one.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/test/e2e/auth/e2edata/per_node_validatingadmissionpolicy.yaml
    """
    api = f"{_ADMISSION}/v1"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
            ]
        },
        "matchConditions": [
            {
                "name": "drained-nodes",
                "expression": f"request.userInfo.username == 'system:serviceaccount:{_NAMESPACE}:{_NAME}'",
            }
        ],
        "variables": [
            {"name": "new", "expression": "object.metadata.?annotations.orValue({})"},
            {"name": "old", "expression": "oldObject.metadata.?annotations.orValue({})"},
        ],
        "validations": [
            {
                "expression": f"'{_CLAIM}' in request.userInfo.extra "
                f"&& request.userInfo.extra['{_CLAIM}'][0] == object.metadata.name",
                "message": "it may change the node alone that its pod runs on",
            },
            {
                "expression": " && ".join(
                    [
                        _equal(f"{{}}.spec.?taints.orValue([]).filter(each, each.key != '{KEY}')"),
                        f"variables.new.all(each, each == '{KEY}' "
                        "|| (each in variables.old && variables.new[each] == variables.old[each]))",
                        f"variables.old.all(each, each == '{KEY}' || each in variables.new)",
                        *(_equal(f"{{}}.{path}") for path in _UNCHANGED),
                    ]
                ),
                "message": f"it may change the taint and the annotation {KEY} alone",
            },
        ],
    }
    return [
        an_object("ValidatingAdmissionPolicy", _NAME, api=api, spec=spec),
        an_object(
            "ValidatingAdmissionPolicyBinding",
            _NAME,
            api=api,
            spec={"policyName": _NAME, "validationActions": ["Deny"]},
        ),
    ]


def _equal(template: str) -> str:
    return f"{template.format('object')} == {template.format('oldObject')}"


def _daemon_set(wanted: KubernetesCluster) -> Object:
    labels = {"app.kubernetes.io/name": _NAME}
    pod: dict[str, Any] = {
        "serviceAccountName": _NAME,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        # The nodes that have a watchdog; the system nodes have none.
        "affinity": affinity_to(wanted.groups),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [{"name": "run", "hostPath": {"path": node_files.RUN, "type": "DirectoryOrCreate"}}],
        "containers": [
            {
                "name": "taint",
                "image": IMAGE,
                "command": ["python3", "-c", _script(), node_files.DRAIN, KEY],
                "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": RESOURCES, "limits": {"memory": RESOURCES["memory"]}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": [{"name": "run", "mountPath": node_files.RUN, "readOnly": True}],
            }
        ],
    }
    return an_object(
        "DaemonSet",
        _NAME,
        api="apps/v1",
        namespace=_NAMESPACE,
        spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    )


def _script() -> str:
    return resources.files(__package__).joinpath("drained_taint.py").read_text(encoding="utf-8")
