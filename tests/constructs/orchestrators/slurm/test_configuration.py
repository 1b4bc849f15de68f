"""The Slurm settings that PCS gets for given settings."""

from collections.abc import Mapping

import pytest
from aws_cdk import Duration

from cdk_training_cluster import Capacity, GpuSharing, NodeGroup
from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import SlurmConfiguration, slurm_configuration
from cdk_training_cluster.orchestrators.slurm.gres import node_gres
from cdk_training_cluster.orchestrators.slurm.rules import SLURM_RULES, SlurmContext
from cdk_training_cluster.orchestrators.slurm.settings import (
    LoginNodes,
    Preemption,
    SlurmNodes,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
)
from cdk_training_cluster.validation.rule import Level, broken

P5 = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)
SPOT = NodeGroup("extra", instance_types=["p4d.24xlarge"], count=4, capacity=Capacity.spot())
BLOCK = NodeGroup(
    "block",
    instance_types=["p5.48xlarge"],
    count=4,
    capacity=Capacity.capacity_block("cr-0a1b2c3d4e5f67890"),
)
LOW = SlurmQueue("low", preemption=Preemption.REQUEUE, grace_time=Duration.minutes(2))
HIGH = SlurmQueue("high", priority_tier=10, max_time=Duration.days(2))


def configuration(*groups: NodeGroup, slurm: SlurmSettings | None = None) -> SlurmConfiguration:
    return slurm_configuration(slurm or SlurmSettings(), ClusterContext.of(groups or [P5]))


def test_a_cluster_without_settings_has_a_queue_for_each_node_group() -> None:
    made = configuration(P5, SPOT)
    queue, other = made.queues
    assert (queue.name, queue.node_groups) == ("workers", ["workers"])
    assert (other.name, other.node_groups, other.settings["Default"]) == ("extra", ["extra"], "NO")
    assert queue.settings == {"Default": "YES", "PriorityTier": "1", "PreemptMode": "OFF"}
    assert made.settings == {
        "Prolog": "/opt/cdk-training-cluster/slurm/prolog.sh",
        "PrologFlags": "Alloc",
        "Epilog": "/opt/cdk-training-cluster/slurm/epilog.sh",
        "HealthCheckProgram": "/opt/cdk-training-cluster/slurm/health-check.sh",
        "HealthCheckInterval": "60",
        "HealthCheckNodeState": "ANY",
        "JobRequeue": "1",
        "SelectTypeParameters": "CR_CPU",
        "RequeueExit": "99",
        "SchedulerParameters": "nohold_on_prolog_fail,requeue_delay=5",
    }
    assert made.scale_down_idle_seconds == 600


def test_jobs_of_a_preempted_queue_get_their_signal_and_their_grace_time() -> None:
    made = configuration(slurm=SlurmSettings(queues=[LOW, HIGH]))
    assert made.settings["PreemptType"] == "preempt/partition_prio"
    assert made.settings["PreemptMode"] == "REQUEUE"
    assert made.settings["PreemptParameters"] == "send_user_signal"
    low, high = (queue.settings for queue in made.queues)
    assert low == {"Default": "YES", "PriorityTier": "1", "PreemptMode": "REQUEUE", "GraceTime": "120"}
    assert high == {"Default": "NO", "PriorityTier": "10", "PreemptMode": "OFF", "MaxTime": "2880"}


def test_items_of_a_users_lists_are_added_and_replace_those_of_their_name() -> None:
    own = {"SchedulerParameters": "bf_window=2880,requeue_delay=30", "MinJobAge": "600"}
    made = configuration(slurm=SlurmSettings(custom_settings=own))
    assert made.settings["SchedulerParameters"] == "nohold_on_prolog_fail,requeue_delay=30,bf_window=2880"
    assert made.settings["MinJobAge"] == "600"


