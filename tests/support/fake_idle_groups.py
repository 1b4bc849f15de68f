"""Auto Scaling groups in memory, with the ids of their nodes, as the idle function looks at them."""

from collections.abc import Iterator
from typing import Any

from fake_auto_scaling import FakeAutoScaling


class FakeIdleGroups(FakeAutoScaling):
    """The client of Auto Scaling.

    Attributes:
        members: The ids of the instances of each group.
        states: The lifecycle states of those that are not in service.
        protected: The ids of those that are protected from scale-in.
    """

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, list[str]] = {}
        self.states: dict[str, str] = {}
        self.protected: set[str] = set()

    def describe_groups(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeAutoScalingGroups, page by page."""
        for page in super().describe_groups(**parameters):
            for raw in page["AutoScalingGroups"]:
                ids = self.members.get(raw["AutoScalingGroupName"], [])
                raw["Instances"] = [
                    {
                        "InstanceId": one,
                        "LifecycleState": self.states.get(one, "InService"),
                        "ProtectedFromScaleIn": one in self.protected,
                    }
                    for one in ids
                ]
            yield page

    def delete_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer DeleteTags."""
        tags = parameters["Tags"]
        group = self._group(tags[0]["ResourceId"])
        keys = [tag["Key"] for tag in tags]
        self.record("DeleteTags", parameters, names=[group.name], arn=group.arn, tags=group.tags, tag_keys=keys)
        for key in keys:
            group.tags.pop(key, None)
        return {}
