"""Batch templates that a linter passes: what Batch says of each, if it says anything, and the rule by which a synth
refuses it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Wrong:
    """A wrong template.

    Attributes:
        name: What is wrong.
        change: Makes the legal template wrong.
        refusal: What Batch says. Empty: it takes the template, and jobs then wait or nodes are billed.
        rule: The rule by which a synth refuses it. Empty: only the deployment does.
    """

    name: str
    change: Change
    refusal: str
    rule: str


def _environment(**properties: Any) -> Change:
    return lambda resources: resources["Environment"]["Properties"].update(properties)


def _compute(**properties: Any) -> Change:
    return lambda resources: resources["Environment"]["Properties"]["ComputeResources"].update(properties)


def _queue(**properties: Any) -> Change:
    return lambda resources: resources["Queue"]["Properties"].update(properties)


def _nodes(**properties: Any) -> Change:
    return lambda resources: resources["Job"]["Properties"]["NodeProperties"].update(properties)


def _container(**properties: Any) -> Change:
    def change(resources: dict[str, Any]) -> None:
        (part,) = resources["Job"]["Properties"]["NodeProperties"]["NodeRangeProperties"]
        part["Container"].update(properties)

    return change


def _ranges(*targets: str) -> Change:
    def change(resources: dict[str, Any]) -> None:
        nodes = resources["Job"]["Properties"]["NodeProperties"]
        (part,) = nodes["NodeRangeProperties"]
        nodes["NodeRangeProperties"] = [{**part, "TargetNodes": each} for each in targets]

    return change


def _user_data(resources: dict[str, Any]) -> None:
    data = resources["Launch"]["Properties"]["LaunchTemplateData"]
    data["UserData"] = {"Fn::Base64": "#!/bin/bash\necho"}


def _version(resources: dict[str, Any]) -> None:
    resources["Environment"]["Properties"]["ComputeResources"]["LaunchTemplate"]["Version"] = "$Latest"


def _limit(**properties: Any) -> Change:
    return lambda resources: resources["Queue"]["Properties"]["JobStateTimeLimitActions"][0].update(properties)


_ORDER = {"ComputeEnvironment": {"Ref": "Environment"}}
_ROLE = "arn:aws:iam::123456789012:role/batch"

WRONG: tuple[Wrong, ...] = (
    Wrong(
        "security groups beside network interfaces",
        _compute(SecurityGroupIds=["sg-0a1b2c3d4e5f67890"]),
        "Network interfaces and an instance-level security groups may not be specified on the same request",
        "",
    ),
    Wrong(
        "user data that is one shell script",
        _user_data,
        "Launch Template UserData is not MIME multipart format",
        "",
    ),
    Wrong(
        "a strategy for Spot Instances",
        _compute(AllocationStrategy="SPOT_CAPACITY_OPTIMIZED"),
        "is only supported for SPOT compute environments",
        "batchStrategy",
    ),
    Wrong(
        "more least vCPUs than there may be",
        _compute(MinvCpus=288),
        "minvCpus cannot be greater than maxvCpus",
        "batchMinvCpus",
    ),
    Wrong(
        "a delay that is too short",
        _compute(ScalingPolicy={"MinScaleDownDelayMinutes": 5}),
        "minScaleDownDelayMinutes must be between 20 and 10080",
        "",
    ),
    Wrong(
        "four environments of a queue",
        _queue(ComputeEnvironmentOrder=[{**_ORDER, "Order": order} for order in range(1, 5)]),
        "A job queue must have between 1 and 3 compute environments",
        "",
    ),
    Wrong(
        "a limit for a reason that Batch lacks", _limit(Reason="too slow"), "Invalid job reason", "batchStateLimits"
    ),
    Wrong("a node that no range covers", _ranges("0:0"), "Node ranges must cover all nodes", ""),
    Wrong("a main node that is none", _nodes(MainNode=2), "mainNode must be less than numNodes", ""),
    Wrong("Spot Instances for several nodes", _compute(Type="SPOT", SpotIamFleetRole=_ROLE), "", "batchSpot"),
    Wrong("nodes that run for no job", _compute(MinvCpus=96), "", "batchMinvCpus"),
    Wrong("the newest version of the template", _version, "", "batchTemplateVersion"),
    Wrong("an environment that is replaced", _environment(ReplaceComputeEnvironment=True), "", "batchReplace"),
    Wrong("a strategy that allows no update", _compute(AllocationStrategy="BEST_FIT"), "", "batchStrategy"),
    Wrong("a role that allows no update", _environment(ServiceRole=_ROLE), "", "batchServiceRole"),
    Wrong("more nodes than there may be", _nodes(NumNodes=3), "", "batchTooManyNodes"),
    Wrong("adapters without their devices", _container(LinuxParameters={"SharedMemorySize": 64}), "", "batchDevices"),
    Wrong("memory that is not locked", _container(Ulimits=[]), "", "batchMemlock"),
    Wrong("a job that waits for ever", _queue(JobStateTimeLimitActions=[]), "", "batchStateLimits"),
)
