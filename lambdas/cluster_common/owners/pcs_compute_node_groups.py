"""AWS PCS compute node groups as owners of nodes: the size of one is its maximum instance count."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.clients import Untyped
from cluster_common.errors import AWS_ERRORS, error_code
from cluster_common.owners.ec2_nodes import read_ec2_nodes, states, terminate
from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.owners.kinds import PCS_COMPUTE_NODE_GROUP
from cluster_common.owners.named_owners import Named, NamedOwners
from cluster_common.owners.node_owner import OwnerBusyError
from cluster_contract.owners import OwnerSettings
from cluster_contract.tags import COUNT_TAG

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

_BUSY = frozenset({"CREATING", "UPDATING", "SUSPENDING", "SUSPENDED", "RESUMING"})


class PcsComputeNodeGroups(NamedOwners):
    """The PCS compute node groups that the settings name by `<cluster id>/<compute node group id>`.

    A group that Slurm sizes has the minimum 0; the others have a minimum as high as the maximum: PCS takes no other.
    With a lower maximum PCS terminates nodes, and the jobs that ran on them return to their queues.

    Calls: pcs `GetComputeNodeGroup`, `ListTagsForResource`, `UpdateComputeNodeGroup` (scalingConfiguration alone),
    `TagResource`, `UntagResource`; ec2 `DescribeInstances` by the tag `aws:pcs:compute-node-group-id`.

    Sources: https://docs.aws.amazon.com/pcs/latest/APIReference/API_UpdateComputeNodeGroup.html and
    https://docs.aws.amazon.com/pcs/latest/userguide/working-with_cng_update.html
    """

    traits = PCS_COMPUTE_NODE_GROUP

    def __init__(self, client: Untyped, ec2: "EC2Client", named: Named) -> None:
        """Know the groups.

        Args:
            client: The client of AWS PCS.
            ec2: The client of EC2.
            named: What the settings say of the groups.
        """
        super().__init__(named)
        self._client = client
        self._ec2 = ec2
        self._errors: dict[str, list[str]] = {}

    def read_activities(
        self,
        group: OwnedGroup,
        since: datetime | None,  # noqa: ARG002 (PCS says why nodes are missing now)
    ) -> tuple[Activity, ...]:
        """Return the errors that PCS shows of a group as launches that have just failed."""
        return tuple(
            Activity(launch=True, started=self._now, failed=True, finished=True, message=message)
            for message in self._errors.get(group.name, [])
        )

    def _set_size(self, group: OwnedGroup, size: int) -> None:
        """Set the maximum instance count of a group, and the minimum where Slurm does not size it."""
        least = 0 if group.scheduler_sized else size
        try:
            self._client.update_compute_node_group(
                **_ids(group.name), scalingConfiguration={"minInstanceCount": least, "maxInstanceCount": size}
            )
        except AWS_ERRORS as error:
            # Another operation is under way on the group or its cluster.
            if error_code(error) == "ConflictException":
                raise OwnerBusyError from error
            raise

    def replace(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: ARG002 (EC2 knows it)
        """Terminate one node; AWS PCS launches another, where jobs or the group's minimum need one.

        AWS PCS takes a reboot for a failure and replaces the instance as well.
        https://docs.aws.amazon.com/pcs/latest/userguide/working-with_compute-instances.html
        """
        terminate(self._ec2, [instance_id])

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on a group."""
        self._client.tag_resource(resourceArn=group.arn, tags=dict(tags))

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from a group."""
        self._client.untag_resource(resourceArn=group.arn, tagKeys=list(keys))

    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        try:
            raw = self._client.get_compute_node_group(**_ids(owner.id))["computeNodeGroup"]
            tags = self._client.list_tags_for_resource(resourceArn=raw["arn"])["tags"]
        except AWS_ERRORS as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
            return None
        scaling, state = raw["scalingConfiguration"], raw["status"]
        least, most = scaling["minInstanceCount"], scaling["maxInstanceCount"]
        self._errors[owner.id] = [
            " ".join(f"{one.get('code', '')}: {one.get('message', '')}".split()) for one in raw.get("errorInfo", [])
        ]
        nodes = read_ec2_nodes(self._ec2, {"aws:pcs:compute-node-group-id": raw["id"]})
        count = self._counts.get(name, most)
        # CloudFormation writes the template's sizes with any change of the group: the minimum 0 and the whole count.
        # Until a deployment has changed the settings too, they have the count before.
        tag = tags.get(COUNT_TAG, "")
        written = int(tag) if tag.isdecimal() else count
        is_reset = most == written if owner.scheduler_sized else least != most
        in_service, others = states(nodes)
        return OwnedGroup(
            name=owner.id,
            node_group=name,
            owner=PCS_COMPUTE_NODE_GROUP,
            desired=most if owner.scheduler_sized else least,
            minimum=0,
            # PCS has no other maximum than the one that is set: the cluster's file has.
            maximum=min(count, written),
            in_service=in_service,
            out_of_service=others,
            instance_types=tuple(one["instanceType"] for one in raw.get("instanceConfigs", [])),
            busy=state in _BUSY,
            deleting=state == "DELETING",
            nodes=nodes,
            tags=tags,
            scheduler_sized=owner.scheduler_sized,
            reset_to=(most if owner.scheduler_sized else least) if is_reset else None,
            is_loose=is_reset and not owner.scheduler_sized,
            arn=raw["arn"],
        )


def _ids(owner: str) -> dict[str, str]:
    cluster, _, group = owner.partition("/")
    return {"clusterIdentifier": cluster, "computeNodeGroupIdentifier": group}
