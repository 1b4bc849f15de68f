"""HyperPod clusters of SageMaker; moto's know neither sizes that change nor what SageMaker refuses.

Nodes are there as soon as they are asked for: they are none of EC2's instances in the account.

Sources: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateCluster.html,
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-scale-down.html
"""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from threading import RLock
from typing import Any

from moto.core.utils import unix_time, utcnow
from moto.sagemaker.models import sagemaker_backends

from local_aws.refusal import Refusal
from local_aws.services.answers import page
from local_aws.services.callers import check_caller
from local_aws.services.hyperpod_eks import check_eks, check_governance
from local_aws.services.hyperpod_permissions import needed
from local_aws.services.hyperpod_rules import check, check_update

_lock = RLock()
_PAGE = 100


@dataclass
class HyperPod:
    """A cluster with its nodes.

    Attributes:
        arn: Its ARN.
        spec: What CreateCluster and UpdateCluster have said of it.
        tags: Its tags.
        nodes: Its nodes by id, as ListClusterNodes shows them.
        created: When it was made.
    """

    arn: str
    spec: dict[str, Any]
    tags: dict[str, str]
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    created: float = field(default_factory=lambda: unix_time(utcnow()))

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """Its instance groups, by name."""
        return {each["InstanceGroupName"]: each for each in self.spec["InstanceGroups"]}

    def look(self) -> None:
        """Launch and terminate nodes until each group has its count; a group that is gone has none."""
        for name in {each["InstanceGroupName"] for each in self.nodes.values()} | set(self.groups):
            group = self.groups.get(name, {"InstanceCount": 0})
            own = [key for key, each in self.nodes.items() if each["InstanceGroupName"] == name]
            for key in own[group["InstanceCount"] :]:
                del self.nodes[key]
            for _ in range(group["InstanceCount"] - len(own)):
                self._launch(group)

    def described(self) -> dict[str, Any]:
        """Return it as DescribeCluster does."""
        groups = []
        for name, group in self.groups.items():
            current = sum(each["InstanceGroupName"] == name for each in self.nodes.values())
            shown = {key: value for key, value in group.items() if key != "InstanceCount"}
            groups.append(
                {**shown, "CurrentCount": current, "TargetCount": group["InstanceCount"], "Status": "InService"}
            )
        return {
            **self.spec,
            "ClusterArn": self.arn,
            "ClusterStatus": "InService",
            "CreationTime": self.created,
            "InstanceGroups": groups,
        }

    def _launch(self, group: Mapping[str, Any]) -> None:
        node = f"i-{secrets.token_hex(9)[:17]}"
        self.nodes[node] = {
            "InstanceGroupName": group["InstanceGroupName"],
            "InstanceId": node,
            "InstanceType": group["InstanceType"],
            "LaunchTime": unix_time(utcnow()),
            "InstanceStatus": {"Status": "Running", "Message": ""},
        }


def _action(act: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]) -> Callable[[Any], str]:
    """Return an action that reads its request and writes its answer as JSON."""

    @wraps(act)
    def answered(response: Any) -> str:
        with _lock:
            return json.dumps(act(response, json.loads(response.body or "{}")))

    return answered


def _clusters(response: Any) -> dict[str, HyperPod]:
    """Return the clusters of the region by name: moto's own place for them."""
    clusters: dict[str, HyperPod] = response.sagemaker_backend.clusters
    return clusters


def _cluster(response: Any, name: str) -> HyperPod:
    for own, cluster in _clusters(response).items():
        if name in (own, cluster.arn):
            return cluster
    raise Refusal("ResourceNotFound", f"Cluster {name} not found")


def _check(response: Any, spec: Mapping[str, Any]) -> None:
    """Refuse a cluster that SageMaker would not make, and a caller that lacks what SageMaker does in its name."""
    check_caller(response, needed(spec, response.region))
    check(response.current_account, spec)
    check_eks((response.current_account, response.region), spec)


