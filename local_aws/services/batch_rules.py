"""What AWS Batch refuses, in the form in which it says so; its code is always `ClientException`.

https://docs.aws.amazon.com/batch/latest/APIReference/API_CreateComputeEnvironment.html and
https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html
"""

import base64
import uuid
from collections.abc import Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.refusal import Refusal

REASONS = frozenset(
    {
        "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
        "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    }
)
"""For which a queue can end a job that waits: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"""

_MAX_ENVIRONMENTS = 3
_LIMIT = range(600, 86_401)
_DELAY = range(20, 10_081)
_UPDATE = range(1, 7201)
_SPOT_STRATEGIES = {"SPOT_CAPACITY_OPTIMIZED", "SPOT_PRICE_CAPACITY_OPTIMIZED", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED"}


def refusal(words: str) -> Refusal:
    """Return Batch's refusal."""
    return Refusal("ClientException", f"Error executing request, Exception : {words}, RequestId: {uuid.uuid4()}")


def check_environment(params: Mapping[str, Any], launch: Mapping[str, Any]) -> None:
    """Refuse a compute environment.

    Args:
        params: The request.
        launch: The data of its launch template; empty: it has none.

    Raises:
        Refusal: Batch refuses it.
    """
    resources = params.get("computeResources") or {}
    kind, strategy = resources.get("type"), resources.get("allocationStrategy", "BEST_FIT")
    if not resources.get("instanceRole"):
        raise refusal("instanceRole is required.")
    if not resources.get("subnets"):
        raise refusal("At least one subnet must be provided.")
    if resources.get("minvCpus", 0) > resources["maxvCpus"]:
        raise refusal("minvCpus cannot be greater than maxvCpus.")
    if kind == "SPOT" and strategy == "BEST_FIT" and not resources.get("spotIamFleetRole"):
        raise refusal("spotIamFleetRole is required for SPOT compute environments with BEST_FIT.")
    if kind == "EC2" and strategy in _SPOT_STRATEGIES:
        raise refusal(f"Allocation strategy {strategy} is only supported for SPOT compute environments.")
    for name in resources.get("instanceTypes") or []:
        if name not in INSTANCE_TYPES and name not in {each.partition(".")[0] for each in INSTANCE_TYPES}:
            raise refusal(f"Instance type {name} is not supported.")
    delay = (resources.get("scalingPolicy") or {}).get("minScaleDownDelayMinutes", 0)
    if delay and delay not in _DELAY:
        raise refusal("minScaleDownDelayMinutes must be between 20 and 10080.")
    timeout = (params.get("updatePolicy") or {}).get("jobExecutionTimeoutMinutes", 30)
    if timeout not in _UPDATE:
        raise refusal("jobExecutionTimeoutMinutes must be between 1 and 7200.")
    _check_launch(resources, launch)


def _check_launch(resources: Mapping[str, Any], launch: Mapping[str, Any]) -> None:
    interfaces = launch.get("NetworkInterfaces") or []
    own = resources.get("securityGroupIds")
    if not own and not launch.get("SecurityGroupIds") and not any(each.get("Groups") for each in interfaces):
        raise refusal("At least one security group must be specified.")
    if own and interfaces:
        # What EC2 says of a launch, and the environment is invalid then.
        raise refusal(
            "CLIENT_ERROR - Network interfaces and an instance-level security groups may not be specified on the "
            "same request"
        )
    if launch.get("UserData") and "multipart" not in _decoded(launch["UserData"]):
        raise refusal("CLIENT_ERROR - Launch Template UserData is not MIME multipart format")


def _decoded(user_data: Any) -> str:
    return base64.b64decode(str(user_data)).decode(errors="replace")


def check_update(described: Mapping[str, Any], resources: Mapping[str, Any]) -> None:
    """Refuse an infrastructure update of an environment that cannot have one.

    Raises:
        Refusal: Batch refuses it: https://docs.aws.amazon.com/batch/latest/userguide/infrastructure-updates.html
    """
    if not set(resources) - {"maxvCpus", "minvCpus", "desiredvCpus"}:
        return
    if described["computeResources"].get("allocationStrategy", "BEST_FIT") == "BEST_FIT":
        raise refusal("Compute environments with allocation strategy BEST_FIT cannot have infrastructure updates.")
    if "aws-service-role/batch" not in described["serviceRole"]:
        raise refusal("Infrastructure updates need the AWSServiceRoleForBatch service-linked role.")


def check_queue(params: Mapping[str, Any]) -> None:
    """Refuse a job queue.

    Raises:
        Refusal: Batch refuses it.
    """
    environments = params.get("computeEnvironmentOrder")
    if environments is not None and not 0 < len(environments) <= _MAX_ENVIRONMENTS:
        raise refusal("A job queue must have between 1 and 3 compute environments.")
    for each in params.get("jobStateTimeLimitActions") or []:
        if each["reason"] not in REASONS:
            raise refusal("Invalid job reason.")
        if each["action"] != "CANCEL" or each["state"] != "RUNNABLE":
            raise refusal("Only the action CANCEL in the state RUNNABLE is supported.")
        if each["maxTimeSeconds"] not in _LIMIT:
            raise refusal("maxTimeSeconds must be between 600 and 86400.")


def check_definition(params: Mapping[str, Any]) -> None:
    """Refuse a job definition.

    Raises:
        Refusal: Batch refuses it.
    """
    if params["type"] != "multinode":
        return
    if "FARGATE" in (params.get("platformCapabilities") or []):
        raise refusal("Multi-node parallel jobs are not supported on Fargate.")
    nodes = params.get("nodeProperties")
    if not nodes:
        raise refusal("nodeProperties is required for multinode job definitions.")
    count = nodes["numNodes"]
    if nodes["mainNode"] >= count:
        raise refusal("mainNode must be less than numNodes.")
    covered: set[int] = set()
    for each in nodes["nodeRangeProperties"]:
        first, _, last = each["targetNodes"].partition(":")
        covered |= set(range(int(first or 0), int(last or count - 1) + 1))
        wanted = {one["type"] for one in (each.get("container") or {}).get("resourceRequirements") or []}
        if not {"VCPU", "MEMORY"} <= wanted:
            raise refusal("Container properties must have VCPU and MEMORY.")
    if covered != set(range(count)):
        raise refusal(f"Node ranges must cover all nodes from 0 to {count - 1}.")
