"""SageMaker HyperPod instance groups as owners of nodes: the size of one is its instance count."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from cluster_common.clients import Untyped
from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.owners.ec2_nodes import IN_SERVICE, states
from cluster_common.owners.groups import Activity, OwnedGroup, OwnedNode
from cluster_common.owners.kinds import HYPERPOD_INSTANCE_GROUP
from cluster_common.owners.named_owners import Named, NamedOwners
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_contract.owners import OwnerSettings

_BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
_GONE = frozenset({"NotFound"})
_PAGE = 100
_DELETE = "BatchDeleteClusterNodes"

# What Auto Scaling calls the states of the same meaning, which decisions know.
_STATES = {"Running": IN_SERVICE, "Pending": "Pending", "ShuttingDown": "Terminating"}

# What DescribeCluster returns of an instance group and UpdateCluster takes as it is; the rest has other names there.
# https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
KEPT = (
    *("InstanceGroupName", "InstanceType", "LifeCycleConfig", "ExecutionRole", "ThreadsPerCore"),
    *("InstanceStorageConfigs", "OnStartDeepHealthChecks", "TrainingPlanArn", "OverrideVpcConfig"),
    *("ScheduledUpdateConfig", "SlurmConfig", "CapacityRequirements", "NetworkInterface"),
)


class HyperPodInstanceGroups(NamedOwners):
    """The HyperPod instance groups that the settings name by `<cluster name>/<instance group>`.

    Its nodes are no EC2 instances of the account. UpdateCluster takes an instance group as a whole, so that the group
    is described right before, and needs `iam:PassRole` on its execution role. An instance group has no tags: those of
    its cluster hold for all of them, and `<key>/<instance group>` for one.

    Calls: sagemaker `DescribeCluster`, `ListClusterNodes`, `ListClusterEvents`, `ListTags`, `UpdateCluster` (the one
    instance group), `BatchDeleteClusterNodes` (one node), `AddTags`, `DeleteTags`.

    Sources: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html and
    https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-scale-down.html
    """

    traits = HYPERPOD_INSTANCE_GROUP

    def __init__(self, client: Untyped, named: Named) -> None:
        """Know the instance groups.

        Args:
            client: The client of SageMaker.
            named: What the settings say of the instance groups.
        """
        super().__init__(named)
        self._client = client

    def read_activities(self, group: OwnedGroup, since: datetime | None) -> tuple[Activity, ...]:
        """Read the errors among the events of an instance group since a time, newest first."""
        cluster, name = _names(group.name)
        request = {"ClusterName": cluster, "InstanceGroupName": name, "MaxResults": _PAGE}
        if since is not None:
            request["EventTimeAfter"] = since
        try:
            events = self._client.list_cluster_events(**request)["Events"]
        except AWS_ERRORS as error:
            # HyperPod keeps events where its node provisioning mode is Continuous only.
            if error_code(error) != "ValidationException":
                raise
            return ()
        return tuple(
            Activity(
                launch=True,
                started=one["EventTime"],
                failed=True,
                finished=True,
                message=" ".join(one.get("Description", "").split()),
            )
            for one in sorted(events, key=lambda one: one["EventTime"], reverse=True)
            if one.get("EventLevel") == "Error"
        )

    def _set_size(self, group: OwnedGroup, size: int) -> None:
        """Set the instance count of an instance group; the rest of it stays as it is."""
        cluster, name = _names(group.name)
        raw = next(one for one in self._describe(cluster)["InstanceGroups"] if one["InstanceGroupName"] == name)
        try:
            self._client.update_cluster(ClusterName=cluster, InstanceGroups=[_specification(raw, size)])
        except AWS_ERRORS as error:
            # Another update, or a deep health check, is under way.
            if error_code(error) in ("ConflictException", "ResourceInUse"):
                raise OwnerBusyError from error
            raise

    def terminate(self, group: OwnedGroup, instance_id: str) -> None:
        """Delete one node, for which HyperPod lowers the instance count by one.

        Raises:
            ClientError: HyperPod deletes it not; of several nodes it answers so within a success.
        """
        answer = self._client.batch_delete_cluster_nodes(ClusterName=_names(group.name)[0], NodeIds=[instance_id])
        for failure in answer.get("Failed", []):
            error = ClientError({"Error": {"Code": failure["Code"], "Message": failure["Message"]}}, _DELETE)
            raise error

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on the cluster that hold for one instance group."""
        own = [{"Key": _own_key(key, group), "Value": value} for key, value in tags.items()]
        self._client.add_tags(ResourceArn=group.arn, Tags=own)

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from the cluster that hold for one instance group."""
        self._client.delete_tags(ResourceArn=group.arn, TagKeys=[_own_key(key, group) for key in keys])

    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        cluster, group = _names(owner.id)
        try:
            described = self._describe(cluster)
        except AWS_ERRORS as error:
            if error_code(error) != "ResourceNotFound":
                raise
            return None
        raw = next((one for one in described.get("InstanceGroups", []) if one["InstanceGroupName"] == group), None)
        if raw is None:
            return None
        nodes, arn, state = self._read_nodes(cluster, group), described["ClusterArn"], described["ClusterStatus"]
        count = self._counts.get(name, raw["TargetCount"])
        in_service, others = states(nodes)
        return OwnedGroup(
            name=owner.id,
            node_group=name,
            owner=HYPERPOD_INSTANCE_GROUP,
            desired=raw["TargetCount"],
            minimum=0,
            # An instance group has no largest size: the cluster's file has.
            maximum=count,
            in_service=in_service,
            out_of_service=others,
            instance_types=tuple(sorted({node.instance_type for node in nodes.values()})),
            # In the mode Continuous HyperPod takes another count while nodes are on their way.
            busy=state in _BUSY and described.get("NodeProvisioningMode") != "Continuous",
            deleting=state == "Deleting" or raw.get("Status") == "Deleting",
            nodes=nodes,
            tags=self._read_tags(arn, group),
            scheduler_sized=owner.scheduler_sized,
            # CloudFormation sends the template's counts of all instance groups with any change of the cluster.
            reset_to=count,
            arn=arn,
        )

    def _describe(self, cluster: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._client.describe_cluster(ClusterName=cluster)
        return answer

    def _read_nodes(self, cluster: str, group: str) -> dict[str, OwnedNode]:
        request = {"ClusterName": cluster, "InstanceGroupNameContains": group, "MaxResults": _PAGE}
        nodes: dict[str, OwnedNode] = {}
        while True:
            answer = self._client.list_cluster_nodes(**request)
            for one in answer["ClusterNodeSummaries"]:
                state = one["InstanceStatus"]["Status"]
                if one["InstanceGroupName"] == group and state not in _GONE:
                    nodes[one["InstanceId"]] = OwnedNode(
                        state=_STATES.get(state, state),
                        instance_type=one["InstanceType"],
                        launched=one["LaunchTime"],
                    )
            if not answer.get("NextToken"):
                return nodes
            request["NextToken"] = answer["NextToken"]

    def _read_tags(self, arn: str, group: str) -> dict[str, str]:
        """Return the tags of a cluster that hold for one of its instance groups."""
        request = {"ResourceArn": arn}
        tags: dict[str, str] = {}
        while True:
            answer = self._client.list_tags(**request)
            tags |= {one["Key"]: one["Value"] for one in answer.get("Tags", [])}
            if not answer.get("NextToken"):
                break
            request["NextToken"] = answer["NextToken"]
        own = {key.removesuffix(f"/{group}"): value for key, value in tags.items() if key.endswith(f"/{group}")}
        return tags | own


def _names(owner: str) -> tuple[str, str]:
    cluster, _, group = owner.partition("/")
    return cluster, group


def _own_key(key: str, group: OwnedGroup) -> str:
    return f"{key}/{_names(group.name)[1]}"


def _specification(raw: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return an instance group as UpdateCluster takes it, with another instance count."""
    given = {key: raw[key] for key in KEPT if raw.get(key)}
    kubernetes = raw.get("KubernetesConfig", {})
    labels, taints = kubernetes.get("DesiredLabels"), kubernetes.get("DesiredTaints")
    if labels or taints:
        wanted = {"Labels": labels, "Taints": taints}
        given["KubernetesConfig"] = {key: value for key, value in wanted.items() if value}
    types = raw.get("InstanceRequirements", {}).get("DesiredInstanceTypes")
    if types:
        given["InstanceRequirements"] = {"InstanceTypes": types}
        given.pop("InstanceType", None)
    return {**given, **_image(raw), **_patching(raw), **_least(raw, size), "InstanceCount": size}


def _image(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the image: a version of HyperPod's own, which is described of no other, or another image."""
    described = {"ImageReleaseVersion": "DesiredImageReleaseVersion", "ImageId": "DesiredImageId"}
    return next(({key: raw[name]} for key, name in described.items() if raw.get(name)), {})


def _patching(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return how HyperPod patches the nodes by itself, with the date that an operator has asked for."""
    given = dict(raw.get("AutoPatchConfig", {}))
    current, desired = given.pop("CurrentPatchSchedule", None), given.pop("DesiredPatchSchedule", None)
    if desired and desired != current:
        given["PatchSchedule"] = desired
    return {"AutoPatchConfig": given} if given else {}


def _least(raw: Mapping[str, Any], size: int) -> dict[str, int]:
    """Return how many nodes must come within three hours, or HyperPod undoes the update: at most those asked for."""
    least = min(raw.get("MinCount") or 0, size)
    return {"MinInstanceCount": least} if least else {}
