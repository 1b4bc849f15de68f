"""The jobs of AWS Batch: they bring nodes up, end, and leave none behind; one that cannot start ends by its queue.

No time passes here: a job that runs has ended at the next look, and so has one that waits and whose queue has a limit
for the reason.
https://docs.aws.amazon.com/batch/latest/userguide/job_states.html
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.services import launches
from local_aws.services.images import BATCH_IMAGE

Record = dict[str, Any]

ENVIRONMENT_TAG = "aws:batch:compute-environment"
CAPACITY = "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
TOO_LARGE = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"
NO_SUCH_TYPE = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
_WORDS = {
    CAPACITY: "Service cannot fulfill the capacity requested for instance type [{type}]",
    TOO_LARGE: "CE(s) associated with the job queue cannot meet the CPU requirement of the job.",
    NO_SUCH_TYPE: "The job resource requirement (vCPU/memory/GPU) is higher than that can be met by the CE(s) "
    "attached to the job queue.",
}


@dataclass
class Kept:
    """What Batch keeps, as it describes each; by ARN."""

    environments: dict[str, Record] = field(default_factory=dict)
    queues: dict[str, Record] = field(default_factory=dict)
    definitions: dict[str, Record] = field(default_factory=dict)
    jobs: dict[str, Record] = field(default_factory=dict)


def look(kept: Kept, ec2: Any) -> None:
    """Let jobs go on: those that run end, those that wait start, and nodes that none needs are terminated.

    Args:
        kept: What Batch keeps.
        ec2: moto's EC2 backend of the region.
    """
    for job in kept.jobs.values():
        if job["status"] == "RUNNING":
            job["status"] = "SUCCEEDED"
            ec2.terminate_instances(job.pop("nodes"))
    queues = sorted(kept.queues.values(), key=lambda each: -each["priority"])
    for queue in queues:
        for job in (each for each in kept.jobs.values() if each["jobQueue"] == queue["jobQueueArn"]):
            if job["status"] == "RUNNABLE" and not _goes_on(kept, ec2, queue, job):
                break  # first in, first out: it blocks those behind it


def _goes_on(kept: Kept, ec2: Any, queue: Mapping[str, Any], job: Record) -> bool:
    """Start a job, or end it where it has waited for long enough; tell whether it is out of the way."""
    known = job.get("statusReason", "").partition(" - ")[0]
    if known in {each["reason"] for each in queue.get("jobStateTimeLimitActions") or []}:
        job["status"] = "FAILED"
        job["statusReason"] = f"Canceled by JobStateTimeLimit action due to reason: {known}"
        return True
    reason = ""
    for environment in _environments(kept, queue):
        reason = _start(ec2, environment, job)
        if not reason:
            return True
    if reason:
        job["statusReason"] = f"{reason} - {_WORDS[reason].format(type=job['type'])}"
    return False


def _environments(kept: Kept, queue: Mapping[str, Any]) -> Iterator[Record]:
    for each in sorted(queue["computeEnvironmentOrder"], key=lambda one: one["order"]):
        environment = kept.environments[each["computeEnvironment"]]
        if environment["state"] == "ENABLED":
            yield environment


def _start(ec2: Any, environment: Record, job: Record) -> str:
    """Launch a job's nodes; the reason where that is not possible."""
    resources = environment["computeResources"]
    vcpus = {name: INSTANCE_TYPES[name]["VCpuInfo"]["DefaultVCpus"] for name in resources["instanceTypes"]}
    fitting = [name for name, count in vcpus.items() if name == job["type"] and count >= job["vcpus"]]
    # Multi-node jobs do not run on Spot Instances: https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html
    if not fitting or resources["type"] != "EC2":
        return NO_SUCH_TYPE
    if job["count"] * vcpus[fitting[0]] > resources["maxvCpus"]:
        return TOO_LARGE
    request = launches.LaunchRequest(
        data=launch_data(ec2, resources, fitting[0]),
        subnet_id=resources["subnets"][0],
        count=job["count"],
        tags={ENVIRONMENT_TAG: environment["computeEnvironmentName"], **(resources.get("tags") or {})},
    )
    try:
        launched, failure = launches.launch(ec2, request)
    except ServiceException:
        return CAPACITY
    if failure is not None:
        ec2.terminate_instances([each.id for each in launched])
        return CAPACITY
    job.update(status="RUNNING", statusReason="", nodes=[each.id for each in launched])
    return ""


def launch_data(ec2: Any, resources: Mapping[str, Any], instance_type: str) -> Record:
    """Return the data of the launch template that Batch makes of an environment and the user's template.

    Args:
        ec2: moto's EC2 backend of the region.
        resources: The environment's compute resources.
        instance_type: The type to launch.
    """
    data = template_data(ec2, resources)
    # https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html: what is ignored
    kept = {key: value for key, value in data.items() if key not in {"IamInstanceProfile", "InstanceType"}}
    image = data.get("ImageId") or resources.get("imageId")
    own: Record = {"InstanceType": instance_type, "IamInstanceProfile": {"Arn": resources["instanceRole"]}}
    if not image:
        own["ImageId"] = BATCH_IMAGE.id
    if resources.get("placementGroup"):
        own["Placement"] = {"GroupName": resources["placementGroup"]}
    return {**kept, **own}


def template_data(ec2: Any, resources: Mapping[str, Any]) -> Record:
    """Return the data of the launch template that an environment names; nothing where it names none.

    Raises:
        ServiceException: There is none.
    """
    named = resources.get("launchTemplate") or {}
    if not named:
        return {}
    words = {"launchTemplateId": "LaunchTemplateId", "launchTemplateName": "LaunchTemplateName", "version": "Version"}
    asked = {"Version": "$Default", **{words[key]: value for key, value in named.items() if key in words}}
    _, version = launches.launch_template_data(ec2, asked)
    return dict(version.data)
