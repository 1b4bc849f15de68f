"""What AWS Batch does not take of a cluster: each rule once, and a neighbour that breaks none."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aws_cdk import Duration

from cdk_training_cluster import BatchJob, BatchQueue, BatchSettings, GpuSharing, NodeGroup
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.batch.batch_orchestrator import BatchOrchestrator

P5, G5, ARM = "p5.48xlarge", "g5.48xlarge", "g5g.16xlarge"


def group(name: str, type_name: str = P5, **settings: Any) -> NodeGroup:
    return NodeGroup(name, instance_types=[type_name], **{"count": 4, **settings})


def job(**settings: Any) -> BatchJob:
    return BatchJob("train", image="image", command=["run"], **settings)


def problems(groups: Sequence[NodeGroup], batch: BatchSettings, **context: Any) -> Mapping[str, str]:
    together = ClusterContext.of(groups, orchestrator=OrchestratorKind.BATCH, **context)
    found = BatchOrchestrator(batch).problems(together)
    return {each.rule: f"{'.'.join(map(str, each.setting))}: {each.message}" for each in found}


def test_usual_settings_break_no_rule() -> None:
    groups = [group("workers"), group("others", G5)]
    batch = BatchSettings(
        queues=[
            BatchQueue("urgent", priority=10, node_groups=["workers"]),
            BatchQueue("main", shares={"team*": 0.5}),
        ],
        jobs=[job(nodes=4, node_group="others", memory_mib=700_000)],
    )
    assert problems(groups, batch) == {}


@pytest.mark.parametrize(
    ("rule", "groups", "batch", "said"),
    [
        (
            "batchNames",
            [group("workers")],
            BatchSettings(queues=[BatchQueue("main"), BatchQueue("main")]),
            "batch.queues: queues must have names of their own, got main twice",
        ),
        (
            "batchNodeGroups",
            [group("workers")],
            BatchSettings(queues=[BatchQueue("main"), BatchQueue("x", node_groups=["w"])]),
            "batch.queues.1.node_groups: queue 'x' must use node groups of the cluster, which are workers, got 'w'",
        ),
        (
            "batchNodeGroups",
            [group("workers")],
            BatchSettings(jobs=[job(node_group="w")]),
            "batch.jobs.0.node_group: job 'train' must run on a node group of the cluster, which are workers, "
            "got 'w'",
        ),
        (
            "batchQueueEnvironments",
            [group(name) for name in "abcd"],
            BatchSettings(),
            "batch.queues: queue 'main' must use at most 3 node groups, got 4: Batch takes so many compute "
            "environments a queue; list node_groups, and make more queues",
        ),
        (
            "batchQueueArchitecture",
            [group("workers"), group("arm", ARM)],
            BatchSettings(queues=[BatchQueue("main")]),
            "batch.queues.0.node_groups: queue 'main' must use node groups of one architecture, got p5.48xlarge "
            "(x86_64), g5g.16xlarge (arm64): make a queue of each",
        ),
        (
            "batchUnusedGroup",
            [group("workers"), group("others")],
            BatchSettings(queues=[BatchQueue("main", node_groups=["workers"])]),
            "node_groups.1.name: node group 'others' is in no queue, so that no job can run on it: list it in a "
            "queue",
        ),
        (
            "batchJobNodes",
            [group("workers")],
            BatchSettings(jobs=[job(nodes=5)]),
            "batch.jobs.0.nodes: job 'train' must run on at most the 4 nodes of node group 'workers', got 5: it "
            "could "
            "never start; raise count, or take fewer nodes",
        ),
        (
            "batchJobMemory",
            [group("workers")],
            BatchSettings(jobs=[job(memory_mib=2_097_152)]),
            "batch.jobs.0.memory_mib: memory_mib of job 'train' must be below the 2097152 of p5.48xlarge, got "
            "2097152: "
            "a part is the system's and the ECS agent's, and the job could never start; leave it out for 90 percent",
        ),
        (
            "batchGpuSharing",
            [group("workers", gpu_sharing=GpuSharing.mps(2))],
            BatchSettings(),
            "node_groups.0.gpu_sharing: node group 'workers': gpu_sharing must be left out with AWS Batch, "
            "whose jobs "
            "take whole GPUs; use Slurm or EKS to share them",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("batch") and ":" not in value else "",
)
def test_what_batch_does_not_take_is_one_sentence(
    rule: str, groups: list[NodeGroup], batch: BatchSettings, said: str
) -> None:
    assert problems(groups, batch) == {rule: said}


def test_containers_of_a_public_subnet_have_no_way_out() -> None:
    (said,) = problems([group("workers")], BatchSettings(), public_subnet=True).items()
    assert said == (
        "batchPublicSubnet",
        "network: the nodes' subnet must be private with a NAT gateway on AWS Batch, got a public one: the "
        "containers "
        "of multi-node jobs get no public address, and would have no way out",
    )


@pytest.mark.parametrize("existing", [True, False])
def test_a_vpc_of_the_user_s_must_let_containers_reach_each_other(existing: bool) -> None:
    together = ClusterContext.of([group("workers")], orchestrator=OrchestratorKind.BATCH, existing_network=existing)
    found = {each.rule: each.message for each in BatchOrchestrator(BatchSettings()).warnings(together)}
    assert list(found) == (["batchDefaultSecurityGroup"] if existing else [])
    assert all("must allow all traffic from itself and all traffic out" in said for said in found.values())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BatchQueue("a b"), "name must be up to 63 letters, digits, '_' and '-', a letter or digit first"),
        (lambda: BatchQueue("a", node_groups=[]), "node_groups of queue 'a' must name one or more node groups once"),
        (lambda: BatchQueue("a", priority=1001), "priority must be at most 1000, got 1001"),
        (lambda: BatchQueue("a", shares={"a-b": 1}), "shares of queue 'a' must be identified by up to 255 letters"),
        (lambda: BatchQueue("a", shares={"a": 0}), "the weight of share 'a' of queue 'a' must be from 0.0001 to"),
        (lambda: BatchQueue("a", shares={f"s{one}": 1 for one in range(501)}), "must be at most 500, got 501"),
        (lambda: BatchJob("a", image="", command=["b"]), "image of job 'a' must not be empty"),
        (lambda: BatchJob("a", image="b", command=[]), "command of job 'a' must not be empty"),
        (lambda: job(attempts=11), "attempts must be at most 10, got 11"),
        (lambda: job(memory_mib=64, shared_memory_mib=65), "must be at most its memory_mib, 64, got 65"),
        (lambda: BatchSettings(unplaceable_timeout=Duration.minutes(9)), "must be from 10 minutes to 1 day"),
        (lambda: BatchSettings(scale_down_delay=Duration.minutes(19)), "must be from 20 minutes to 7 days"),
        (lambda: BatchSettings(update_timeout=Duration.days(6)), "must be from 1 minute to 5 days"),
    ],
)
def test_a_wrong_setting_says_what_is_allowed(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        make()
