"""What AWS Batch refuses of a template, or takes and then leaves jobs waiting or nodes billed.

The constructs make no such template: an escape hatch does, or a resource of a user's own.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.template_reading import LAUNCH, Resource, Template
from cdk_training_cluster.template_rules import template_rule
from cdk_training_cluster.validation.template_texts import Finding

ENVIRONMENT, QUEUE, JOB = "AWS::Batch::ComputeEnvironment", "AWS::Batch::JobQueue", "AWS::Batch::JobDefinition"

_GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide"
_API = "https://docs.aws.amazon.com/batch/latest/APIReference"
_COMPUTE = "Properties.ComputeResources"
_UPDATES = f"{_GUIDE}/infrastructure-updates.html"
_STUCK = f"{_GUIDE}/job_stuck_in_runnable.html"
_MULTI_NODE = f"{_GUIDE}/mnp-ce.html"
_RANGES = "Properties.NodeProperties.NodeRangeProperties"
_RANGE = re.compile(r"(\d*):(\d*)|(\d+)")

REASONS: Final = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
)
"""All for which a queue can end a job that waits: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"""

_MAX_ENVIRONMENTS = 3
_DELAY = range(20, 10_081)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mappings(value: object) -> Iterator[Mapping[str, object]]:
    for each in _list(value):
        if isinstance(each, Mapping):
            yield each


def _templates(template: Template, environment: Resource) -> Iterator[Resource]:
    yield from template.referred(environment.get(f"{_COMPUTE}.LaunchTemplate"), "AWS::EC2::LaunchTemplate")


def _multi_node(template: Template) -> Iterator[tuple[Resource, int]]:
    """Yield each multi-node job definition with how many nodes it has."""
    for job in template.of_type(JOB):
        nodes = job.get("Properties.NodeProperties.NumNodes")
        if isinstance(nodes, int):
            yield job, nodes


def _containers(job: Resource) -> Iterator[Mapping[str, object]]:
    for each in _mappings(job.get(_RANGES)):
        container = each.get("Container")
        if isinstance(container, Mapping):
            yield container


@template_rule(
    id="batchSpot",
    source=_MULTI_NODE,
    description="Type of a compute environment must be EC2 where the template has multi-node jobs: on Spot "
    "Instances they "
    "never start",
    fix="Leave the type alone, or give single-node jobs an environment in a stack of its own",
)
def _spot(template: Template) -> Iterator[Finding]:
    if any(True for _ in _multi_node(template)):
        for environment in template.of_type(ENVIRONMENT):
            if str(environment.get(f"{_COMPUTE}.Type")).upper() == "SPOT":
                yield environment.at(f"{_COMPUTE}.Type")


@template_rule(
    id="batchMinvCpus",
    source=f"{_API}/API_ComputeResource.html",
    description="MinvCpus of a compute environment must be 0: so many vCPUs are launched and billed with no job",
    fix="Leave MinvCpus alone; ScalingPolicy.MinScaleDownDelayMinutes keeps nodes for the next job",
)
def _minimum(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        if environment.get(f"{_COMPUTE}.MinvCpus") not in (None, 0) and isinstance(
            environment.get(f"{_COMPUTE}.MinvCpus"), int
        ):
            yield environment.at(f"{_COMPUTE}.MinvCpus")


@template_rule(
    id="batchTemplateVersion",
    source=_UPDATES,
    description="LaunchTemplate.Version of a compute environment must be the number of a version: with "
    "$Latest or $Default a "
    "deployment that changes the template changes no environment",
    fix="Use the template's LatestVersionNumber",
)
def _version(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        path = f"{_COMPUTE}.LaunchTemplate.Version"
        named = environment.get(f"{_COMPUTE}.LaunchTemplate")
        if named is not None and environment.get(path) in (None, "$Latest", "$Default"):
            yield environment.at(path)


@template_rule(
    id="batchReplace",
    source="https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-batch-computeenvironment.html",
    description="ReplaceComputeEnvironment must be false: otherwise a change of how nodes are launched makes "
    "a new environment "
    "and deletes the old one with the jobs that run in it",
    fix="Leave ReplaceComputeEnvironment as the library makes it",
)
def _replace(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        if str(environment.get("Properties.ReplaceComputeEnvironment")).lower() in {"none", "true"}:
            yield environment.at("Properties.ReplaceComputeEnvironment")


@template_rule(
    id="batchStrategy",
    source=_UPDATES,
    description="AllocationStrategy of an On-Demand compute environment must be BEST_FIT_PROGRESSIVE or "
    "BEST_FIT_PROGRESSIVE_ORDERED: with BEST_FIT, the default, Batch refuses to change how nodes are "
    "launched, and the others "
    "are for Spot Instances",
    fix="Leave AllocationStrategy as the library makes it",
)
def _strategy(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        found = environment.get(f"{_COMPUTE}.AllocationStrategy")
        given = "BEST_FIT" if found is None else found
        is_ec2 = str(environment.get(f"{_COMPUTE}.Type")).upper() == "EC2"
        if is_ec2 and isinstance(given, str) and not given.upper().startswith("BEST_FIT_PROGRESSIVE"):
            yield environment.at(f"{_COMPUTE}.AllocationStrategy")


@template_rule(
    id="batchServiceRole",
    source=_UPDATES,
    description="ServiceRole of a compute environment must be left out, so that it has Batch's service-linked "
    "role: with another "
    "Batch refuses to change how nodes are launched",
    fix="Leave ServiceRole out",
)
def _service_role(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        if environment.get("Properties.ServiceRole") is not None:
            yield environment.at("Properties.ServiceRole")


@template_rule(
    id="batchSecurityGroups",
    source=f"{_GUIDE}/launch-templates.html",
    description="SecurityGroupIds of a compute environment must be left out beside network interfaces in its "
    "launch template: "
    "EC2 refuses every launch, and the environment becomes INVALID",
    fix="Name security groups on the interfaces",
)
def _security_groups(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        wide = any(each.get(f"{LAUNCH}.NetworkInterfaces") for each in _templates(template, environment))
        if wide and environment.get(f"{_COMPUTE}.SecurityGroupIds"):
            yield environment.at(f"{_COMPUTE}.SecurityGroupIds")


@template_rule(
    id="batchUserData",
    source=f"{_GUIDE}/launch-templates.html",
    description="UserData of a compute environment's launch template must be a MIME multi-part archive, to "
    "which Batch adds its "
    "own part: the environment becomes INVALID",
    fix="Use ec2.MultipartUserData",
)
def _user_data(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        for each in _templates(template, environment):
            path = f"{LAUNCH}.UserData"
            launch = each.definition.get("Properties")
            data = launch.get("LaunchTemplateData") if isinstance(launch, Mapping) else None
            said = data.get("UserData") if isinstance(data, Mapping) else None
            if said is not None and "multipart/" not in str(said):
                yield each.at(path)


@template_rule(
    id="batchScaleDownDelay",
    source=f"{_API}/API_ComputeScalingPolicy.html",
    description="ScalingPolicy.MinScaleDownDelayMinutes must be from 20 to 10080",
    fix="Give scale_down_delay, or leave it out",
)
def _delay(template: Template) -> Iterator[Finding]:
    for environment in template.of_type(ENVIRONMENT):
        path = f"{_COMPUTE}.ScalingPolicy.MinScaleDownDelayMinutes"
        given = environment.get(path)
        if isinstance(given, int) and given and given not in _DELAY:
            yield environment.at(path)


@template_rule(
    id="batchQueueOrder",
    source=f"{_API}/API_CreateJobQueue.html",
    description="ComputeEnvironmentOrder of a job queue must have one to three environments",
    fix="Make another queue",
)
def _order(template: Template) -> Iterator[Finding]:
    for queue in template.of_type(QUEUE):
        order = queue.get("Properties.ComputeEnvironmentOrder")
        if isinstance(order, list) and not 0 < len(order) <= _MAX_ENVIRONMENTS:
            yield queue.at("Properties.ComputeEnvironmentOrder")


@template_rule(
    id="batchStateLimits",
    source=_STUCK,
    description="JobStateTimeLimitActions of a job queue must end jobs for each reason that Batch has an "
    "action for, which are "
    f"{', '.join(REASONS)}: a job that can never start blocks all behind it",
    fix="Leave JobStateTimeLimitActions as the library makes it; unplaceable_timeout and capacity_timeout say "
    "how long",
)
def _limits(template: Template) -> Iterator[Finding]:
    for queue in template.of_type(QUEUE):
        path = "Properties.JobStateTimeLimitActions"
        found = queue.get(path)
        if found is None or isinstance(found, list):
            given = {str(each.get("Reason")) for each in _mappings(found)}
            if given != set(REASONS):
                yield queue.at(path)


@template_rule(
    id="batchNodeRanges",
    source=f"{_API}/API_NodeRangeProperty.html",
    description="TargetNodes of a multi-node job's ranges must cover all nodes from 0 to NumNodes - 1",
    fix="Use one range, 0:",
)
def _ranges(template: Template) -> Iterator[Finding]:
    for job, count in _multi_node(template):
        covered: set[int] = set()
        for each in _mappings(job.get(_RANGES)):
            match = _RANGE.fullmatch(str(each.get("TargetNodes")))
            if match:
                first, last, one = match.groups()
                covered |= {int(one)} if one else set(range(int(first or 0), int(last or count - 1) + 1))
        if covered and not set(range(count)) <= covered:
            yield job.at(_RANGES)


@template_rule(
    id="batchMainNode",
    source=f"{_API}/API_NodeProperties.html",
    description="MainNode of a multi-node job must be below NumNodes",
    fix="Use 0, the node that torchrun's rendezvous is on",
)
def _main_node(template: Template) -> Iterator[Finding]:
    for job, count in _multi_node(template):
        main = job.get("Properties.NodeProperties.MainNode")
        if isinstance(main, int) and main >= count:
            yield job.at("Properties.NodeProperties.MainNode")


@template_rule(
    id="batchTooManyNodes",
    source=_STUCK,
    description="NumNodes of a multi-node job must be at most the nodes of its type that some compute "
    "environment's MaxvCpus "
    "has room for: it could never start",
    fix="Raise the node group's count, or take fewer nodes",
)
def _too_many(template: Template) -> Iterator[Finding]:
    for job, count in _multi_node(template):
        rooms = [
            maximum // instance_type_info(name).vcpus
            for container in _containers(job)
            for environment in template.of_type(ENVIRONMENT)
            for name in _list(environment.get(f"{_COMPUTE}.InstanceTypes"))
            if isinstance(name, str)
            and name == container.get("InstanceType")
            and isinstance(maximum := environment.get(f"{_COMPUTE}.MaxvCpus"), int)
        ]
        if rooms and count > max(rooms):
            yield job.at("Properties.NodeProperties.NumNodes")


@template_rule(
    id="batchDevices",
    source=f"{_GUIDE}/efa.html",
    description="LinuxParameters.Devices of a multi-node job must have /dev/infiniband/uverbs0 where nodes "
    "have Elastic Fabric "
    "Adapters: without it, NCCL uses TCP and says nothing",
    fix="Leave Devices as the library makes them",
)
def _devices(template: Template) -> Iterator[Finding]:
    launches = [each for one in template.of_type(ENVIRONMENT) for each in _templates(template, one)]
    if not any("'efa" in str(each.get(f"{LAUNCH}.NetworkInterfaces")) for each in launches):
        return
    for job, _ in _multi_node(template):
        if any("/dev/infiniband/uverbs0" not in str(each.get("LinuxParameters")) for each in _containers(job)):
            yield job.at(_RANGES)


@template_rule(
    id="batchMemlock",
    source=f"{_GUIDE}/efa.html",
    description="Ulimits of a multi-node job must have memlock without limit: Elastic Fabric Adapters cannot "
    "register memory",
    fix="Leave Ulimits as the library makes them",
)
def _memlock(template: Template) -> Iterator[Finding]:
    for job, _ in _multi_node(template):
        for container in _containers(job):
            limits = [each for each in _mappings(container.get("Ulimits")) if each.get("Name") == "memlock"]
            if not any(each.get("SoftLimit") == -1 for each in limits):
                yield job.at(_RANGES)