@pytest.mark.parametrize(
    ("select", "limits_memory"),
    [(None, False), ("CR_Core", False), ("CR_CPU_Memory", True), ("cr_core_memory,CR_ONE_TASK_PER_CORE", True)],
)
def test_control_groups_limit_the_memory_of_jobs_where_slurm_gives_it_out(
    select: str | None, *, limits_memory: bool
) -> None:
    own = {} if select is None else {"SelectTypeParameters": select, "DefMemPerCPU": "8000"}
    made = configuration(slurm=SlurmSettings(custom_settings=own))
    assert made.cgroup_settings == {
        "ConstrainCores": "yes",
        "ConstrainDevices": "yes",
        **({"ConstrainRAMSpace": "yes"} if limits_memory else {}),
    }


def test_slurm_gives_out_first_what_is_paid_for_and_what_is_cheap() -> None:
    groups = {each.name: each for each in configuration(P5, SPOT, BLOCK).node_groups}
    weights = {name: each.settings["Weight"] for name, each in groups.items()}
    assert weights == {"block": "1", "extra": "50", "workers": "100"}
    assert {name for name, each in groups.items() if each.fixed} == {"block"}
    assert groups["workers"].settings["Features"] == "workers,p5.48xlarge"


def test_what_a_user_says_of_nodes_goes_before_the_librarys() -> None:
    nodes = SlurmNodes(
        fixed=True, scale_down_idle_time=Duration.minutes(30), custom_settings={"Weight": "7", "Features": "fast"}
    )
    [group] = configuration(slurm=SlurmSettings(node_groups={"workers": nodes})).node_groups
    assert (group.fixed, group.scale_down_idle_seconds, group.settings["Weight"]) == (True, 1800, "7")
    assert group.settings["Features"] == "workers,p5.48xlarge,fast"


@pytest.mark.parametrize(
    ("made", "resources", "records"),
    [
        (node_gres(instance_type_info("g6.xlarge")), "gpu:1", [{"Name": "gpu", "File": "/dev/nvidia0"}]),
        (
            node_gres(instance_type_info("trn1.32xlarge")),
            "neuron:16",
            [{"Name": "neuron", "File": "/dev/neuron[0-15]"}],
        ),
        (node_gres(instance_type_info("c7i.48xlarge")), "", []),
        (
            node_gres(instance_type_info("p5.48xlarge"), GpuSharing.mps(4)),
            "gpu:8,mps:32",
            [{"Name": "gpu", "File": "/dev/nvidia[0-7]"}, {"Name": "mps", "Count": "32"}],
        ),
        (
            node_gres(instance_type_info("p5.48xlarge"), GpuSharing.mig({"3g.40gb": 1, "1g.10gb": 4})),
            "gpu:3g.40gb:8,gpu:1g.10gb:32",
            [{"AutoDetect": "nvml"}],
        ),
    ],
)
def test_jobs_ask_for_the_accelerators_that_the_catalog_counts(
    made: object, resources: str, records: list[Mapping[str, str]]
) -> None:
    assert (made.text, made.records) == (resources, records)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("level", "name", "mend"),
    [
        (SlurmSettings, "SlurmctldParameters", "SlurmctldParameters: nearest are"),
        (SlurmSettings, "PreemptMod", "PreemptMod: nearest are PreemptMode, "),
        (SlurmSettings, "Weight", "Weight: it is a setting of a node group"),
        (SlurmSettings, "PreemptMode", "PreemptMode: use preemption of a queue"),
        (SlurmSettings, "JobRequeue", "JobRequeue: with another value no job of a lost node runs again"),
        (SlurmSettings, "RequeueExit", "RequeueExit: use requeue_exit_codes"),
        (SlurmSettings, "HealthCheckInterval", "health_check_minutes in a cluster file"),
        (SlurmNodes, "Gres", "Gres: it follows from the instance types and gpu_sharing of the node group"),
        (SlurmNodes, "AuthInfo", "got AuthInfo: AWS PCS sets it itself, or Slurm has none of that name"),
    ],
)
def test_a_setting_that_pcs_does_not_take_is_refused_with_what_to_write(
    level: type[SlurmSettings | SlurmNodes], name: str, mend: str
) -> None:
    with pytest.raises(ValueError, match=mend):
        level(custom_settings={name: "1"})