@_action
def create_cluster(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer CreateCluster."""
    name = given["ClusterName"]
    if name in _clusters(response):
        raise Refusal("ResourceInUse", f"Cluster with name {name} already exists")
    _check(response, given)
    arn = f"arn:aws:sagemaker:{response.region}:{response.current_account}:cluster/{secrets.token_hex(6)}"
    spec = {key: value for key, value in given.items() if key != "Tags"}
    cluster = HyperPod(arn, spec, {tag["Key"]: tag["Value"] for tag in given.get("Tags", [])})
    _clusters(response)[name] = cluster
    cluster.look()
    return {"ClusterArn": arn}


@_action
def update_cluster(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer UpdateCluster; instance groups that it does not name stay as they are."""
    cluster = _cluster(response, given["ClusterName"])
    groups = cluster.groups
    check_update(groups, given)
    for each in given.get("InstanceGroups", []):
        groups[each["InstanceGroupName"]] = {**groups.get(each["InstanceGroupName"], {}), **each}
    for name in given.get("InstanceGroupsToDelete", []):
        groups.pop(name, None)
    changes = {
        key: value
        for key, value in given.items()
        if key not in {"ClusterName", "InstanceGroups", "InstanceGroupsToDelete"}
    }
    spec = {**cluster.spec, **changes, "InstanceGroups": list(groups.values())}
    _check(response, spec)
    cluster.spec = spec
    cluster.look()
    return {"ClusterArn": cluster.arn}


@_action
def describe_cluster(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer DescribeCluster."""
    return _cluster(response, given["ClusterName"]).described()


@_action
def list_clusters(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ListClusters."""
    names = ("ClusterArn", "ClusterName", "ClusterStatus", "CreationTime")
    shown = [each.described() for each in _clusters(response).values()]
    some, token = page([{name: each[name] for name in names} for each in shown], given.get("NextToken"), _PAGE)
    return {"ClusterSummaries": some, **({"NextToken": token} if token else {})}


@_action
def delete_cluster(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer DeleteCluster."""
    cluster = _cluster(response, given["ClusterName"])
    del _clusters(response)[cluster.spec["ClusterName"]]
    return {"ClusterArn": cluster.arn}


@_action
def list_cluster_nodes(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ListClusterNodes."""
    part = given.get("InstanceGroupNameContains", "")
    nodes = [
        each for each in _cluster(response, given["ClusterName"]).nodes.values() if part in each["InstanceGroupName"]
    ]
    some, token = page(nodes, given.get("NextToken"), given.get("MaxResults", _PAGE))
    return {"ClusterNodeSummaries": some, **({"NextToken": token} if token else {})}


@_action
def list_cluster_events(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer ListClusterEvents: every launch has gone well."""
    _cluster(response, given["ClusterName"])
    return {"Events": []}


@_action
def batch_delete_cluster_nodes(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer BatchDeleteClusterNodes, which lowers the count of a node's group."""
    cluster = _cluster(response, given["ClusterName"])
    done: list[str] = []
    failed: list[dict[str, str]] = []
    for node in given.get("NodeIds", []):
        known = cluster.nodes.get(node)
        group = cluster.groups[known["InstanceGroupName"]] if known else {}
        if known is None:
            failed.append({"NodeId": node, "Code": "NodeIdNotFound", "Message": f"Node {node} not found"})
        elif group.get("SlurmConfig", {}).get("NodeType") == "Controller":
            failed.append({"NodeId": node, "Code": "NodeIdInUse", "Message": f"Node {node} is a Slurm controller"})
        else:
            del cluster.nodes[node]
            group["InstanceCount"] -= 1
            done.append(node)
    if failed and not done:
        raise Refusal("ValidationException", failed[0]["Message"])
    return {"Successful": done, "Failed": failed}


def tagged(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an action on tags that knows HyperPod clusters and the policies of their task governance."""
    name = original.__name__

    @wraps(original)
    def action(response: Any) -> Any:
        given = json.loads(response.body)
        owner = next((each for each in _clusters(response).values() if each.arn == given["ResourceArn"]), None)
        if owner is None:
            return original(response)
        if name == "add_tags":
            owner.tags.update({tag["Key"]: tag["Value"] for tag in given["Tags"]})
        if name == "delete_tags":
            for key in given["TagKeys"]:
                owner.tags.pop(key, None)
        tags = [{"Key": key, "Value": value} for key, value in owner.tags.items()]
        return json.dumps({} if name == "delete_tags" else {"Tags": tags})

    return action


def set_launch_time(account: str, region: str, node: str, moment: datetime) -> bool:
    """Let a node have been launched at another time; tell whether it is a node of HyperPod's.

    Args:
        account: The account.
        region: The region.
        node: The node's id.
        moment: The time, in UTC.
    """
    clusters: Mapping[str, HyperPod] = sagemaker_backends[account][region].clusters
    for cluster in clusters.values():
        if node in cluster.nodes:
            cluster.nodes[node]["LaunchTime"] = unix_time(moment)
            return True
    return False


# Task governance


def _policies(response: Any) -> dict[str, dict[str, Any]]:
    backend = response.sagemaker_backend
    if not hasattr(backend, "scheduler_configs"):
        backend.scheduler_configs = {}
    policies: dict[str, dict[str, Any]] = backend.scheduler_configs
    return policies


@_action
def create_cluster_scheduler_config(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer CreateClusterSchedulerConfig; a cluster has one at most, and it is for clusters on EKS."""
    cluster = _cluster(response, given["ClusterArn"])
    check_governance((response.current_account, response.region), cluster.spec)
    if any(each["ClusterArn"] == cluster.arn for each in _policies(response).values()):
        raise Refusal("ConflictException", f"Cluster {cluster.arn} has a cluster policy already")
    own = secrets.token_hex(6)
    arn = cluster.arn.replace(":cluster/", ":cluster-scheduler-config/").rpartition("/")[0] + f"/{own}"
    _policies(response)[own] = {
        **{key: value for key, value in given.items() if key != "Tags"},
        "ClusterSchedulerConfigArn": arn,
        "ClusterSchedulerConfigId": own,
        "ClusterSchedulerConfigVersion": 1,
        "Status": "Created",
        "CreationTime": unix_time(utcnow()),
    }
    return {"ClusterSchedulerConfigArn": arn, "ClusterSchedulerConfigId": own}


def _policy(response: Any, own: str) -> dict[str, Any]:
    if own not in _policies(response):
        raise Refusal("ResourceNotFound", f"Cluster policy {own} not found")
    return _policies(response)[own]


@_action
def describe_cluster_scheduler_config(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer DescribeClusterSchedulerConfig."""
    return _policy(response, given["ClusterSchedulerConfigId"])


@_action
def update_cluster_scheduler_config(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer UpdateClusterSchedulerConfig, which names the version that it changes."""
    policy = _policy(response, given["ClusterSchedulerConfigId"])
    if given["TargetVersion"] != policy["ClusterSchedulerConfigVersion"]:
        raise Refusal("ConflictException", "TargetVersion is not the version of the cluster policy")
    policy["SchedulerConfig"] = given["SchedulerConfig"]
    policy["ClusterSchedulerConfigVersion"] += 1
    return {name: policy[name] for name in ("ClusterSchedulerConfigArn", "ClusterSchedulerConfigVersion")}


@_action
def delete_cluster_scheduler_config(response: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer DeleteClusterSchedulerConfig."""
    _policy(response, given["ClusterSchedulerConfigId"])
    del _policies(response)[given["ClusterSchedulerConfigId"]]
    return {}


ACTIONS: tuple[Callable[[Any], str], ...] = (
    *(create_cluster, update_cluster, describe_cluster, delete_cluster, list_clusters),
    *(list_cluster_nodes, list_cluster_events, batch_delete_cluster_nodes),
    *(create_cluster_scheduler_config, describe_cluster_scheduler_config),
    *(update_cluster_scheduler_config, delete_cluster_scheduler_config),
)
"""The actions that take the place of moto's, or of none."""
