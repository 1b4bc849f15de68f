"""What of a policy a group's nodes cannot be asked for, told before anything is made."""

from typing import Any

import pytest
from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import (
    Capacity,
    IdlePolicy,
    IdleScope,
    IdleSignal,
    NodeGroup,
    Placement,
    TrainingCluster,
)
from cdk_training_cluster.nodes.rules import (
    IDLE_RULES,
    ClusterContext,
    NodeGroupContext,
    cluster_problems,
)
from cdk_training_cluster.nodes.rules import node_group_problems as problems_of
from cdk_training_cluster.validation.rule import Rule
from synthesis import ZONE, new_stack

_OWN = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d"})
_NO_METRIC = (
    "its nodes report no such metric and would never be known to be idle; give the group an idle_policy with other "
    "signals"
)


def group(instance_type: str, **settings: Any) -> NodeGroup:
    return NodeGroup("lab", instance_types=[instance_type], count=2, **settings)


def refusal(node_group: NodeGroup, policy: IdlePolicy | None = None) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        TrainingCluster(new_stack(), "Cluster", availability_zone=ZONE, node_groups=[node_group], idle_policy=policy)
    return str(refused.value)


CASES = {
    "a policy where nothing is measured": (
        group("hpc7a.96xlarge", machine_image=_OWN, idle_policy=IdlePolicy(window=Duration.hours(2))),
        None,
        "node group 'lab': idle_policy must be IdlePolicy.off() or left out for hpc7a.96xlarge, which reports no "
        "utilization of accelerators: the idle function could not judge it; utilization_command names a command that "
        "measures it",
    ),
    "a command for what NVIDIA measures": (
        group("g5.xlarge", utilization_command="/opt/percent"),
        None,
        "node group 'lab': utilization_command must be left out for g5.xlarge, got '/opt/percent': it is for "
        "accelerators of makers other than NVIDIA and AWS, whose use nodes report without it",
    ),
    "a command without accelerators": (
        group("hpc7a.96xlarge", machine_image=_OWN, utilization_command="/opt/percent"),
        None,
        "node group 'lab': utilization_command must be left out for hpc7a.96xlarge, got '/opt/percent': it is for "
        "accelerators of makers other than NVIDIA and AWS, whose use nodes report without it",
    ),
    "a command for types with several numbers of accelerators": (
        NodeGroup(
            "lab",
            instance_types=["f2.6xlarge", "f2.12xlarge"],
            count=2,
            machine_image=_OWN,
            capacity=Capacity.spot(),
            utilization_command="/opt/percent",
            idle_policy=IdlePolicy(signals=[IdleSignal.heartbeat()]),
        ),
        None,
        "node group 'lab': utilization_command must be left out for f2.6xlarge and f2.12xlarge, which have different "
        "numbers of accelerators, got '/opt/percent': make a node group of each",
    ),
    "an FPGA that is judged without heartbeats": (
        group("f2.6xlarge", machine_image=_OWN, utilization_command="/opt/percent", placement=Placement.NONE),
        None,
        "node group 'lab': signals of idle_policy must include IdleSignal.heartbeat() for f2.6xlarge, got none: a "
        "design on an FPGA works without CPU or network, and no counter of AWS's says how busy it is",
    ),
    "a warning that is longer than the window": (
        group("g5.xlarge", idle_policy=IdlePolicy(window=Duration.minutes(25))),
        None,
        "node group 'lab': warning of idle_policy must be at most its window, 25 minutes, got 30: a node that now "
        "and then misses a report would be warned of again and again; give a shorter warning or a longer window",
    ),
    "single nodes of a fleet": (
        group("g5.xlarge", capacity=Capacity.spot_fleet(), idle_policy=IdlePolicy(scope=IdleScope.NODE)),
        None,
        "node group 'lab': scope of idle_policy must be IdleScope.GANG for Capacity.spot_fleet(), got "
        "IdleScope.NODE: the fleet itself chooses which of its nodes goes; give the group an idle_policy "
        "of its own",
    ),
    "single nodes of the cluster, a fleet among them": (
        group("g5.xlarge", capacity=Capacity.spot_fleet()),
        IdlePolicy(scope=IdleScope.NODE),
        "node group 'lab': scope of idle_policy must be IdleScope.GANG for Capacity.spot_fleet(), got "
        "IdleScope.NODE: the fleet itself chooses which of its nodes goes; give the group an idle_policy "
        "of its own",
    ),
    "GPU memory of Neuron devices": (
        group("trn1.32xlarge"),
        IdlePolicy(signals=[IdleSignal.network(), IdleSignal.gpu_memory()]),
        "node group 'lab': signals of idle_policy must not include IdleSignal.gpu_memory() for trn1.32xlarge, got "
        f"network, gpu_memory: {_NO_METRIC}",
    ),
    "EFA traffic without EFA": (
        group("g5.xlarge", idle_policy=IdlePolicy(signals=[IdleSignal.efa()])),
        None,
        "node group 'lab': signals of idle_policy must not include IdleSignal.efa() for g5.xlarge without Elastic "
        f"Fabric Adapters, got efa: {_NO_METRIC}",
    ),
}


