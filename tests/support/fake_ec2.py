"""EC2 in memory, as far as the power function talks to it."""

from collections.abc import Iterator
from typing import Any

from fake_pcs import FakePcs
from fake_reservations import FakeReservations
from fake_service import ACCOUNT, REGION, FakePaginator
from fake_spot_fleets import FakeSpotFleets


class FakeEc2(FakeSpotFleets, FakeReservations):
    """The client of EC2."""

    def __init__(self) -> None:
        super().__init__()
        self.pcs = FakePcs()

    def describe_pcs_nodes(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeInstances for the nodes of compute node groups."""
        size = parameters.pop("PaginationConfig")["PageSize"]
        self.record("DescribeInstances", {**parameters, "MaxResults": size})
        yield self.pcs.describe_instances(parameters["Filters"])

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {
            "describe_spot_fleet_requests": self.describe_fleets,
            "describe_spot_fleet_instances": self.describe_nodes,
            "describe_capacity_reservations": self.describe_reservations,
            "describe_instances": self.describe_pcs_nodes,
        }
        return FakePaginator(pages[operation])

    def terminate_instances(self, **parameters: Any) -> dict[str, Any]:
        """Answer TerminateInstances for instances that carry the cluster's tag."""
        for name in parameters["InstanceIds"]:
            arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{name}"
            tags = {"cdk-training-cluster:cluster": "base-pod"}
            self.record("TerminateInstances", parameters, names=[name], arn=arn, tags=tags)
        return {}
