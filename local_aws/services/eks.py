"""EKS: clusters, access entries, add-ons, and node groups that launch nodes with an Auto Scaling group of their own.

Nothing runs Kubernetes here: what EKS keeps of each thing is kept, and answered.
https://docs.aws.amazon.com/eks/latest/APIReference/API_Operations.html
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from local_aws.refusal import Refusal
from local_aws.services import eks_nodes
from local_aws.services.eks_rules import IN_USE, INVALID, MISSING, check_cluster, check_scheduler, check_skew, minor

Record = dict[str, Any]

# https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html and its kin: what each may change
_CLUSTER_CONFIG = ("resourcesVpcConfig", "logging", "accessConfig", "kubeSchedulerConfig", "upgradePolicy")
_GROUP_CONFIG = ("scalingConfig", "updateConfig", "nodeRepairConfig", "warmPoolConfig")
_ADD_ON_CONFIG = ("addonVersion", "configurationValues")


@dataclass
class EksCluster:
    """A cluster and what is in it, as EKS describes each."""

    described: Record
    nodegroups: dict[str, Record] = field(default_factory=dict)
    addons: dict[str, Record] = field(default_factory=dict)
    entries: dict[str, Record] = field(default_factory=dict)


def create_cluster(response: Any) -> ActionResult:
    """Answer CreateCluster, of a cluster that is active at once."""
    params, name = _params(response), response._get_param("name")
    kept = _kept(response)
    if name in kept:
        raise Refusal(IN_USE, f"Cluster already exists with name: {name}")
    _check_role(response, params["roleArn"])
    ec2 = _ec2(response)
    check_cluster(params, ec2)
    network = params["resourcesVpcConfig"]
    vpc = ec2.get_subnet(network["subnetIds"][0]).vpc_id
    group = ec2.create_security_group(
        f"eks-cluster-sg-{name}-{uuid.uuid4().int % 10**9}", "EKS created security group", vpc_id=vpc
    )
    ec2.authorize_security_group_ingress(group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}])
    kept[name] = EksCluster(
        described={
            **{key: value for key, value in params.items() if key != "clientRequestToken"},
            "arn": _arn(response, f"cluster/{name}"),
            "status": "ACTIVE",
            "createdAt": _now(),
            "endpoint": f"https://{uuid.uuid4().hex.upper()}.gr7.{response.region}.eks.amazonaws.com",
            "certificateAuthority": {"data": "LS0tLS1CRUdJTg=="},
            "identity": {"oidc": {"issuer": f"https://oidc.eks.{response.region}.amazonaws.com/id/EXAMPLE"}},
            "resourcesVpcConfig": {**network, "vpcId": vpc, "clusterSecurityGroupId": group.id},
        }
    )
    return _answer("cluster", kept[name].described)


def describe_cluster(response: Any) -> ActionResult:
    """Answer DescribeCluster."""
    return _answer("cluster", _cluster(response).described)


def list_clusters(response: Any) -> ActionResult:
    """Answer ListClusters."""
    return _answer("clusters", sorted(_kept(response)))


def update_cluster_config(response: Any) -> ActionResult:
    """Answer UpdateClusterConfig: what is not said stays."""
    described, params = _cluster(response).described, _params(response)
    check_scheduler(params.get("kubeSchedulerConfig") or {})
    for name in _CLUSTER_CONFIG:
        if name in params:
            described[name] = {**(described.get(name) or {}), **params[name]}
    return _update("ConfigUpdate")


def update_cluster_version(response: Any) -> ActionResult:
    """Answer UpdateClusterVersion: one minor version at a time."""
    cluster, wanted = _cluster(response), response._get_param("version")
    described = cluster.described
    if minor(wanted) - minor(described["version"]) != 1:
        raise Refusal(INVALID, f"Unsupported Kubernetes minor version update from {described['version']} to {wanted}")
    check_skew(cluster.nodegroups.values(), described["version"], wanted)
    described["version"] = wanted
    return _update("VersionUpdate")


def delete_cluster(response: Any) -> ActionResult:
    """Answer DeleteCluster: an empty cluster goes, with its security group."""
    cluster = _cluster(response)
    if cluster.nodegroups:
        raise Refusal(IN_USE, "Cluster has nodegroups attached")
    del _kept(response)[response._get_param("name")]
    _ec2(response).delete_security_group(group_id=cluster.described["resourcesVpcConfig"]["clusterSecurityGroupId"])
    return _answer("cluster", {**cluster.described, "status": "DELETING"})


def create_nodegroup(response: Any) -> ActionResult:
    """Answer CreateNodegroup."""
    cluster, params = _cluster(response), _params(response)
    name = params["nodegroupName"]
    if name in cluster.nodegroups:
        raise Refusal(IN_USE, f"NodeGroup already exists with name {name} and cluster name {params['name']}")
    _check_role(response, params["nodeRole"])
    made = eks_nodes.make(params, cluster.described, response.current_account, response.region)
    path = f"nodegroup/{params['name']}/{name}/{uuid.uuid4()}"
    cluster.nodegroups[name] = {
        **made,
        "nodegroupArn": _arn(response, path),
        "status": "ACTIVE",
        "createdAt": _now(),
        "health": {"issues": []},
    }
    return _answer("nodegroup", cluster.nodegroups[name])


def describe_nodegroup(response: Any) -> ActionResult:
    """Answer DescribeNodegroup."""
    return _answer("nodegroup", _node_group(response))


def list_nodegroups(response: Any) -> ActionResult:
    """Answer ListNodegroups."""
    return _answer("nodegroups", sorted(_cluster(response).nodegroups))


def update_nodegroup_config(response: Any) -> ActionResult:
    """Answer UpdateNodegroupConfig: what is not said stays."""
    group, params = _node_group(response), _params(response)
    changed = {
        **group,
        **{name: {**(group.get(name) or {}), **params[name]} for name in _GROUP_CONFIG if name in params},
    }
    eks_nodes.check_change(changed)
    changes = params.get("labels") or {}
    labels = {**group.get("labels", {}), **changes.get("addOrUpdateLabels", {})}
    changed["labels"] = {key: text for key, text in labels.items() if key not in changes.get("removeLabels", [])}
    changes = params.get("taints") or {}
    gone = [*changes.get("removeTaints", []), *changes.get("addOrUpdateTaints", [])]
    keys = {(taint["key"], taint["effect"]) for taint in gone}
    changed["taints"] = [
        *(taint for taint in group.get("taints", []) if (taint["key"], taint["effect"]) not in keys),
        *changes.get("addOrUpdateTaints", []),
    ]
    group.update(changed)
    eks_nodes.resize(group, response.current_account, response.region)
    return _update("ConfigUpdate")


def update_nodegroup_version(response: Any) -> ActionResult:
    """Answer UpdateNodegroupVersion: nodes of the former launch template or image are replaced."""
    group, params = _node_group(response), _params(response)
    eks_nodes.replace(group, params, response.current_account, response.region)
    return _update("VersionUpdate")


def delete_nodegroup(response: Any) -> ActionResult:
    """Answer DeleteNodegroup: its nodes go with it."""
    group = _node_group(response)
    eks_nodes.remove(group, response.current_account, response.region)
    del _cluster(response).nodegroups[group["nodegroupName"]]
    return _answer("nodegroup", {**group, "status": "DELETING"})


def create_addon(response: Any) -> ActionResult:
    """Answer CreateAddon."""
    cluster, params = _cluster(response), _params(response)
    name = params["addonName"]
    if name in cluster.addons:
        raise Refusal(IN_USE, "Addon already exists.")
    if not name.isascii() or not name.replace("-", "").isalnum() or name not in ADD_ONS:
        raise Refusal(
            INVALID, f"Addon specified is not supported in {cluster.described['version']} Kubernetes version"
        )
    for each in params.get("podIdentityAssociations") or []:
        _check_role(response, each["roleArn"])
    cluster.addons[name] = {
        "addonVersion": "v1.0.0-eksbuild.1",
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "podIdentityAssociations": [uuid.uuid4().hex for _ in params.get("podIdentityAssociations") or []],
        "clusterName": params["name"],
        "addonArn": _arn(response, f"addon/{params['name']}/{name}/{uuid.uuid4()}"),
        "status": "ACTIVE",
        "createdAt": _now(),
    }
    return _answer("addon", cluster.addons[name])


def describe_addon(response: Any) -> ActionResult:
    """Answer DescribeAddon."""
    return _answer("addon", _add_on(response))


def list_addons(response: Any) -> ActionResult:
    """Answer ListAddons."""
    return _answer("addons", sorted(_cluster(response).addons))


def update_addon(response: Any) -> ActionResult:
    """Answer UpdateAddon."""
    add_on, params = _add_on(response), _params(response)
    add_on.update({name: params[name] for name in _ADD_ON_CONFIG if name in params})
    return _update("AddonUpdate")


def delete_addon(response: Any) -> ActionResult:
    """Answer DeleteAddon."""
    add_on = _add_on(response)
    del _cluster(response).addons[add_on["addonName"]]
    return _answer("addon", {**add_on, "status": "DELETING"})


def create_access_entry(response: Any) -> ActionResult:
    """Answer CreateAccessEntry."""
    cluster, params = _cluster(response), _params(response)
    principal = params["principalArn"]
    if (cluster.described.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP") == "CONFIG_MAP":
        raise Refusal(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
            "operation.",
        )
    if principal in cluster.entries:
        raise Refusal(IN_USE, "The specified access entry resource is already in use on this cluster.")
    _check_role(response, principal, "The specified principalArn is invalid: invalid principal.")
    cluster.entries[principal] = {
        "type": "STANDARD",
        **{key: value for key, value in params.items() if key not in {"clientRequestToken", "name"}},
        "clusterName": params["name"],
        "accessEntryArn": _arn(response, f"access-entry/{params['name']}/{uuid.uuid4()}"),
        "createdAt": _now(),
        "_policies": {},
    }
    return _answer("accessEntry", cluster.entries[principal])


def associate_access_policy(response: Any) -> ActionResult:
    """Answer AssociateAccessPolicy."""
    entry, params = _entry(response), _params(response)
    if ":eks::aws:cluster-access-policy/" not in params["policyArn"]:
        raise Refusal(INVALID, "The policyArn parameter format is not valid")
    entry["_policies"][params["policyArn"]] = params["accessScope"]
    associated = {"policyArn": params["policyArn"], "accessScope": params["accessScope"]}
    return ActionResult({"clusterName": params["name"], "associatedAccessPolicy": associated})


def describe_access_entry(response: Any) -> ActionResult:
    """Answer DescribeAccessEntry."""
    return _answer("accessEntry", _entry(response))


def list_access_entries(response: Any) -> ActionResult:
    """Answer ListAccessEntries."""
    return _answer("accessEntries", sorted(_cluster(response).entries))


def list_associated_access_policies(response: Any) -> ActionResult:
    """Answer ListAssociatedAccessPolicies."""
    policies = [{"policyArn": arn, "accessScope": scope} for arn, scope in _entry(response)["_policies"].items()]
    return _answer("associatedAccessPolicies", policies)


def delete_access_entry(response: Any) -> ActionResult:
    """Answer DeleteAccessEntry."""
    del _cluster(response).entries[_entry(response)["principalArn"]]
    return ActionResult({})


def tag_resource(response: Any) -> ActionResult:
    """Answer TagResource: tags of a cluster or a node group do not reach its nodes."""
    _tagged(response).setdefault("tags", {}).update(json.loads(response.body)["tags"])
    return ActionResult({})


def untag_resource(response: Any) -> ActionResult:
    """Answer UntagResource."""
    tags = _tagged(response).setdefault("tags", {})
    for key in parse_qs(urlsplit(response.uri).query).get("tagKeys", []):
        tags.pop(key, None)
    return ActionResult({})


def list_tags_for_resource(response: Any) -> ActionResult:
    """Answer ListTagsForResource."""
    return _answer("tags", _tagged(response).get("tags", {}))


# https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
ADD_ONS = frozenset(
    {
        *("vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"),
        *("aws-fsx-csi-driver", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver"),
        *("amazon-cloudwatch-observability", "metrics-server", "kube-state-metrics", "prometheus-node-exporter"),
        *("cert-manager", "external-dns", "fluent-bit", "amazon-sagemaker-hyperpod-training-operator"),
        *("amazon-sagemaker-hyperpod-taskgovernance", "amazon-sagemaker-hyperpod-observability"),
    }
)

ACTIONS: tuple[Callable[[Any], ActionResult], ...] = (
    *(create_cluster, describe_cluster, list_clusters, update_cluster_config, update_cluster_version, delete_cluster),
    *(create_nodegroup, describe_nodegroup, list_nodegroups, update_nodegroup_config, update_nodegroup_version),
    *(delete_nodegroup, create_addon, describe_addon, list_addons, update_addon, delete_addon),
    *(create_access_entry, associate_access_policy, describe_access_entry, list_access_entries),
    *(list_associated_access_policies, delete_access_entry, tag_resource, untag_resource, list_tags_for_resource),
)
"""All actions, which take the place of moto's."""

