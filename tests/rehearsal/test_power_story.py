"""The power function through deployments, an operator and missing capacity: its own deployed code, on the local AWS.

One story in order, since each part starts where the last one ended.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cdk_training_cluster import Schedule
from cluster_plans import ClusterPlan
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from synthesis import ZONE

_TYPE = "g5.xlarge"


class Story(Deployed):
    """A cluster of one node group, and what its people do."""

    def deploy_count(self, count: int, **settings: Any) -> None:
        workers = {"name": "workers", "instance_types": [_TYPE], "count": count, "call": "on_demand", **settings}
        self.deploy(ClusterPlan(groups=(workers,), existing_network=True))

    def told(self, action: str, **words: Any) -> dict[str, Any]:
        """Call the deployed function and return what it says of the one node group."""
        return self.say(action, **words)["workers"]

    @property
    def group(self) -> dict[str, Any]:
        return self.groups["workers"]


def test_the_story_of_a_cluster(aws: LocalAws, tmp_path: Path) -> None:
    prepare(aws, [_TYPE])
    story = Story(aws, tmp_path, "story")

    # EC2 has no node to give: the deployment succeeds all the same, and the function says what is missing.
    story.aws.set_capacity(_TYPE, ZONE, available=0)
    story.deploy_count(2)
    assert story.status == "CREATE_COMPLETE", story.failures
    assert (story.group["desired_capacity"], story.group["count_running"]) == (0, 0)
    story.told("tick")
    told = story.told("tick")
    assert (told["wanted"], told["desired"], told["in_service"], told["missing"]) == (2, 2, 0, 2)
    assert told["problem"] == "no-capacity"
    assert "0 of 2 nodes are running in us-east-1b" in told["reason"]
    assert "InsufficientInstanceCapacity" in told["reason"]

    # EC2 has nodes again: Auto Scaling gets them, and the problem ends.
    story.aws.set_capacity(_TYPE, ZONE, available=None)
    told = story.told("tick")
    assert (told["in_service"], told["problem"]) == (2, None)
    running = story.group["instance_ids"]
    assert len(running) == 2

    # A second deployment of the same file touches neither sizes nor nodes.
    story.deploy_count(2)
    story.told("tick")
    assert story.group["instance_ids"] == running

    # An operator takes a node away by hand: neither a tick nor a deployment fights that.
    story.aws.client("autoscaling").set_desired_capacity(
        AutoScalingGroupName=story.group["auto_scaling_group"], DesiredCapacity=1
    )
    # Right after it has set a size, what Auto Scaling shows may be an older one.
    assert story.told("tick", later=timedelta(minutes=2))["decision"] == "held"
    story.deploy_count(2)
    story.told("tick")
    assert (story.group["desired_capacity"], story.group["count_running"]) == (1, 1)

    # Somebody stops the cluster; who and why stand on the group. Neither a deployment nor a new count wakes it.
    story.told("stop", reason="no jobs until Monday")
    assert story.group["count_running"] == 0
    story.deploy_count(3)
    story.told("tick")
    assert story.group["power"].startswith("stopped by an operator in request ")
    assert story.group["power"].endswith(": no jobs until Monday")
    assert (story.group["desired_capacity"], story.group["count_running"]) == (0, 0)

    # Started again, it has the count of the file as it was last deployed.
    story.told("start", reason="Monday")
    assert story.told("tick")["in_service"] == 3

    # A new count in the file is what changes a running cluster's size, up and down.
    for count in (4, 1):
        story.deploy_count(count)
        story.told("tick")
        assert story.told("tick")["in_service"] == count

    # A schedule is deployed in one of its windows, which ends two hours later: the function gives notice, stops the
    # node, and starts it again with the next window.
    now, hour = datetime.now(UTC), timedelta(hours=1)
    window = f"daily {now - hour:%H:%M}-{now + 2 * hour:%H:%M} UTC"
    story.deploy_count(1, schedule=Schedule([window]))
    assert story.told("tick")["schedule"]["then"] == "it is stopped"
    noticed = story.told("tick", later=1.9 * hour)
    assert (noticed["in_service"], noticed["schedule"]["words"]) == (1, window)
    stopped = story.told("tick", later=2.2 * hour)
    assert (stopped["by"], stopped["wanted"]) == ("its schedule", 0)
    assert story.group["count_running"] == 0
    assert story.told("tick", later=22 * hour)["schedule"]["then"] == "it starts"
    story.told("tick", later=23.1 * hour)
    assert story.told("tick", later=23.2 * hour)["in_service"] == 1
    story.destroy()
