"""AWS PCS: clusters, compute node groups that launch instances from launch templates, and queues; moto has none.

Slurm itself does not run here: a group whose least size is not 0 has its instances, and one that Slurm sizes has none
until a test or a rehearsal says that a job needs some (`need_nodes`).

https://docs.aws.amazon.com/pcs/latest/APIReference/API_Operations.html
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from threading import RLock
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends
from moto.utilities.utils import get_partition

from local_aws import defaults
from local_aws.calls import Call
from local_aws.refusal import Refusal
from local_aws.services import launches, pcs_rules
from local_aws.services.reserved_capacity import reservations_of

TARGET = "AWSParallelComputingService."
"""How the header X-Amz-Target of the service's requests begins."""

GROUP_TAG = "aws:pcs:compute-node-group-id"
_ROLES = {"pcs.amazonaws.com": "AWSServiceRoleForPCS"}
_GONE = frozenset({"shutting-down", "terminated"})
_REQUESTS_OF_AN_UPDATE = 2
"""How long an update takes: the second request after it finds the group ACTIVE."""

Body = Mapping[str, Any]


@dataclass(kw_only=True)
class ComputeNodeGroup:
    """One compute node group, with its instances."""

    region: str
    described: dict[str, Any]
    instances: list[Any] = field(default_factory=list)
    wanted: int = 0
    """How many nodes jobs need, beside the least."""
    updating: int = 0
    """For how many requests more it is being updated."""

    def wait(self) -> None:
        """Come nearer to the end of an update, with each request."""
        self.updating = max(0, self.updating - 1)
        self.described["status"] = "UPDATING" if self.updating else "ACTIVE"

    def look(self) -> None:
        """Notice what is gone, and launch or terminate until the group has its size or EC2 has no more to give."""
        self.instances = [each for each in self.instances if each.state not in _GONE]
        scaling = self.described["scalingConfiguration"]
        least, most = scaling["minInstanceCount"], scaling["maxInstanceCount"]
        size = min(max(least, self.wanted), most)
        self.described["errorInfo"] = []
        if len(self.instances) < size:
            self._launch(size - len(self.instances))
        elif len(self.instances) > size:
            ids = [each.id for each in self.instances[size:]]
            ec2_backends[defaults.ACCOUNT][self.region].terminate_instances(ids)
            self.instances = self.instances[:size]

    def template_data(self) -> dict[str, Any]:
        """Return the data of the launch template as PCS uses it, with its own type and profile."""
        custom = self.described["customLaunchTemplate"]
        named = {"LaunchTemplateId": custom["id"], "Version": custom["version"]}
        _, version = launches.launch_template_data(ec2_backends[defaults.ACCOUNT][self.region], named)
        return dict(version.data)

    def _launch(self, missing: int) -> None:
        ec2 = ec2_backends[defaults.ACCOUNT][self.region]
        data = self.template_data() | {
            "InstanceType": self.described["instanceConfigs"][0]["instanceType"],
            "IamInstanceProfile": {"Arn": self.described["iamInstanceProfileArn"]},
        }
        if self.described.get("purchaseOption") == "SPOT":
            data["InstanceMarketOptions"] = {"MarketType": "spot"}
        request = launches.LaunchRequest(
            data=data,
            subnet_id=self.described["subnetIds"][0],
            count=missing,
            tags={GROUP_TAG: self.described["id"], "aws:pcs:cluster-id": self.described["clusterId"]},
            roles=_ROLES,
        )
        failure: ServiceException | None
        try:
            launched, failure = launches.launch(ec2, request)
        except ServiceException as refusal:
            launched, failure = [], refusal
        self.instances += launched
        errors = [] if failure is None else [{"code": str(failure.code), "message": str(failure.message)}]
        self.described["errorInfo"] = errors


@dataclass(kw_only=True)
class Cluster:
    """One cluster, with its compute node groups and queues by id."""

    described: dict[str, Any]
    groups: dict[str, ComputeNodeGroup] = field(default_factory=dict)
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)


