"""EC2 in memory, as far as the power function talks to it."""

from typing import Any

from fake_reservations import FakeReservations
from fake_service import ACCOUNT, REGION, FakePaginator
from fake_spot_fleets import FakeSpotFleets


class FakeEc2(FakeSpotFleets, FakeReservations):
    """The client of EC2."""

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {
            "describe_spot_fleet_requests": self.describe_fleets,
            "describe_spot_fleet_instances": self.describe_nodes,
            "describe_capacity_reservations": self.describe_reservations,
        }
        return FakePaginator(pages[operation])

    def terminate_instances(self, **parameters: Any) -> dict[str, Any]:
        """Answer TerminateInstances for instances that carry the cluster's tag."""
        for name in parameters["InstanceIds"]:
            arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{name}"
            tags = {"cdk-training-cluster:cluster": "base-pod"}
            self.record("TerminateInstances", parameters, names=[name], arn=arn, tags=tags)
        return {}
