"""AWS PCS in memory: compute node groups that launch as many nodes as they were told to, or as jobs need."""

from dataclasses import dataclass, field
from typing import Any

from fake_service import ACCOUNT, REGION, FakeService, refusal


@dataclass
class FakeComputeNodeGroup:
    """One compute node group.

    Attributes:
        count: How many nodes the template gives it at most; a deployment writes that again, and the least 0.
        needed: How many nodes jobs need.
        capacity: How many nodes EC2 has for it.
        scheduler_sized: Whether Slurm sizes it.
        errors: What PCS shows as `errorInfo`.
    """

    id: str
    tags: dict[str, str]
    count: int
    scheduler_sized: bool
    needed: int = 0
    capacity: int = 1000
    least: int = 0
    most: int = 0
    status: str = "ACTIVE"
    alive: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deploy(self.count)

    @property
    def name(self) -> str:
        """What the function knows it by."""
        return f"pcs_1/{self.id}"

    @property
    def desired(self) -> int:
        """What counts as its size."""
        return self.most if self.scheduler_sized else self.least

    @desired.setter
    def desired(self, size: int) -> None:
        """Do what an operator does in the console."""
        self.least, self.most = 0 if self.scheduler_sized else size, size

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:pcs:{REGION}:{ACCOUNT}:cluster/pcs_1/computenodegroup/{self.id}"

    def deploy(self, count: int) -> None:
        """Do what CloudFormation does with any change of the group: send what the template says."""
        self.count = self.most = count
        self.least = 0
        self.tags["cdk-training-cluster:count"] = str(count)

    def settle(self) -> None:
        """Do what PCS does in a minute: end an update, then launch and terminate."""
        self.status = "ACTIVE"
        self.alive = min(self.most, self.capacity, max(self.least, self.needed))


class FakePcs(FakeService):
    """The client of AWS PCS, whose nodes EC2's client finds."""

    def __init__(self) -> None:
        super().__init__("pcs")
        self.groups: dict[str, FakeComputeNodeGroup] = {}

    def add(self, id: str, *, cluster: str, node_group: str, count: int, **settings: Any) -> FakeComputeNodeGroup:
        """Make a group that carries a cluster's tags."""
        tags = {"cdk-training-cluster:cluster": cluster, "cdk-training-cluster:node-group": node_group}
        self.groups[id] = FakeComputeNodeGroup(id=id, tags=tags, count=count, **settings)
        return self.groups[id]

    def get_compute_node_group(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetComputeNodeGroup."""
        group = self._of("GetComputeNodeGroup", parameters, parameters["computeNodeGroupIdentifier"])
        scaling = {"minInstanceCount": group.least, "maxInstanceCount": group.most}
        return {
            "computeNodeGroup": {
                **{"name": group.id, "id": group.id, "arn": group.arn, "clusterId": "pcs_1", "status": group.status},
                **{"scalingConfiguration": scaling, "instanceConfigs": [{"instanceType": "p5.48xlarge"}]},
                "errorInfo": group.errors,
            }
        }

    def update_compute_node_group(self, **parameters: Any) -> None:
        """Answer UpdateComputeNodeGroup."""
        group = self._of("UpdateComputeNodeGroup", parameters, parameters["computeNodeGroupIdentifier"])
        if group.status != "ACTIVE":
            raise refusal("UpdateComputeNodeGroup", "ConflictException", "it is being updated")
        scaling = parameters["scalingConfiguration"]
        group.least, group.most = scaling["minInstanceCount"], scaling["maxInstanceCount"]
        assert group.least in (0, group.most)
        group.status = "UPDATING"

    def list_tags_for_resource(self, **parameters: Any) -> dict[str, Any]:
        """Answer ListTagsForResource."""
        return {"tags": self._of("ListTagsForResource", parameters, parameters["resourceArn"]).tags}

    def tag_resource(self, **parameters: Any) -> None:
        """Answer TagResource."""
        tags = parameters["tags"]
        self._of("TagResource", parameters, parameters["resourceArn"], tag_keys=list(tags)).tags |= tags

    def describe_instances(self, filters: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the nodes of the group that a filter of DescribeInstances names, as EC2 does."""
        [group] = next(one["Values"] for one in filters if one["Name"] == "tag:aws:pcs:compute-node-group-id")
        nodes = [
            {"InstanceId": f"i-{group}-{number}", "State": {"Name": "running"}}
            for number in range(self.groups[group].alive)
        ]
        return {"Reservations": [{"Instances": nodes}]}

    def _of(self, operation: str, parameters: dict[str, Any], id: str, **keys: Any) -> FakeComputeNodeGroup:
        group = self.groups.get(id.rpartition("/")[2])
        reads = operation == "ListTagsForResource"
        arn = group.arn if group and not reads else "*"
        self.record(operation, parameters, names=[id], arn=arn, tags=group.tags if group else {}, **keys)
        if group is None:
            raise refusal(operation, "ResourceNotFoundException", f"{id} does not exist")
        return group
