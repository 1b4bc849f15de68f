"""Batch of the local AWS: jobs bring nodes up and leave none behind, and one that cannot start ends."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from batch_template import TAG, batch_template
from cdk_training_cluster.orchestrators.batch.template_rules import REASONS
from cdk_training_cluster.validation.templates.rules import broken_rules
from local_aws import LocalAws
from local_aws_scene import Stacks
from wrong_batch import WRONG


class _Batch:
    def __init__(self, aws: LocalAws, ids: dict[str, str]) -> None:
        self.client, self._aws, self._ids = aws.client("batch"), aws, ids

    def submit(self, nodes: int) -> str:
        return str(
            self.client.submit_job(
                jobName="run",
                jobQueue=self._ids["Queue"],
                jobDefinition="train",
                shareIdentifier="research",
                nodeOverrides={"numNodes": nodes},
            )["jobId"]
        )

    def job(self, job_id: str) -> tuple[str, str]:
        (job,) = self.client.describe_jobs(jobs=[job_id])["jobs"]
        return job["status"], job.get("statusReason", "")

    def nodes(self) -> list[dict[str, Any]]:
        states = {"Name": "instance-state-name", "Values": ["pending", "running"]}
        found = self._aws.client("ec2").describe_instances(
            Filters=[{"Name": f"tag:{TAG['Key']}", "Values": [TAG["Value"]]}, states]
        )
        return [instance for each in found["Reservations"] for instance in each["Instances"]]

    def update(self, **changes: Any) -> None:
        self.client.update_compute_environment(computeEnvironment=self._ids["Environment"], **changes)


def test_jobs_come_from_zero_nodes_and_go_back(aws: LocalAws, stacks: Stacks) -> None:
    template = batch_template()
    stack = stacks.create(template)
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    batch = _Batch(aws, stacks.physical_ids(stack))
    assert batch.nodes() == []

    first = batch.submit(2)
    assert batch.job(first) == ("RUNNING", "")
    nodes = batch.nodes()
    assert [len(each["NetworkInterfaces"]) for each in nodes] == [5, 5]
    assert all(each["Placement"]["GroupName"] and each["IamInstanceProfile"] for each in nodes)
    assert batch.job(first)[0] == "SUCCEEDED"
    assert batch.nodes() == []

    # One that can never start says why, ends, and blocks no other.
    large, small = batch.submit(3), batch.submit(1)
    reason = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"
    assert batch.job(large) == (
        "RUNNABLE",
        f"{reason} - CE(s) associated with the job queue cannot meet the CPU requirement of the job.",
    )
    assert batch.job(small) == ("RUNNING", "")
    assert batch.job(large) == ("FAILED", f"Canceled by JobStateTimeLimit action due to reason: {reason}")

    # While the environment is disabled a job waits, with no reason that would end it.
    batch.update(state="DISABLED")
    waits = batch.submit(1)
    assert [batch.job(waits), batch.job(waits)] == [("RUNNABLE", ""), ("RUNNABLE", "")]

    # A deployment that changes the environment enables it, and writes its maximum again.
    template["Resources"]["Environment"]["Properties"]["ComputeResources"]["MaxvCpus"] = 96
    stacks.update(stack, template)
    assert stacks.status(stack) == "UPDATE_COMPLETE", stacks.reasons(stack)
    assert batch.job(waits)[0] in {"RUNNING", "SUCCEEDED"}
    stacks.api.delete_stack(StackName=stack)
    assert batch.client.describe_compute_environments()["computeEnvironments"] == []


def test_a_queue_with_shares_asks_for_one_and_an_environment_in_use_stays(aws: LocalAws, stacks: Stacks) -> None:
    stack = stacks.create(batch_template())
    ids = stacks.physical_ids(stack)
    batch = aws.client("batch")
    with pytest.raises(ClientError, match="requires shareIdentifier"):
        batch.submit_job(jobName="run", jobQueue=ids["Queue"], jobDefinition="train")
    batch.update_compute_environment(computeEnvironment=ids["Environment"], state="DISABLED")
    with pytest.raises(ClientError, match="found existing JobQueue relationship"):
        batch.delete_compute_environment(computeEnvironment=ids["Environment"])


@pytest.mark.parametrize("wrong", [each for each in WRONG if each.refusal], ids=lambda each: each.name)
def test_what_batch_refuses_fails_to_deploy_for_its_reason(stacks: Stacks, wrong: Any) -> None:
    template = batch_template()
    wrong.change(template["Resources"])
    stack = stacks.create(template)
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    assert wrong.refusal in " ".join(stacks.reasons(stack).values())


def test_the_right_template_breaks_no_rule() -> None:
    assert all(reason in str(batch_template()) for reason in REASONS)
    assert list(broken_rules(batch_template())) == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: each.name)
def test_a_synth_refuses_a_template_only_by_the_rule_that_the_table_names(wrong: Any) -> None:
    template = batch_template()
    wrong.change(template["Resources"])
    assert [rule.id for rule, _ in broken_rules(template)] == ([wrong.rule] if wrong.rule else [])