@pytest.mark.parametrize("weight", ["heavy", "-1", "1.5", ""])
def test_a_weight_is_a_whole_number(weight: str) -> None:
    with pytest.raises(ValueError, match=f"must give Weight as a whole number, such as '10', got '{weight}'"):
        SlurmNodes(custom_settings={"Weight": weight})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"queues": [LOW]},
            "preemption of queue 'low' must be OFF, got REQUEUE: no queue with a priority_tier above 1",
        ),
        ({"queues": [HIGH, HIGH]}, "queues must have a name of its own each, got 'high' 2 times"),
        ({"queues": [SlurmQueue("one", node_groups=["others"])]}, "are workers, got 'others'"),
        ({"queues": [SlurmQueue("one", node_groups=["others"])]}, "node group 'workers' must be in a queue"),
        *(
            (
                {"login": LoginNodes(instance_type=name)},
                f"without accelerators, since no job runs on them, got {name}",
            )
            for name in ("p5.48xlarge", "g6.xlarge", "gr6.4xlarge", "trn1.2xlarge", "inf2.xlarge")
        ),
        ({"node_groups": {"others": SlurmNodes()}}, "node groups of the cluster, which are workers, got 'others'"),
    ],
)
def test_settings_that_do_not_fit_the_node_groups_are_refused(settings: dict[str, object], sentence: str) -> None:
    context = SlurmContext(slurm=SlurmSettings(**settings), cluster=ClusterContext.of([P5]))  # type: ignore[arg-type]
    assert any(sentence in str(each) for each in broken(SLURM_RULES, context))


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (NodeGroup("login", instance_types=["p5.48xlarge"], count=1), "must not be 'login'"),
        (NodeGroup("w" * 26, instance_types=["p5.48xlarge"], count=1), "must be 3 to 25 letters"),
        (
            NodeGroup("mixed", instance_types=["p5.48xlarge", "p4d.24xlarge"], count=1, capacity=Capacity.spot()),
            "got p5.48xlarge (192, 8), p4d.24xlarge (96, 8): make a node group of each",
        ),
    ],
)
def test_node_groups_that_pcs_cannot_have_are_refused(group: NodeGroup, sentence: str) -> None:
    context = SlurmContext(slurm=SlurmSettings(), cluster=ClusterContext.of([group]))
    assert any(sentence in str(each) for each in broken(SLURM_RULES, context))


@pytest.mark.parametrize(
    ("count", "size", "warned"), [(15, None, False), (16, None, True), (16, SlurmSize.MEDIUM, False)]
)
def test_a_cluster_that_more_nodes_would_replace_is_warned_of(
    count: int, size: SlurmSize | None, warned: bool
) -> None:
    group = NodeGroup("workers", instance_types=["p5.48xlarge"], count=count)
    context = SlurmContext(slurm=SlurmSettings(size=size), cluster=ClusterContext.of([group]))
    found = [each.rule for each in broken(SLURM_RULES, context, level=Level.WARNING)]
    assert found == (["slurmRoomToGrow"] if warned else [])


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        *((name, "arm64") for name in ("a1.xlarge", "t4g.large", "c7gn.xlarge", "m8gd.xlarge", "im4gn.large")),
        *(
            (name, "x86_64")
            for name in ("m7i.2xlarge", "m7i-flex.large", "c6a.large", "r5dn.large", "u7i-6tb.112xlarge")
        ),
    ],
)
def test_the_architecture_of_login_nodes_follows_from_their_type(name: str, architecture: str) -> None:
    assert LoginNodes(instance_type=name).architecture == architecture


def test_a_grace_time_without_preemption_is_refused() -> None:
    with pytest.raises(ValueError, match="must be left out where preemption is off, got 2 minutes"):
        SlurmQueue("low", grace_time=Duration.minutes(2))
