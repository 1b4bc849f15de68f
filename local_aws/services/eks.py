"""EKS: clusters, and node groups that launch nodes with an Auto Scaling group of their own.

Nothing runs Kubernetes here: what EKS keeps of each thing is kept, and answered.
https://docs.aws.amazon.com/eks/latest/APIReference/API_Operations.html
"""

import json
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

from local_aws.refusal import Refusal
from local_aws.services import eks_access, eks_add_ons, eks_nodes, eks_pods
from local_aws.services.eks_kept import (
    EksCluster,
    Record,
    answer,
    arn_of,
    check_role,
    cluster_of,
    clusters_of,
    found_in,
    params_of,
    time_now,
    update_of,
)
from local_aws.services.eks_rules import IN_USE, INVALID, check_cluster, check_scheduler, check_skew, minor

# https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html and its kin: what each may change
_CLUSTER_CONFIG = ("resourcesVpcConfig", "logging", "accessConfig", "kubeSchedulerConfig", "upgradePolicy")
_GROUP_CONFIG = ("scalingConfig", "updateConfig", "nodeRepairConfig", "warmPoolConfig")


def create_cluster(response: Any) -> ActionResult:
    """Answer CreateCluster, of a cluster that is active at once."""
    params, name = params_of(response), response._get_param("name")
    kept = clusters_of(response)
    if name in kept:
        raise Refusal(IN_USE, f"Cluster already exists with name: {name}")
    check_role(response, params["roleArn"])
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
            "arn": arn_of(response, f"cluster/{name}"),
            "status": "ACTIVE",
            "createdAt": time_now(),
            "endpoint": f"https://{uuid.uuid4().hex.upper()}.gr7.{response.region}.eks.amazonaws.com",
            "certificateAuthority": {"data": "LS0tLS1CRUdJTg=="},
            "identity": {"oidc": {"issuer": f"https://oidc.eks.{response.region}.amazonaws.com/id/EXAMPLE"}},
            "resourcesVpcConfig": {**network, "vpcId": vpc, "clusterSecurityGroupId": group.id},
        }
    )
    return answer("cluster", kept[name].described)


def describe_cluster(response: Any) -> ActionResult:
    """Answer DescribeCluster."""
    return answer("cluster", cluster_of(response).described)


def list_clusters(response: Any) -> ActionResult:
    """Answer ListClusters."""
    return answer("clusters", sorted(clusters_of(response)))


def update_cluster_config(response: Any) -> ActionResult:
    """Answer UpdateClusterConfig: what is not said stays."""
    described, params = cluster_of(response).described, params_of(response)
    check_scheduler(params.get("kubeSchedulerConfig") or {})
    for name in _CLUSTER_CONFIG:
        if name in params:
            described[name] = {**(described.get(name) or {}), **params[name]}
    return update_of("ConfigUpdate")


def update_cluster_version(response: Any) -> ActionResult:
    """Answer UpdateClusterVersion: one minor version at a time."""
    cluster, wanted = cluster_of(response), response._get_param("version")
    described = cluster.described
    if minor(wanted) - minor(described["version"]) != 1:
        raise Refusal(INVALID, f"Unsupported Kubernetes minor version update from {described['version']} to {wanted}")
    check_skew(cluster.nodegroups.values(), described["version"], wanted)
    described["version"] = wanted
    return update_of("VersionUpdate")


def delete_cluster(response: Any) -> ActionResult:
    """Answer DeleteCluster: an empty cluster goes, with its security group."""
    cluster = cluster_of(response)
    if cluster.nodegroups:
        raise Refusal(IN_USE, "Cluster has nodegroups attached")
    del clusters_of(response)[response._get_param("name")]
    _ec2(response).delete_security_group(group_id=cluster.described["resourcesVpcConfig"]["clusterSecurityGroupId"])
    return answer("cluster", {**cluster.described, "status": "DELETING"})


def create_nodegroup(response: Any) -> ActionResult:
    """Answer CreateNodegroup."""
    cluster, params = cluster_of(response), params_of(response)
    name = params["nodegroupName"]
    if name in cluster.nodegroups:
        raise Refusal(IN_USE, f"NodeGroup already exists with name {name} and cluster name {params['name']}")
    check_role(response, params["nodeRole"])
    made = eks_nodes.make(params, cluster.described, response.current_account, response.region)
    path = f"nodegroup/{params['name']}/{name}/{uuid.uuid4()}"
    cluster.nodegroups[name] = {
        **made,
        "nodegroupArn": arn_of(response, path),
        "status": "ACTIVE",
        "createdAt": time_now(),
        "health": {"issues": []},
    }
    return answer("nodegroup", cluster.nodegroups[name])


def describe_nodegroup(response: Any) -> ActionResult:
    """Answer DescribeNodegroup."""
    return answer("nodegroup", _node_group(response))


def list_nodegroups(response: Any) -> ActionResult:
    """Answer ListNodegroups."""
    return answer("nodegroups", sorted(cluster_of(response).nodegroups))


def update_nodegroup_config(response: Any) -> ActionResult:
    """Answer UpdateNodegroupConfig: what is not said stays."""
    group, params = _node_group(response), params_of(response)
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
    return update_of("ConfigUpdate")


def update_nodegroup_version(response: Any) -> ActionResult:
    """Answer UpdateNodegroupVersion: nodes of the former launch template or image are replaced."""
    group, params = _node_group(response), params_of(response)
    eks_nodes.replace(group, params, response.current_account, response.region)
    return update_of("VersionUpdate")


def delete_nodegroup(response: Any) -> ActionResult:
    """Answer DeleteNodegroup: its nodes go with it."""
    group = _node_group(response)
    eks_nodes.remove(group, response.current_account, response.region)
    del cluster_of(response).nodegroups[group["nodegroupName"]]
    return answer("nodegroup", {**group, "status": "DELETING"})


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
    return answer("tags", _tagged(response).get("tags", {}))


ACTIONS: tuple[Callable[[Any], ActionResult], ...] = (
    *(create_cluster, describe_cluster, list_clusters, update_cluster_config, update_cluster_version, delete_cluster),
    *(create_nodegroup, describe_nodegroup, list_nodegroups, update_nodegroup_config, update_nodegroup_version),
    *(delete_nodegroup, tag_resource, untag_resource, list_tags_for_resource),
    *eks_add_ons.ACTIONS,
    *eks_access.ACTIONS,
    *eks_pods.ACTIONS,
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
    "pod-identity-associations",
    "pod-identity-associations/(?P<associationId>[^/]+)",
)
"""Paths below a cluster that moto does not listen to."""


def _node_group(response: Any) -> Record:
    name = response._get_param("nodegroupName")
    return found_in(cluster_of(response).nodegroups, name, f"No node group found for name: {name}.")


def _tagged(response: Any) -> Record:
    arn = unquote(urlsplit(response.uri).path.partition("/tags/")[2])
    for cluster in clusters_of(response).values():
        for each in (cluster.described, *cluster.nodegroups.values()):
            if arn in (each.get("arn"), each.get("nodegroupArn")):
                return each
    raise Refusal("NotFoundException", "Resource was not found")


def _ec2(response: Any) -> Any:
    return ec2_backends[response.current_account][response.region]
