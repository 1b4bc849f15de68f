"""AWS PCS: what it refuses, as synth does before it, and how compute node groups have nodes."""

import pytest
from botocore.exceptions import ClientError

from cdk_training_cluster.orchestrators.slurm import template_rules
from cdk_training_cluster.validation.templates.rules import broken_rules
from local_aws import LocalAws
from local_aws_scene import Stacks
from pcs_scene import pcs_cluster
from wrong_pcs import WRONG_PCS, Change, changed

assert template_rules


@pytest.mark.parametrize(("change", "said", "rule"), WRONG_PCS.values(), ids=WRONG_PCS)
def test_pcs_refuses_a_wrong_template_and_synth_only_by_a_rule_of_its_own(
    stacks: Stacks, change: Change, said: str, rule: str
) -> None:
    template = changed(pcs_cluster(), change)
    assert [found.id for found, _ in broken_rules(template, size=None)] == ([rule] if rule else [])
    name = stacks.create(template)
    assert any(said in reason for reason in stacks.reasons(name).values()), stacks.reasons(name)


def test_a_group_has_the_nodes_that_jobs_need_and_loses_them_with_its_size(stacks: Stacks, aws: LocalAws) -> None:
    template = pcs_cluster()
    assert list(broken_rules(template, size=None)) == []
    name = stacks.create(template)
    assert stacks.reasons(name) == {}
    pcs, ec2 = aws.client("pcs"), aws.client("ec2")
    ids = stacks.physical_ids(name)
    cluster, group = ids["Slurm"].rpartition("/")[2], ids["Nodes"].rpartition("/")[2]
    named = {"clusterIdentifier": cluster, "computeNodeGroupIdentifier": group}

    def running() -> int:
        filters = [
            {"Name": "tag:aws:pcs:compute-node-group-id", "Values": [group]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        found = ec2.describe_instances(Filters=filters)["Reservations"]
        return sum(len(each["Instances"]) for each in found)

    assert running() == 0
    aws.need_slurm_nodes(group, 3)
    assert running() == 3
    pcs.update_compute_node_group(**named, scalingConfiguration={"minInstanceCount": 0, "maxInstanceCount": 1})
    assert running() == 1
    update = {"clusterIdentifier": cluster, "slurmConfiguration": {"scaleDownIdleTimeInSeconds": 900}}
    with pytest.raises(ClientError, match="ConflictException"):
        pcs.update_cluster(**update)
    assert pcs.get_compute_node_group(**named)["computeNodeGroup"]["status"] == "ACTIVE"
    pcs.update_cluster(**update)
    pcs.update_compute_node_group(**named, scalingConfiguration={"minInstanceCount": 2, "maxInstanceCount": 2})
    assert running() == 2
    assert [each["name"] for each in pcs.list_queues(clusterIdentifier=cluster)["queues"]] == ["main"]