_lock = RLock()
_clusters: dict[str, dict[str, Cluster]] = {}
_tags: dict[str, dict[str, str]] = {}


def answer(call: Call, region: str) -> Mapping[str, Any]:
    """Answer a request to AWS PCS.

    Args:
        call: The request.
        region: The region that it is signed for.
    """
    action = _ACTIONS.get(call.operation)
    if action is None:
        raise NotImplementedError(f"{call.operation} of AWS PCS")
    with _lock:
        for cluster in _clusters.get(region, {}).values():
            for group in cluster.groups.values():
                group.wait()
                group.look()
        return json.loads(json.dumps(action(call.parameters(), region), default=_time))  # type: ignore[no-any-return]


def need_nodes(request: Mapping[str, Any]) -> dict[str, Any]:
    """Take the place of jobs: `{"group": id, "count": n}` says how many nodes they need."""
    with _lock:
        every = (cluster.groups for clusters in _clusters.values() for cluster in clusters.values())
        group = next(groups[request["group"]] for groups in every if request["group"] in groups)
        group.wanted = int(request["count"])
        group.look()
        return {"instances": [each.id for each in group.instances]}


def _time(value: Any) -> str:
    return str(value.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _new(**more: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    made = {"id": f"pcs_{token_hex(5)}", "status": "ACTIVE", "createdAt": now, "modifiedAt": now}
    return {**made, "errorInfo": [], **more}


def _arn(region: str, path: str) -> str:
    return f"arn:{get_partition(region)}:pcs:{region}:{defaults.ACCOUNT}:{path}"


def _cluster(body: Body, region: str) -> Cluster:
    named = body["clusterIdentifier"]
    for cluster in _clusters.get(region, {}).values():
        if named in {cluster.described["id"], cluster.described["name"]}:
            return cluster
    raise Refusal("ResourceNotFoundException", f"The cluster {named} does not exist")


def _group(body: Body, region: str) -> ComputeNodeGroup:
    named = body["computeNodeGroupIdentifier"]
    for group in _cluster(body, region).groups.values():
        if named in {group.described["id"], group.described["name"]}:
            return group
    raise Refusal("ResourceNotFoundException", f"The compute node group {named} does not exist")


def _queue(body: Body, region: str) -> dict[str, Any]:
    named = body["queueIdentifier"]
    for queue in _cluster(body, region).queues.values():
        if named in {queue["id"], queue["name"]}:
            return queue
    raise Refusal("ResourceNotFoundException", f"The queue {named} does not exist")


def _refuse_taken(name: str, others: Sequence[Mapping[str, Any]], kind: str) -> None:
    if any(other["name"] == name for other in others):
        raise Refusal("ConflictException", f"The {kind} {name} exists already")


def _create_cluster(body: Body, region: str) -> Body:
    pcs_rules.check_cluster(body)
    ec2 = ec2_backends[defaults.ACCOUNT][region]
    ec2.get_subnet(body["networking"]["subnetIds"][0])
    there = _clusters.setdefault(region, {})
    _refuse_taken(body["clusterName"], [each.described for each in there.values()], "cluster")
    described = _new(name=body["clusterName"]) | {
        key: body[key] for key in ("scheduler", "size", "networking", "slurmConfiguration") if key in body
    }
    described["arn"] = _arn(region, f"cluster/{described['id']}")
    described["endpoints"] = [{"type": "SLURMCTLD", "privateIpAddress": "10.0.0.5", "port": "6817"}]
    there[described["id"]] = Cluster(described=described)
    _tags[described["arn"]] = dict(body.get("tags") or {})
    return {"cluster": described}


def _update_cluster(body: Body, region: str) -> Body:
    cluster = _cluster(body, region)
    # https://docs.aws.amazon.com/pcs/latest/userguide/working-with_clusters_update.html
    for group in cluster.groups.values():
        if group.updating:
            name = group.described["name"]
            raise Refusal("ConflictException", f"The compute node group {name} of the cluster is being updated")
    changed = {**cluster.described, **{key: body[key] for key in ("scheduler", "slurmConfiguration") if key in body}}
    pcs_rules.check_cluster(changed)
    cluster.described.update(changed)
    return {"cluster": cluster.described}


def _delete_cluster(body: Body, region: str) -> Body:
    cluster = _cluster(body, region)
    if cluster.groups or cluster.queues:
        raise Refusal("ConflictException", "The cluster has compute node groups or queues: delete these first")
    del _clusters[region][cluster.described["id"]]
    return {}


_GROUP_KEYS = (
    *("amiId", "customLaunchTemplate", "iamInstanceProfileArn", "instanceConfigs", "nodeLifecycleActions"),
    *("purchaseOption", "scalingConfiguration", "slurmConfiguration", "spotOptions", "subnetIds"),
)


def _check_group(group: ComputeNodeGroup, cluster: Cluster) -> None:
    described, slurm = group.described, group.described.get("slurmConfiguration") or {}
    pcs_rules.check_sizes(described["scalingConfiguration"])
    pcs_rules.check_settings("compute node group", slurm.get("slurmCustomSettings") or [])
    pcs_rules.check_gres(slurm)
    pcs_rules.check_types([each["instanceType"] for each in described["instanceConfigs"]])
    pcs_rules.check_profile(described["iamInstanceProfileArn"], defaults.ACCOUNT, get_partition(group.region))
    most = described["scalingConfiguration"]["maxInstanceCount"]
    data = group.template_data()
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    block = reservations_of(ec2_backends[defaults.ACCOUNT][group.region]).get(target.get("CapacityReservationId", ""))
    size = None if block is None else block.count
    pcs_rules.check_template(data, described.get("purchaseOption", "ONDEMAND"), most, size)
    others = sum(
        each.described["scalingConfiguration"]["maxInstanceCount"]
        for each in cluster.groups.values()
        if each is not group
    )
    limit = pcs_rules.MOST_NODES[cluster.described["size"]]
    if most + others > limit:
        raise Refusal(
            "ServiceQuotaExceededException",
            f"A cluster of the size {cluster.described['size']} has at most {limit} nodes, got {most + others}",
        )


def _create_group(body: Body, region: str) -> Body:
    cluster = _cluster(body, region)
    name = body["computeNodeGroupName"]
    _refuse_taken(name, [each.described for each in cluster.groups.values()], "compute node group")
    described = _new(name=name, clusterId=cluster.described["id"])
    described |= {key: body[key] for key in _GROUP_KEYS if key in body}
    described["arn"] = f"{cluster.described['arn']}/computenodegroup/{described['id']}"
    group = ComputeNodeGroup(region=region, described=described)
    _check_group(group, cluster)
    cluster.groups[described["id"]] = group
    _tags[described["arn"]] = dict(body.get("tags") or {})
    group.look()
    return {"computeNodeGroup": described}


def _update_group(body: Body, region: str) -> Body:
    group, cluster = _group(body, region), _cluster(body, region)
    changed = {**group.described, **{key: body[key] for key in _GROUP_KEYS if key in body}}
    _check_group(ComputeNodeGroup(region=region, described=changed), _without(cluster, group))
    group.described.update(changed, status="UPDATING")
    group.updating = _REQUESTS_OF_AN_UPDATE
    group.look()
    return {"computeNodeGroup": group.described}


def _without(cluster: Cluster, group: ComputeNodeGroup) -> Cluster:
    others = {name: each for name, each in cluster.groups.items() if each is not group}
    return Cluster(described=cluster.described, groups=others)


def _delete_group(body: Body, region: str) -> Body:
    group, cluster = _group(body, region), _cluster(body, region)
    used = [
        queue["name"]
        for queue in cluster.queues.values()
        for each in queue["computeNodeGroupConfigurations"]
        if each["computeNodeGroupId"] == group.described["id"]
    ]
    if used:
        raise Refusal("ConflictException", f"The compute node group is in the queue {used[0]}")
    group.wanted = 0
    group.described["scalingConfiguration"] = {"minInstanceCount": 0, "maxInstanceCount": 0}
    group.look()
    del cluster.groups[group.described["id"]]
    return {}


_QUEUE_KEYS = ("computeNodeGroupConfigurations", "slurmConfiguration")


def _check_queue(queue: Mapping[str, Any], cluster: Cluster) -> None:
    pcs_rules.check_settings("queue", (queue.get("slurmConfiguration") or {}).get("slurmCustomSettings") or [])
    for each in queue.get("computeNodeGroupConfigurations") or []:
        if each["computeNodeGroupId"] not in cluster.groups:
            raise Refusal(
                "ResourceNotFoundException", f"The compute node group {each['computeNodeGroupId']} does not exist"
            )


def _create_queue(body: Body, region: str) -> Body:
    cluster, name = _cluster(body, region), body["queueName"]
    _refuse_taken(name, list(cluster.queues.values()), "queue")
    queue = _new(name=name, clusterId=cluster.described["id"])
    queue |= {"computeNodeGroupConfigurations": [], **{key: body[key] for key in _QUEUE_KEYS if key in body}}
    queue["arn"] = f"{cluster.described['arn']}/queue/{queue['id']}"
    _check_queue(queue, cluster)
    cluster.queues[queue["id"]] = queue
    _tags[queue["arn"]] = dict(body.get("tags") or {})
    return {"queue": queue}


def _update_queue(body: Body, region: str) -> Body:
    queue = _queue(body, region)
    changed = {**queue, **{key: body[key] for key in _QUEUE_KEYS if key in body}}
    _check_queue(changed, _cluster(body, region))
    queue.update(changed)
    return {"queue": queue}


def _delete_queue(body: Body, region: str) -> Body:
    del _cluster(body, region).queues[_queue(body, region)["id"]]
    return {}


def _list(name: str, shown: Callable[[Cluster], Sequence[Mapping[str, Any]]]) -> Callable[[Body, str], Body]:
    return lambda body, region: {name: shown(_cluster(body, region))}


def _tag(body: Body, _: str) -> Body:
    _tags[body["resourceArn"]].update(body["tags"])
    return {}


def _untag(body: Body, _: str) -> Body:
    for key in body["tagKeys"]:
        _tags[body["resourceArn"]].pop(key, None)
    return {}


_ACTIONS: Mapping[str, Callable[[Body, str], Body]] = {
    "CreateCluster": _create_cluster,
    "CreateComputeNodeGroup": _create_group,
    "CreateQueue": _create_queue,
    "DeleteCluster": _delete_cluster,
    "DeleteComputeNodeGroup": _delete_group,
    "DeleteQueue": _delete_queue,
    "GetCluster": lambda body, region: {"cluster": _cluster(body, region).described},
    "GetComputeNodeGroup": lambda body, region: {"computeNodeGroup": _group(body, region).described},
    "GetQueue": lambda body, region: {"queue": _queue(body, region)},
    "ListClusters": lambda _, region: {"clusters": [each.described for each in _clusters.get(region, {}).values()]},
    "ListComputeNodeGroups": _list(
        "computeNodeGroups", lambda cluster: [each.described for each in cluster.groups.values()]
    ),
    "ListQueues": _list("queues", lambda cluster: list(cluster.queues.values())),
    "ListTagsForResource": lambda body, _: {"tags": _tags.get(body["resourceArn"], {})},
    "TagResource": _tag,
    "UntagResource": _untag,
    "UpdateCluster": _update_cluster,
    "UpdateComputeNodeGroup": _update_group,
    "UpdateQueue": _update_queue,
}
