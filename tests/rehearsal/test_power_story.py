"""The power function through deployments, an operator and missing capacity: its own deployed code, on the local AWS.

One story in order, since each part starts where the last one ended; every deployment is the real CDK CLI's.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal import readback
from rehearsal.cdk_cli import CdkCli
from rehearsal.node_groups import node_groups

_ZONE = "us-east-1b"
_FILE = """
name: story
availability_zone: us-east-1b
node_groups:
  - {{name: workers, instance_types: [g5.xlarge], count: {count}, image: latest}}
termination_protection: false
"""


class Story:
    """A cluster on the local AWS, and what its people do."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self.aws = aws
        self._directory = directory
        self._file = directory / "story.yaml"

    def write(self, count: int) -> None:
        self._file.write_text(_FILE.format(count=count))
        assert read_cluster_file(self._file).name == "story"

    def deploy(self, count: int) -> None:
        self.write(count)
        self.cdk.deploy()

    @property
    def cdk(self) -> CdkCli:
        return CdkCli(
            environment={**self.aws.environment(), "CDK_VALIDATION": "false"},
            cluster_file=self._file,
            output=self._directory / "cdk.out",
            log=self._directory / "cdk.log",
            account=self.aws.account,
            region=self.aws.region,
        )

    def say(self, action: str, **words: Any) -> dict[str, Any]:
        """Call the deployed function and return what it says of the one node group."""
        functions = readback.functions(self.aws.client, "story-cluster", self.aws.account, self.aws.region)
        ((configuration, code),) = (one for one in functions if one[0]["Handler"].startswith("cluster_power."))
        function = DeployedFunction(configuration, code, self._directory, self.aws.environment())
        (group,) = function({"action": action, **words}, alias="" if action == "tick" else "operate")["node_groups"]
        return dict(group)

    @property
    def group(self) -> dict[str, Any]:
        (group,) = node_groups(self.aws.client, "story")
        return group

    def stack_status(self) -> str:
        return str(readback.stacks(self.aws.client, ["story-cluster"])["story-cluster"]["status"])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("story")
    with LocalAws(directory / "local-aws.log") as aws:
        story = Story(aws, directory)
        story.write(count=2)
        story.cdk.bootstrap()
        yield story


def test_the_story_of_a_cluster(story: Story) -> None:
    # EC2 has no node to give: the deployment succeeds all the same, and the function says what is missing.
    story.aws.set_capacity("g5.xlarge", _ZONE, available=0)
    story.deploy(count=2)
    assert story.stack_status() == "CREATE_COMPLETE"
    assert (story.group["desired_capacity"], story.group["count_running"]) == (0, 0)
    story.say("tick")
    told = story.say("tick")
    assert (told["wanted"], told["desired"], told["in_service"], told["missing"]) == (2, 2, 0, 2)
    assert told["problem"] == "no-capacity"
    assert "0 of 2 nodes are running in us-east-1b" in told["reason"]
    assert "InsufficientInstanceCapacity" in told["reason"]

    # EC2 has nodes again: Auto Scaling gets them, and the problem ends.
    story.aws.set_capacity("g5.xlarge", _ZONE, available=None)
    told = story.say("tick")
    assert (told["in_service"], told["problem"]) == (2, None)
    running = story.group["instance_ids"]
    assert len(running) == 2

    # A second deployment of the same file touches neither sizes nor nodes.
    story.deploy(count=2)
    story.say("tick")
    assert story.group["instance_ids"] == running

    # An operator takes a node away by hand: neither a tick nor a deployment fights that.
    story.aws.client("autoscaling").set_desired_capacity(
        AutoScalingGroupName=story.group["auto_scaling_group"], DesiredCapacity=1
    )
    assert story.say("tick")["decision"] == "held"
    story.deploy(count=2)
    story.say("tick")
    assert (story.group["desired_capacity"], story.group["count_running"]) == (1, 1)

    # Somebody stops the cluster; who and why stand on the group. Neither a deployment nor a new count wakes it.
    story.say("stop", reason="no jobs until Monday")
    assert story.group["count_running"] == 0
    assert story.group["power"]["power-by"].startswith("an operator in request ")
    assert story.group["power"]["power-reason"] == "no jobs until Monday"
    story.deploy(count=3)
    story.say("tick")
    assert (story.group["desired_capacity"], story.group["count_running"]) == (0, 0)

    # Started again, it has the count of the file as it was last deployed.
    story.say("start", reason="Monday")
    assert story.say("tick")["in_service"] == 3

    # A new count in the file is what changes a running cluster's size, up and down.
    for count in (4, 1):
        story.deploy(count=count)
        story.say("tick")
        assert story.say("tick")["in_service"] == count