PATHS = (
    "updates",
    "node-groups/(?P<nodegroupName>[^/]+)/update-version",
    "addons",
    "addons/(?P<addonName>[^/]+)",
    "addons/(?P<addonName>[^/]+)/update",
    "access-entries",
    "access-entries/(?P<principalArn>.+)/access-policies",
    "access-entries/(?P<principalArn>.+)",
)
"""Paths below a cluster that moto does not listen to."""


def _params(response: Any) -> Record:
    """Return what a request says, in its path and in its body."""
    said = {name: response._get_param(name) for name in ("name", "nodegroupName", "addonName", "principalArn")}
    body: Record = json.loads(response.body) if response.body else {}
    return {**{name: value for name, value in said.items() if value is not None}, **body}


def _kept(response: Any) -> dict[str, EksCluster]:
    kept: dict[str, EksCluster] = vars(response.eks_backend).setdefault("kept_clusters", {})
    return kept


def _cluster(response: Any) -> EksCluster:
    name = response._get_param("name")
    if name not in _kept(response):
        raise Refusal(MISSING, f"No cluster found for name: {name}.")
    return _kept(response)[name]


def _node_group(response: Any) -> Record:
    name = response._get_param("nodegroupName")
    return _found(_cluster(response).nodegroups, name, f"No node group found for name: {name}.")


