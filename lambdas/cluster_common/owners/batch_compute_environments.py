"""AWS Batch compute environments as owners of nodes: the size of one is its maximum vCPUs in nodes."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cluster_common.clients import Untyped
from cluster_common.errors import AWS_ERRORS, error_code, error_text
from cluster_common.owners.ec2_nodes import read_ec2_nodes, states
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.kinds import BATCH_COMPUTE_ENVIRONMENT
from cluster_common.owners.named_owners import Named, NamedOwners
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_contract.owners import OwnerSettings
from cluster_contract.tags import NODE_GROUP_TAG

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.literals import InstanceTypeType

_BUSY = frozenset({"CREATING", "UPDATING"})


class BatchComputeEnvironments(NamedOwners):
    """The compute environments that the settings name, each of one instance type.

    Batch alone launches and terminates the nodes, as jobs need them: it takes no desired vCPUs that are fewer. So the
    functions set the maximum, and disable an environment that is to have no nodes: jobs that run go on to their end.
    Only these settings change in a request, since any other would replace the nodes.

    Calls: batch `DescribeComputeEnvironments`, `UpdateComputeEnvironment` (state, computeResources.maxvCpus),
    `TagResource`, `UntagResource`; ec2 `DescribeInstanceTypes`, `DescribeInstances` by the launch template's tags.

    Sources: https://docs.aws.amazon.com/batch/latest/userguide/scaling-updates.html and
    https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateComputeEnvironment.html
    """

    traits = BATCH_COMPUTE_ENVIRONMENT

    def __init__(self, client: Untyped, ec2: "EC2Client", named: Named) -> None:
        """Know the environments.

        Args:
            client: The client of AWS Batch.
            ec2: The client of EC2.
            named: What the settings say of the environments.
        """
        super().__init__(named)
        self._client = client
        self._ec2 = ec2
        self._vcpus: dict[str, int] = {}

    def _set_size(self, group: OwnedGroup, size: int) -> None:
        """Set the maximum vCPUs of an environment, and disable it where it is to have no nodes."""
        change: dict[str, Any] = {"state": "DISABLED"}
        if size:
            per_node = self._vcpus_of(group.instance_types)
            change = {"state": "ENABLED", "computeResources": {"maxvCpus": size * per_node}}
        try:
            self._client.update_compute_environment(computeEnvironment=group.name, **change)
        except AWS_ERRORS as error:
            # Batch has one code for all that it refuses.
            if error_code(error) == "ClientException" and "being modified" in error_text(error):
                raise OwnerBusyError from error
            raise

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on an environment only, not on its nodes."""
        self._client.tag_resource(resourceArn=group.arn, tags=dict(tags))

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from an environment."""
        self._client.untag_resource(resourceArn=group.arn, tagKeys=list(keys))

    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        answer = self._client.describe_compute_environments(computeEnvironments=[owner.id])
        raw = next((one for one in answer["computeEnvironments"] if one.get("status") != "DELETED"), None)
        if raw is None:
            return None
        resources, state = raw["computeResources"], raw.get("status")
        types = tuple(resources.get("instanceTypes", []))
        size = resources["maxvCpus"] // self._vcpus_of(types) if raw.get("state") == "ENABLED" else 0
        count = self._counts.get(name, size)
        nodes = read_ec2_nodes(self._ec2, {self._tag: self._cluster, NODE_GROUP_TAG: name})
        in_service, others = states(nodes)
        return OwnedGroup(
            name=owner.id,
            node_group=name,
            owner=BATCH_COMPUTE_ENVIRONMENT,
            desired=size,
            minimum=0,
            # An environment has no other maximum than the one that is set: the cluster's file has.
            maximum=count,
            in_service=in_service,
            out_of_service=others,
            instance_types=types,
            busy=state in _BUSY,
            deleting=state == "DELETING",
            nodes=nodes,
            tags=raw.get("tags", {}),
            scheduler_sized=True,
            # CloudFormation writes the template's maximum, and enables it, with any change of the environment.
            reset_to=count,
            arn=raw["computeEnvironmentArn"],
        )

    def _vcpus_of(self, types: "Iterable[str]") -> int:
        """Return how many vCPUs the largest of some instance types has."""
        missing: list[InstanceTypeType] = [one for one in types if one not in self._vcpus]  # type: ignore[misc]
        if missing:
            answer = self._ec2.describe_instance_types(InstanceTypes=missing)
            for one in answer["InstanceTypes"]:
                self._vcpus[one.get("InstanceType", "")] = one.get("VCpuInfo", {}).get("DefaultVCpus", 1)
        return max(self._vcpus[one] for one in types)
