"""Instances in memory: what DescribeInstances tells of them, and what EC2 refuses to stop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from fake_service import ACCOUNT, REGION, FakePaginator, refusal
from fake_spot_fleets import FakeFleet, FakeSpotFleets
from policy_evaluator import Call

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
MAX_TAGS = 50
CLUSTER_TAG = "cdk-training-cluster:cluster"


@dataclass
class FakeNode:
    """One instance.

    Attributes:
        points: What it has reported of its utilization: the start of each period, and the maximum in it.
        others: What else was reported of it, by metric.
        stop_refusal: Code and message with which EC2 refuses to stop it. None: it stops it.
        raw: What else DescribeInstances says of it.
    """

    id: str
    launched: datetime
    tags: dict[str, str]
    instance_type: str = "p5.48xlarge"
    state: str = "running"
    load: float | None = 0.0
    points: dict[datetime, float] = field(default_factory=dict)
    others: dict[str, dict[datetime, float]] = field(default_factory=dict)
    stop_refusal: tuple[str, str] | None = None
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{self.id}"

    def describe(self) -> dict[str, Any]:
        """Return it as DescribeInstances does."""
        return {
            "InstanceId": self.id,
            "InstanceType": self.instance_type,
            "LaunchTime": self.launched,
            "State": {"Name": self.state, "Code": 16},
            "RootDeviceType": "ebs",
            "HibernationOptions": {"Configured": False},
            "CpuOptions": {"CoreCount": 96, "ThreadsPerCore": 2},
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
            **self.raw,
        }


class FakeInstances(FakeSpotFleets):
    """The client of EC2, as far as instances go.

    Attributes:
        page_size: How many instances a page has.
        fail_page: Which page EC2 does not answer, counted from 1. None: it answers all.
    """

    page_size = 3
    fail_page: int | None = None

    def __init__(self) -> None:
        super().__init__("ec2")
        self.nodes: dict[str, FakeNode] = {}
        self.spot_requests: dict[str, dict[str, Any]] = {}

    def describe_instances(self, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeInstances, in smaller pages than were asked for, as EC2 may."""
        self.record("DescribeInstances", parameters)
        assert parameters["MaxResults"] <= 200
        found = [node for _, node in sorted(self.nodes.items()) if _matches(node, parameters["Filters"])]
        start = int(parameters.get("NextToken") or 0)
        if self.fail_page == start // self.page_size + 1:
            raise refusal("DescribeInstances", "RequestLimitExceeded", "Request limit exceeded.")
        end = start + self.page_size
        return {
            "Reservations": [{"Instances": [node.describe()]} for node in found[start:end]],
            **({"NextToken": str(end)} if end < len(found) else {}),
        }

    def stop_instances(self, **parameters: Any) -> dict[str, Any]:
        """Answer StopInstances: all of them stop, or none."""
        ids = parameters["InstanceIds"]
        self._record_each("StopInstances", parameters, ids)
        assert len(ids) <= 50
        for one in ids:
            node = self.nodes.get(one)
            if node is None:
                raise refusal(
                    "StopInstances", "InvalidInstanceID.NotFound", f"The instance ID '{one}' does not exist"
                )
            if node.stop_refusal:
                raise refusal("StopInstances", *node.stop_refusal)
        for one in ids:
            self.nodes[one].state = "stopping"
        return {"StoppingInstances": [{"InstanceId": one} for one in ids]}

    def create_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer CreateTags."""
        keys = [tag["Key"] for tag in parameters["Tags"]]
        self._record_each("CreateTags", parameters, parameters["Resources"], keys)
        for one in parameters["Resources"]:
            assert all(len(tag["Value"]) <= 256 for tag in parameters["Tags"])
            if len({key for key in {*self._tagged(one).tags, *keys} if not key.startswith("aws:")}) > MAX_TAGS:
                raise refusal("CreateTags", "TagLimitExceeded", "The maximum number of tags is 50.")
            self._tagged(one).tags.update({tag["Key"]: tag["Value"] for tag in parameters["Tags"]})
        return {}

    def delete_tags(self, **parameters: Any) -> dict[str, Any]:
        """Answer DeleteTags."""
        keys = [tag["Key"] for tag in parameters["Tags"]]
        self._record_each("DeleteTags", parameters, parameters["Resources"], keys)
        for one in parameters["Resources"]:
            for key in keys:
                self._tagged(one).tags.pop(key, None)
        return {}

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of a Describe operation."""
        pages = {
            "describe_spot_fleet_requests": self.describe_fleets,
            "describe_spot_fleet_instances": self.describe_nodes,
            "describe_spot_instance_requests": self._describe_spot_requests,
        }
        return FakePaginator(pages[operation])

    def describe_nodes(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeSpotFleetInstances: what carries the request's tag and runs."""
        fleet = self._fleet("DescribeSpotFleetInstances", parameters)
        yield {
            "ActiveInstances": [
                {"InstanceId": node.id, "InstanceType": node.instance_type, "InstanceHealth": "healthy"}
                for node in self.nodes.values()
                if node.tags.get("aws:ec2spot:fleet-request-id") == fleet.id and node.state == "running"
            ]
        }

    def _describe_spot_requests(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.record("DescribeSpotInstanceRequests", parameters)
        (only,) = parameters["Filters"]
        for one in only["Values"]:
            yield {"SpotInstanceRequests": [{"SpotInstanceRequestId": one, **self.spot_requests[one]}]}

    def _record_each(
        self, operation: str, parameters: dict[str, Any], ids: list[str], keys: list[str] | None = None
    ) -> None:
        """Record a call once for each resource that IAM looks at."""
        first, *rest = [self._tagged(one) for one in ids if one in self.nodes or one in self.fleets]
        for resource in rest:
            context: dict[str, str | list[str]] = {
                f"aws:ResourceTag/{key}": value for key, value in resource.tags.items()
            }
            if keys is not None:
                context["aws:TagKeys"] = keys
            self.calls.append(Call(action=f"ec2:{operation}", resource=resource.arn, context=context))
        self.record(operation, parameters, names=ids, arn=first.arn, tags=first.tags, tag_keys=keys)

    def _tagged(self, id: str) -> FakeNode | FakeFleet:
        return self.nodes[id] if id in self.nodes else self.fleets[id]


def stop_refused(code: str, message: str) -> ClientError:
    """Return the error with which EC2 refuses to stop instances."""
    return refusal("StopInstances", code, message)


def _matches(node: FakeNode, filters: list[dict[str, Any]]) -> bool:
    values = {"instance-state-name": {node.state}, "instance-id": {node.id}, "tag-key": set(node.tags)}
    return all(
        ({node.tags.get(one["Name"][4:])} if one["Name"].startswith("tag:") else values[one["Name"]])
        & set(one["Values"])
        for one in filters
    )
