"""Jobs on AWS Batch in a rehearsal: from no node and back, and none while the cluster is stopped."""

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console

from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.report import table_of

_ENVIRONMENT_TAG = "aws:batch:compute-environment"


class BatchRun:
    """Runs each job definition of a deployed cluster.

    Attributes:
        told: What each job did, by the name of its definition.
    """

    def __init__(self, aws: LocalAws, order: Callable[[str], Any]) -> None:
        """Take what is deployed.

        Args:
            aws: The local AWS.
            order: Gives the power function a command, such as `stop`.
        """
        self._aws, self._order = aws, order
        self._batch: Any = aws.client("batch")
        self.told: dict[str, dict[str, Any]] = {}

    @staticmethod
    def by(aws: LocalAws, power: DeployedFunction) -> "BatchRun":
        """Return a run which sends its commands to the deployed power function.

        Args:
            aws: The local AWS.
            power: The function.
        """
        return BatchRun(aws, lambda action: power({"action": action}, alias="operate"))

    def run(self) -> None:
        """Run each job in the first queue, and then one that is submitted while the cluster is stopped."""
        queues = self._batch.describe_job_queues()["jobQueues"]
        jobs = self._batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
        if not queues:
            return
        queue = max(queues, key=lambda each: each["priority"])["jobQueueArn"]
        for each in jobs:
            job = self._submit(queue, each)
            running, nodes = self._status(job), self._nodes()
            self.told[each["jobDefinitionName"]] = {
                "nodes": each["nodeProperties"]["numNodes"],
                "launched": nodes,
                "statuses": [running, self._status(job)],
                "left": self._nodes(),
            }
        if jobs:
            self._order("stop")
            job = self._submit(queue, jobs[0])
            waits = self._status(job)
            self._order("start")
            self.told["while the cluster was stopped"] = {
                "nodes": jobs[0]["nodeProperties"]["numNodes"],
                "launched": 0,
                # The start has looked at it already.
                "statuses": [waits, [self._status(job), self._status(job)][-1]],
                "left": self._nodes(),
            }

    def differences(self) -> Iterator[str]:
        """Say which jobs did otherwise than they should."""
        for name, told in self.told.items():
            stopped = told["statuses"][0] == "RUNNABLE"
            wanted = ["RUNNABLE" if stopped else "RUNNING", "SUCCEEDED"]
            if told["statuses"] != wanted or stopped != name.startswith("while "):
                yield f"job {name} was {', '.join(told['statuses'])}"
            if not stopped and told["launched"] != told["nodes"]:
                yield f"job {name} had {told['launched']} nodes, its definition says {told['nodes']}"
            if told["left"]:
                yield f"job {name} left {told['left']} nodes behind"

    def show(self, console: Console) -> None:
        """Show queues with what each can run, and what became of the jobs.

        Args:
            console: Where to.
        """
        environments = {
            each["computeEnvironmentArn"]: each
            for each in self._batch.describe_compute_environments()["computeEnvironments"]
        }
        table = table_of("Job queues", "name", "priority", "can run")
        for queue in self._batch.describe_job_queues()["jobQueues"]:
            rooms = [environments[each["computeEnvironment"]] for each in queue["computeEnvironmentOrder"]]
            can = ", ".join(_room(each["computeResources"]) for each in rooms)
            # Without the stack before it and what CloudFormation adds.
            name = queue["jobQueueName"].rpartition("-")[0].rpartition("-")[2]
            table.add_row(name, str(queue["priority"]), can)
        console.print(table)
        ran = table_of("Jobs", "definition", "nodes", "was", "nodes left")
        for name, told in self.told.items():
            ran.add_row(name, str(told["nodes"]), ", ".join(told["statuses"]), str(told["left"]))
        console.print(ran)

    def _submit(self, queue: str, definition: dict[str, Any]) -> str:
        return str(
            self._batch.submit_job(jobName="rehearsal", jobQueue=queue, jobDefinition=definition["jobDefinitionArn"])[
                "jobId"
            ]
        )

    def _status(self, job: str) -> str:
        (found,) = self._batch.describe_jobs(jobs=[job])["jobs"]
        return str(found["status"])

    def _nodes(self) -> int:
        filters = [
            {"Name": "tag-key", "Values": [_ENVIRONMENT_TAG]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        found = self._aws.client("ec2").describe_instances(Filters=filters)
        return sum(len(each["Instances"]) for each in found["Reservations"])


def _room(resources: dict[str, Any]) -> str:
    return f"{resources['maxvCpus']} vCPUs of {', '.join(resources['instanceTypes'])}"
