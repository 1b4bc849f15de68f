"""What there is in the local AWS, and what a refused template may not leave in it."""

from collections.abc import Callable

import pytest

from local_aws import LocalAws
from local_aws_scene import Stacks, Template, aws, nodes, stacks

__all__ = ["aws", "nodes", "stacks"]

ACTIVE = [{"Name": "state", "Values": ["active"]}]


def inventory(aws: LocalAws) -> dict[str, int]:
    """Count what the services hold, apart from CloudFormation's own books."""
    ec2, fsx, iam = aws.client("ec2"), aws.client("fsx"), aws.client("iam")
    return {
        "interfaces": len(ec2.describe_network_interfaces()["NetworkInterfaces"]),
        "placement groups": len(ec2.describe_placement_groups()["PlacementGroups"]),
        "reservations": len(ec2.describe_capacity_reservations(Filters=ACTIVE)["CapacityReservations"]),
        "resource groups": len(aws.client("resource-groups").list_groups()["GroupIdentifiers"]),
        "launch templates": len(ec2.describe_launch_templates(MaxResults=200)["LaunchTemplates"]),
        "security groups": len(ec2.describe_security_groups()["SecurityGroups"]),
        "subnets": len(ec2.describe_subnets()["Subnets"]),
        "spot fleets": sum(
            not request["SpotFleetRequestState"].startswith("cancelled")
            for request in ec2.describe_spot_fleet_requests()["SpotFleetRequestConfigs"]
        ),
        "groups": len(aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]),
        "file systems": len(fsx.describe_file_systems()["FileSystems"]),
        "links": len(fsx.describe_data_repository_associations()["Associations"]),
        "roles": len(iam.list_roles()["Roles"]),
        "buckets": len(aws.client("s3").list_buckets()["Buckets"]),
    }


@pytest.fixture
def refused(aws: LocalAws, stacks: Stacks) -> Callable[[Template], str]:
    """Deploy a template that must fail at one resource and leave nothing; return the reason."""

    def deploy(template: Template) -> str:
        untouched = inventory(aws)
        name = stacks.create(template)
        assert stacks.status(name) == "ROLLBACK_COMPLETE"
        (reason,) = stacks.reasons(name).values()
        assert inventory(aws) == untouched
        return reason

    return deploy