@pytest.mark.parametrize(("node_group", "policy", "message"), CASES.values(), ids=CASES)
def test_a_policy_that_the_nodes_cannot_be_held_to_is_refused(
    node_group: NodeGroup, policy: IdlePolicy | None, message: str
) -> None:
    assert refusal(node_group, policy) == message


def nodes(node_group: NodeGroup, policy: IdlePolicy | None) -> NodeGroupContext:
    return ClusterContext.of([node_group], policy).nodes[0]


@pytest.mark.parametrize("rule", IDLE_RULES, ids=lambda rule: rule.id)
def test_every_rule_is_the_only_one_to_find_some_mistake(rule: Rule[NodeGroupContext]) -> None:
    rest = [each for each in IDLE_RULES if each is not rule]
    assert any(not problems_of(nodes(node_group, policy), rest) for node_group, policy, _ in CASES.values())


def test_a_setting_that_a_group_leaves_out_is_wrong_in_the_cluster_s_policy() -> None:
    fleet = group("g5.xlarge", capacity=Capacity.spot_fleet(), idle_policy=IdlePolicy(window=Duration.hours(1)))
    (problem,) = cluster_problems(ClusterContext.of([fleet], IdlePolicy(scope=IdleScope.NODE)))
    assert problem.setting == ("idle_policy", "scope")
    own = group("g5.xlarge", capacity=Capacity.spot_fleet(), idle_policy=IdlePolicy(scope=IdleScope.NODE))
    (problem,) = cluster_problems(ClusterContext.of([own]))
    assert problem.setting == ("node_groups", 0, "idle_policy", "scope")


@pytest.mark.parametrize(
    ("node_group", "policy"),
    [
        (group("g5.xlarge", capacity=Capacity.spot_fleet(), idle_policy=IdlePolicy.off()), IdleScope.NODE),
        (
            group("g5.xlarge", capacity=Capacity.spot_fleet(), idle_policy=IdlePolicy(scope=IdleScope.GANG)),
            IdleScope.NODE,
        ),
        (group("hpc7a.96xlarge", machine_image=_OWN, idle_policy=IdlePolicy.off()), None),
        (group("hpc7a.96xlarge", machine_image=_OWN), IdleScope.NODE),
        (group("p5.48xlarge", idle_policy=IdlePolicy(signals=[IdleSignal.efa(), IdleSignal.gpu_memory()])), None),
    ],
)
def test_a_policy_that_the_nodes_can_be_held_to_is_taken(node_group: NodeGroup, policy: IdleScope | None) -> None:
    assert cluster_problems(ClusterContext.of([node_group], IdlePolicy(scope=policy))) == []


def test_what_is_no_policy_is_refused_for_a_cluster() -> None:
    assert refusal(group("g5.xlarge"), policy="off") == (  # type: ignore[arg-type]  # that is the mistake
        "idle_policy must be an IdlePolicy, such as IdlePolicy(window=Duration.minutes(90)), got 'off'"
    )


def test_nodes_that_report_nothing_are_not_stopped() -> None:
    cpu = NodeGroup("cpu", instance_types=["hpc7a.96xlarge"], count=1, machine_image=_OWN)
    found = ClusterContext.of([group("g5.xlarge"), cpu]).nodes
    assert {nodes.group.name: nodes.policy and nodes.policy.is_off for nodes in found} == {"lab": False, "cpu": True}
