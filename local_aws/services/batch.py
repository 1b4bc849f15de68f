"""AWS Batch: compute environments, queues, job definitions and jobs; moto's run containers in Docker.

https://docs.aws.amazon.com/batch/latest/APIReference/API_Operations.html
"""

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from moto.core.exceptions import ServiceException
from moto.ec2.models import ec2_backends

from local_aws.services.batch_jobs import Kept, Record, look, template_data
from local_aws.services.batch_rules import check_definition, check_environment, check_queue, check_update, refusal


def createcomputeenvironment(response: Any) -> str:
    """Answer CreateComputeEnvironment, of an environment that is valid at once and has no nodes."""
    params, kept = _params(response), _kept(response)
    check_environment(params, _launch(response, params["computeResources"]))
    arn = _arn(response, "compute-environment", params["computeEnvironmentName"])
    if arn in kept.environments:
        raise refusal("Object already exists")
    role = f"arn:{response.partition}:iam::{response.current_account}:role/aws-service-role/batch.amazonaws.com/"
    kept.environments[arn] = {
        "state": "ENABLED",
        "serviceRole": f"{role}AWSServiceRoleForBatch",
        "updatePolicy": {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 30},
        "tags": {},
        **params,
        "computeEnvironmentArn": arn,
        "status": "VALID",
        "containerOrchestrationType": "ECS",
    }
    return _answer(kept.environments[arn], "computeEnvironmentName", "computeEnvironmentArn")


def describecomputeenvironments(response: Any) -> str:
    """Answer DescribeComputeEnvironments."""
    kept = _kept(response)
    look(kept, _ec2(response))
    return json.dumps({"computeEnvironments": _named(response, kept.environments, "computeEnvironment")})


def updatecomputeenvironment(response: Any) -> str:
    """Answer UpdateComputeEnvironment: what is not said stays, and another launch replaces the nodes."""
    params, kept = _params(response), _kept(response)
    described = _one(kept.environments, params["computeEnvironment"], "computeEnvironment")
    changes = params.get("computeResources") or {}
    check_update(described, changes)
    resources = {**described["computeResources"], **changes}
    whole = {**described, **{name: value for name, value in params.items() if name != "computeEnvironment"}}
    check_environment({**whole, "computeResources": resources}, _launch(response, resources))
    described.update(whole, computeResources=resources)
    look(kept, _ec2(response))
    return _answer(described, "computeEnvironmentName", "computeEnvironmentArn")


def deletecomputeenvironment(response: Any) -> str:
    """Answer DeleteComputeEnvironment."""
    kept = _kept(response)
    described = _one(kept.environments, _params(response)["computeEnvironment"], "computeEnvironment")
    arn = described["computeEnvironmentArn"]
    if described["state"] != "DISABLED":
        raise refusal("Cannot delete, resource must be disabled first")
    if any(arn in str(queue["computeEnvironmentOrder"]) for queue in kept.queues.values()):
        raise refusal("Cannot delete, found existing JobQueue relationship")
    del kept.environments[arn]
    return "{}"


def createjobqueue(response: Any) -> str:
    """Answer CreateJobQueue."""
    params, kept = _params(response), _kept(response)
    check_queue({"computeEnvironmentOrder": [], **params})
    for each in params["computeEnvironmentOrder"]:
        each["computeEnvironment"] = _one(kept.environments, each["computeEnvironment"], "computeEnvironment")[
            "computeEnvironmentArn"
        ]
    arn = _arn(response, "job-queue", params["jobQueueName"])
    if arn in kept.queues:
        raise refusal("Object already exists")
    kept.queues[arn] = {"state": "ENABLED", "tags": {}, **params, "jobQueueArn": arn, "status": "VALID"}
    return _answer(kept.queues[arn], "jobQueueName", "jobQueueArn")


def describejobqueues(response: Any) -> str:
    """Answer DescribeJobQueues."""
    return json.dumps({"jobQueues": _named(response, _kept(response).queues, "jobQueue")})


def updatejobqueue(response: Any) -> str:
    """Answer UpdateJobQueue."""
    params, kept = _params(response), _kept(response)
    described = _one(kept.queues, params["jobQueue"], "jobQueue")
    check_queue(params)
    if params.get("schedulingPolicyArn") and not described.get("schedulingPolicyArn"):
        raise refusal("A scheduling policy cannot be added to a job queue that has none.")
    described.update({name: value for name, value in params.items() if name != "jobQueue"})
    return _answer(described, "jobQueueName", "jobQueueArn")


def deletejobqueue(response: Any) -> str:
    """Answer DeleteJobQueue."""
    kept = _kept(response)
    described = _one(kept.queues, _params(response)["jobQueue"], "jobQueue")
    if described["state"] != "DISABLED":
        raise refusal("Cannot delete, resource must be disabled first")
    del kept.queues[described["jobQueueArn"]]
    return "{}"


def registerjobdefinition(response: Any) -> str:
    """Answer RegisterJobDefinition."""
    params, kept = _params(response), _kept(response)
    check_definition(params)
    name = params["jobDefinitionName"]
    revision = 1 + sum(each["jobDefinitionName"] == name for each in kept.definitions.values())
    arn = f"{_arn(response, 'job-definition', name)}:{revision}"
    kept.definitions[arn] = {**params, "jobDefinitionArn": arn, "revision": revision, "status": "ACTIVE"}
    return _answer(kept.definitions[arn], "jobDefinitionName", "jobDefinitionArn", "revision")