def _add_on(response: Any) -> Record:
    name = response._get_param("addonName")
    return _found(
        _cluster(response).addons, name, f"No addon: {name} found in cluster: {response._get_param('name')}"
    )


def _entry(response: Any) -> Record:
    message = "The specified principalArn could not be found. You can view your available access entries."
    return _found(_cluster(response).entries, response._get_param("principalArn"), message)


def _tagged(response: Any) -> Record:
    arn = unquote(urlsplit(response.uri).path.partition("/tags/")[2])
    for cluster in _kept(response).values():
        for each in (cluster.described, *cluster.nodegroups.values()):
            if arn in (each.get("arn"), each.get("nodegroupArn")):
                return each
    raise Refusal("NotFoundException", "Resource was not found")


def _found(things: Mapping[str, Record], name: str, message: str) -> Record:
    if name not in things:
        raise Refusal(MISSING, message)
    return things[name]


def _check_role(response: Any, arn: str, message: str = "Role with arn: {}, could not be assumed") -> None:
    backend = iam_backends[response.current_account][response.partition]
    if ":role/" in arn and all(role.arn != arn for role in backend.roles.values()):
        raise Refusal(INVALID, message.format(arn))


def _ec2(response: Any) -> Any:
    return ec2_backends[response.current_account][response.region]


def _arn(response: Any, path: str) -> str:
    return f"arn:{response.partition}:eks:{response.region}:{response.current_account}:{path}"


def _now() -> datetime:
    return datetime.now(UTC)


def _answer(name: str, value: Any) -> ActionResult:
    return ActionResult({name: value})


def _update(kind: str) -> ActionResult:
    update = {"id": str(uuid.uuid4()), "status": "Successful", "type": kind, "createdAt": _now(), "errors": []}
    return _answer("update", update)
