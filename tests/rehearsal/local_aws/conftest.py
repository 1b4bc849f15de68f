"""One local AWS for all tests here, with a network that the stacks under test import from."""

import copy
import json
from collections.abc import Callable, Iterator

import pytest

from local_aws_scene import NETWORK, NODES, Stacks, Template
from rehearsal.local_aws import LocalAws


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("local-aws") / "log.txt") as running:
        running.client("cloudformation").create_stack(StackName="network", TemplateBody=json.dumps(NETWORK))
        yield running


@pytest.fixture
def stacks(aws: LocalAws) -> Iterator[Stacks]:
    made = Stacks(aws)
    yield made
    made.clean_up()


@pytest.fixture
def nodes() -> Template:
    """A small legal template: a node group, a file system and a link, in the network's VPC."""
    return copy.deepcopy(NODES)


@pytest.fixture
def inventory(aws: LocalAws) -> Callable[[], dict[str, int]]:
    """Count what the services hold, apart from CloudFormation's own books."""

    def count() -> dict[str, int]:
        ec2, fsx = aws.client("ec2"), aws.client("fsx")
        return {
            "interfaces": len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
            "placement groups": len(ec2.describe_placement_groups()["PlacementGroups"]),
            "launch templates": len(ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]),
            "security groups": len(ec2.describe_security_groups()["SecurityGroups"]),
            "subnets": len(ec2.describe_subnets()["Subnets"]),
            "groups": len(aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]),
            "file systems": len(fsx.describe_file_systems()["FileSystems"]),
            "links": len(fsx.describe_data_repository_associations()["Associations"]),
            "roles": len(aws.client("iam").list_roles()["Roles"]),
            "profiles": len(aws.client("iam").list_instance_profiles()["InstanceProfiles"]),
            "buckets": len(aws.client("s3").list_buckets()["Buckets"]),
        }

    return count


@pytest.fixture
def refused(stacks: Stacks, inventory: Callable[[], dict[str, int]]) -> Callable[[Template], tuple[str, str]]:
    """Deploy a template that must fail at one resource and leave nothing; return which, and its reason."""

    def deploy(template: Template) -> tuple[str, str]:
        before = inventory()
        name = stacks.create(template)
        assert stacks.status(name) == "ROLLBACK_COMPLETE"
        ((logical_id, reason),) = stacks.reasons(name).items()
        assert inventory() == before
        return logical_id, reason

    return deploy