def deregisterjobdefinition(response: Any) -> str:
    """Answer DeregisterJobDefinition."""
    _one(_kept(response).definitions, _params(response)["jobDefinition"], "jobDefinition")["status"] = "INACTIVE"
    return "{}"


def describejobdefinitions(response: Any) -> str:
    """Answer DescribeJobDefinitions."""
    params, found = _params(response), list(_kept(response).definitions.values())
    name, status = params.get("jobDefinitionName"), params.get("status")
    found = [each for each in found if name in {None, each["jobDefinitionName"]} and status in {None, each["status"]}]
    return json.dumps({"jobDefinitions": found})


def submitjob(response: Any) -> str:
    """Answer SubmitJob; the job starts at the next look, if it can."""
    params, kept = _params(response), _kept(response)
    queue = _one(kept.queues, params["jobQueue"], "jobQueue")
    definition = _one(kept.definitions, params["jobDefinition"], "jobDefinition")
    if queue.get("schedulingPolicyArn") and not params.get("shareIdentifier"):
        raise refusal("Fairshare job queue requires shareIdentifier.")
    nodes = definition.get("nodeProperties") or {"numNodes": 1, "nodeRangeProperties": [{"container": {}}]}
    container = nodes["nodeRangeProperties"][0].get("container") or definition.get("containerProperties") or {}
    wanted = {each["type"]: int(each["value"]) for each in container.get("resourceRequirements") or []}
    job_id = str(uuid.uuid4())
    kept.jobs[job_id] = {
        "jobId": job_id,
        "jobName": params["jobName"],
        "jobArn": _arn(response, "job", job_id),
        "jobQueue": queue["jobQueueArn"],
        "jobDefinition": definition["jobDefinitionArn"],
        "status": "RUNNABLE",
        "count": (params.get("nodeOverrides") or {}).get("numNodes", nodes["numNodes"]),
        "type": container.get("instanceType", ""),
        "vcpus": wanted.get("VCPU", 1),
    }
    return _answer(kept.jobs[job_id], "jobId", "jobName", "jobArn")


def describejobs(response: Any) -> str:
    """Answer DescribeJobs."""
    kept = _kept(response)
    look(kept, _ec2(response))
    own = {"count", "type", "vcpus", "nodes"}
    asked = (kept.jobs[each] for each in _params(response)["jobs"] if each in kept.jobs)
    return json.dumps({"jobs": [{key: value for key, value in job.items() if key not in own} for job in asked]})


def tags(response: Any) -> str:
    """Answer TagResource, UntagResource and ListTagsForResource."""
    kept, arn = _kept(response), unquote(response.path).split("/v1/tags/")[-1]
    things = {**kept.environments, **kept.queues, **kept.definitions}
    if arn not in things:
        raise refusal(f"Resource {arn} does not exist")
    held = things[arn].setdefault("tags", {})
    if response.method == "GET":
        return json.dumps({"tags": held})
    if response.method == "POST":
        held.update(_params(response)["tags"])
    for key in response.querystring.get("tagKeys", []) if response.method == "DELETE" else ():
        held.pop(key, None)
    return "{}"


ACTIONS: tuple[Callable[[Any], str], ...] = (
    createcomputeenvironment,
    describecomputeenvironments,
    updatecomputeenvironment,
    deletecomputeenvironment,
    createjobqueue,
    describejobqueues,
    updatejobqueue,
    deletejobqueue,
    registerjobdefinition,
    deregisterjobdefinition,
    describejobdefinitions,
    submitjob,
    describejobs,
    tags,
)
"""What takes the place of moto's."""


def _params(response: Any) -> Record:
    found: Record = json.loads(response.body) if response.body else {}
    return found


def _kept(response: Any) -> Kept:
    kept: Kept = vars(response.batch_backend).setdefault("kept", Kept())
    return kept


def _ec2(response: Any) -> Any:
    return ec2_backends[response.current_account][response.region]


def _launch(response: Any, resources: Mapping[str, Any]) -> Record:
    try:
        return template_data(_ec2(response), resources)
    except ServiceException as missing:
        raise refusal(f"CLIENT_ERROR - {missing.message}") from missing


def _named(response: Any, things: Mapping[str, Record], kind: str) -> list[Record]:
    asked = _params(response).get(f"{kind}s") or list(things)
    return [each for arn, each in things.items() if arn in asked or each[f"{kind}Name"] in asked]


def _one(things: Mapping[str, Record], name: str, kind: str) -> Record:
    """Return the newest thing of a name or an ARN."""
    found = [each for arn, each in things.items() if name in {arn, each[f"{kind}Name"]}]
    if not found:
        raise refusal(f"{kind} {name} does not exist.")
    return found[-1]


def _arn(response: Any, kind: str, name: str) -> str:
    return f"arn:{response.partition}:batch:{response.region}:{response.current_account}:{kind}/{name}"


def _answer(described: Mapping[str, Any], *names: str) -> str:
    return json.dumps({name: described[name] for name in names})
