"""What an escape hatch can make of a queue that AWS Batch accepts, and that then leaves jobs waiting or nodes billed.

What AWS Batch refuses has no rule here: the deployment fails, and says why.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.validation.templates.reading import LAUNCH, Resource, Template, is_known
from cdk_training_cluster.validation.templates.rules import resource_rule, template_rule
from cdk_training_cluster.validation.templates.texts import Finding, is_intrinsic

ENVIRONMENT, QUEUE, JOB = "AWS::Batch::ComputeEnvironment", "AWS::Batch::JobQueue", "AWS::Batch::JobDefinition"

_GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide"
_API = "https://docs.aws.amazon.com/batch/latest/APIReference"
_COMPUTE = "Properties.ComputeResources"
_UPDATES = f"{_GUIDE}/infrastructure-updates.html"
_STUCK = f"{_GUIDE}/job_stuck_in_runnable.html"
_MULTI_NODE = f"{_GUIDE}/mnp-ce.html"
_RANGES = "Properties.NodeProperties.NodeRangeProperties"

REASONS: Final = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
)
"""All for which a queue can end a job that waits: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"""


def _launching(template: Template) -> Iterator[tuple[Resource, Resource]]:
    """Yield each compute environment with its launch template."""
    return template.launching(ENVIRONMENT, f"{_COMPUTE}.LaunchTemplate")


def _node_count(job: Resource) -> int:
    """Return how many nodes a multi-node job has; 0 of another one, or if only the deployment knows."""
    count = job.get("Properties.NodeProperties.NumNodes")
    return count if isinstance(count, int) else 0


def _multi_node(template: Template) -> list[Resource]:
    return [job for job in template.of_type(JOB) if _node_count(job)]


def _containers(job: Resource) -> Iterator[Mapping[str, Any]]:
    for each in job.mappings(_RANGES):
        container = each.get("Container")
        if isinstance(container, Mapping) and not is_intrinsic(container):
            yield container


def _is_of_type(environment: Resource, wanted: str) -> bool:
    return str(environment.get(f"{_COMPUTE}.Type")).upper() == wanted


@template_rule(
    id="batchSpot",
    source=_MULTI_NODE,
    description="Type of a compute environment must be EC2 where the template has multi-node jobs: on Spot Instances "
    "they never start",
    fix="Leave the type alone, or give single-node jobs an environment in a stack of its own",
)
def _spot(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT) if _multi_node(template) else ():
        if _is_of_type(environment, "SPOT"):
            yield environment.at(f"{_COMPUTE}.Type")


@resource_rule(
    ENVIRONMENT,
    path=f"{_COMPUTE}.MinvCpus",
    id="batchMinvCpus",
    source=f"{_API}/API_ComputeResource.html",
    description="MinvCpus of a compute environment must be 0: so many vCPUs are launched and billed with no job",
    fix="Leave MinvCpus alone; ScalingPolicy.MinScaleDownDelayMinutes keeps nodes for the next job",
)
def _minimum(environment: Resource) -> bool:
    given = environment.get(f"{_COMPUTE}.MinvCpus")
    return isinstance(given, int) and given != 0


@resource_rule(
    ENVIRONMENT,
    path=f"{_COMPUTE}.LaunchTemplate.Version",
    id="batchTemplateVersion",
    source=_UPDATES,
    description="LaunchTemplate.Version of a compute environment must be the number of a version: with $Latest or "
    "$Default a deployment that changes the template changes no environment",
    fix="Use the template's LatestVersionNumber",
)
def _version(environment: Resource) -> bool:
    is_named = environment.get(f"{_COMPUTE}.LaunchTemplate") is not None
    return is_named and environment.get(f"{_COMPUTE}.LaunchTemplate.Version") in (None, "$Latest", "$Default")


@resource_rule(
    ENVIRONMENT,
    path="Properties.ReplaceComputeEnvironment",
    id="batchReplace",
    source="https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-batch-computeenvironment.html",
    description="ReplaceComputeEnvironment must be false: otherwise a change of how nodes are launched makes a new "
    "environment and deletes the old one with the jobs that run in it",
    fix="Leave ReplaceComputeEnvironment as the library makes it",
)
def _replace(environment: Resource) -> bool:
    return str(environment.get("Properties.ReplaceComputeEnvironment")).lower() in {"none", "true"}


@resource_rule(
    ENVIRONMENT,
    path=f"{_COMPUTE}.AllocationStrategy",
    id="batchStrategy",
    source=_UPDATES,
    description="AllocationStrategy of an On-Demand compute environment must be BEST_FIT_PROGRESSIVE or "
    "BEST_FIT_PROGRESSIVE_ORDERED: with BEST_FIT, the default, Batch refuses to change how nodes are launched, and "
    "the others are for Spot Instances",
    fix="Leave AllocationStrategy as the library makes it",
)
def _strategy(environment: Resource) -> bool:
    found = environment.get(f"{_COMPUTE}.AllocationStrategy")
    given = "BEST_FIT" if found is None else found
    is_wrong = isinstance(given, str) and not given.upper().startswith("BEST_FIT_PROGRESSIVE")
    return _is_of_type(environment, "EC2") and is_wrong


@resource_rule(
    ENVIRONMENT,
    path="Properties.ServiceRole",
    id="batchServiceRole",
    source=_UPDATES,
    description="ServiceRole of a compute environment must be left out, so that it has the service-linked role of "
    "Batch: with another Batch refuses to change how nodes are launched",
    fix="Leave ServiceRole out",
)
def _service_role(environment: Resource) -> bool:
    return environment.get("Properties.ServiceRole") is not None


@resource_rule(
    QUEUE,
    path="Properties.JobStateTimeLimitActions",
    id="batchStateLimits",
    source=_STUCK,
    description="JobStateTimeLimitActions of a job queue must end jobs for each reason that Batch has an action for, "
    f"which are {', '.join(REASONS)}: a job that can never start blocks all behind it",
    fix="Leave JobStateTimeLimitActions as the library makes it; unplaceable_timeout and capacity_timeout say "
    "how long",
)
def _limits(queue: Resource) -> bool:
    path = "Properties.JobStateTimeLimitActions"
    return is_known(queue.get(path)) and {str(each.get("Reason")) for each in queue.mappings(path)} != set(REASONS)


@template_rule(
    id="batchTooManyNodes",
    source=_STUCK,
    description="NumNodes of a multi-node job must be at most the nodes of its type that MaxvCpus of some compute "
    "environment has room for: it could never start",
    fix="Raise the node group's count, or take fewer nodes",
)
def _too_many(template: Template) -> Iterator[Finding]:
    for job in _multi_node(template):
        rooms = [
            maximum // instance_type_info(name).vcpus
            for container in _containers(job)
            for environment in template.of_type(ENVIRONMENT)
            for name in environment.items(f"{_COMPUTE}.InstanceTypes")
            if isinstance(name, str)
            and name == container.get("InstanceType")
            and isinstance(maximum := environment.get(f"{_COMPUTE}.MaxvCpus"), int)
        ]
        if rooms and _node_count(job) > max(rooms):
            yield job.at("Properties.NodeProperties.NumNodes")


@template_rule(
    id="batchDevices",
    source=f"{_GUIDE}/efa.html",
    description="LinuxParameters.Devices of a multi-node job must have /dev/infiniband/uverbs0 where nodes have "
    "Elastic Fabric Adapters: without it, NCCL uses TCP and says nothing",
    fix="Leave Devices as the library makes them",
)
def _devices(template: Template) -> Iterator[Finding]:
    if not any("'efa" in str(launch.get(f"{LAUNCH}.NetworkInterfaces")) for _, launch in _launching(template)):
        return
    for job in _multi_node(template):
        devices = [each.get("LinuxParameters") for each in _containers(job)]
        if any(is_known(each) and "/dev/infiniband/uverbs0" not in str(each) for each in devices):
            yield job.at(_RANGES)


@resource_rule(
    JOB,
    path=_RANGES,
    id="batchMemlock",
    source=f"{_GUIDE}/efa.html",
    description="Ulimits of a multi-node job must have memlock without limit: Elastic Fabric Adapters cannot "
    "register memory",
    fix="Leave Ulimits as the library makes them",
)
def _memlock(job: Resource) -> bool:
    return _node_count(job) > 0 and any(not _locks_all_memory(container) for container in _containers(job))


def _locks_all_memory(container: Mapping[str, Any]) -> bool:
    limits = container.get("Ulimits")
    wanted = {"Name": "memlock", "SoftLimit": -1}
    return not is_known(limits) or any(wanted.items() <= each.items() for each in limits or ())
