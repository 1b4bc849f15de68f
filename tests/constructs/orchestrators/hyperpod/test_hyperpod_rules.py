"""What HyperPod refuses of settings, node groups and templates."""

from typing import Any

import botocore.session
import pytest
from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import (
    DeepHealthCheck,
    HyperPodOrchestration,
    HyperPodSettings,
    IdlePolicy,
    IdleSignal,
    NodeGroup,
)
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.hyperpod.hyperpod_orchestrator import HyperPodOrchestrator
from cdk_training_cluster.orchestrators.hyperpod.instance_types import is_sold
from cdk_training_cluster.validation.templates.rules import broken_rules
from hyperpod_settings import ARN, EKS, GROUP, WORKERS
from wrong_hyperpod import hyperpod_template

BOX = NodeGroup("box", instance_types=["g5.xlarge"], count=1)


_REFUSED: dict[str, tuple[list[NodeGroup], dict[str, Any], str]] = {
    "EKS without its cluster": (
        [WORKERS],
        {"orchestrator": HyperPodOrchestration.EKS, "eks_security_group_id": GROUP},
        "eks_cluster_arn is required on EKS",
    ),
    "EKS without its security group": (
        [WORKERS],
        {"orchestrator": HyperPodOrchestration.EKS, "eks_cluster_arn": ARN},
        "eks_security_group_id is required on EKS: nodes must be in the EKS cluster's own security group",
    ),
    "Slurm with a security group of EKS": (
        [WORKERS],
        {"eks_security_group_id": GROUP},
        "eks_security_group_id must be left out on Slurm",
    ),
    "Slurm with an EKS cluster": ([WORKERS], {"eks_cluster_arn": ARN}, "eks_cluster_arn must be left out on Slurm"),
    "tiered storage on Slurm": (
        [WORKERS],
        {"tiered_storage_percent": 20},
        "tiered_storage_percent needs HyperPod on EKS",
    ),
    "priorities on Slurm": ([WORKERS], {"priority_classes": {"a": 1}}, "priority_classes needs HyperPod on EKS"),
    "a login node on EKS": (
        [WORKERS],
        {**EKS, "login_type": "ml.m5.xlarge"},
        "login_type needs HyperPod on Slurm",
    ),
    "Slurm's own name": (
        [NodeGroup("controller", instance_types=["p5.48xlarge"], count=1)],
        {},
        "the name of a node group must not be 'controller', Slurm's own instance group",
    ),
    "a name with a hyphen at its end": (
        [NodeGroup("workers-", instance_types=["p5.48xlarge"], count=1)],
        {},
        "the name of a node group on HyperPod must be 1 to 63 letters, digits and single hyphens",
    ),
    "a type that SageMaker does not sell": (
        [NodeGroup("inf", instance_types=["inf2.48xlarge"], count=1)],
        {},
        "node group 'inf': instance_types on HyperPod must be accelerated types",
    ),
    "an image that only a launch finds": (
        [
            NodeGroup(
                "workers",
                instance_types=["p5.48xlarge"],
                count=1,
                machine_image=ec2.MachineImage.resolve_ssm_parameter_at_launch("/image"),
            )
        ],
        {},
        "node group 'workers': machine_image must be an AMI's id on HyperPod",
    ),
    "a size of the root volume": (
        [NodeGroup("workers", instance_types=["p5.48xlarge"], count=1, root_volume_gib=500)],
        {},
        "node group 'workers': root_volume_gib must be left out on HyperPod",
    ),
    "a partition of no group": (
        [WORKERS],
        {"partitions": {"worker": "train"}},
        "partitions must name node groups of the cluster, which are workers, got 'worker'",
    ),
    "a group called as the partition of all": (
        [NodeGroup("dev", instance_types=["p5.48xlarge"], count=1)],
        {},
        "node group 'dev': its Slurm partition must not be called so",
    ),
    "a check twice": (
        [WORKERS],
        {"deep_health_checks": [DeepHealthCheck.STRESS, DeepHealthCheck.STRESS]},
        "deep_health_checks must name each check once, got STRESS, STRESS",
    ),
    "a check of EFA without EFA": (
        [BOX],
        {"deep_health_checks": [DeepHealthCheck.CONNECTIVITY]},
        "deep_health_checks must leave out CONNECTIVITY, which tests EFA, where node group 'box' has none",
    ),
    "priorities of bad names": (
        [WORKERS],
        {**EKS, "priority_classes": {"High": 1}},
        "the names of priority_classes must be lower-case letters",
    ),
    "too many priorities": (
        [WORKERS],
        {**EKS, "priority_classes": {f"p{n}": n for n in range(11)}},
        "priority_classes must be at most 10, got 11",
    ),
    "too many groups": (
        [NodeGroup(f"g{n}", instance_types=["p5.48xlarge"], count=1) for n in range(100)],
        {},
        "node_groups on HyperPod must be at most 99, got 100",
    ),
}


@pytest.mark.parametrize(("groups", "settings", "sentence"), _REFUSED.values(), ids=_REFUSED)
def test_what_hyperpod_refuses_is_refused_in_a_sentence(
    groups: list[NodeGroup], settings: dict[str, Any], sentence: str
) -> None:
    orchestrator = HyperPodOrchestrator(HyperPodSettings(**settings))
    (problem,) = orchestrator.problems(
        ClusterContext.of(groups, orchestrator=orchestrator.kind, existing_network=True)
    )
    assert problem.message.startswith(sentence)


def test_a_vpc_that_is_made_is_refused_on_eks() -> None:
    orchestrator = HyperPodOrchestrator(HyperPodSettings(**EKS))
    (problem,) = orchestrator.problems(ClusterContext.of([WORKERS], orchestrator=orchestrator.kind))
    assert problem.message == (
        "network must name the VPC of the EKS cluster and a private subnet of it for HyperPod on EKS, got a VPC that "
        "is made: aws eks describe-cluster --name training shows its resourcesVpcConfig"
    )
    made_in_the_app = Fn.import_value("TrainingArn")
    orchestrator = HyperPodOrchestrator(HyperPodSettings(**{**EKS, "eks_cluster_arn": made_in_the_app}))
    assert list(orchestrator.problems(ClusterContext.of([WORKERS], orchestrator=orchestrator.kind))) == []


def test_priorities_are_warned_of_until_their_add_on_is_there() -> None:
    orchestrator = HyperPodOrchestrator(HyperPodSettings(**EKS, priority_classes={"research": 10}))
    warned = {each.rule: each.message for each in orchestrator.warnings(ClusterContext.of([WORKERS]))}
    assert warned.keys() == {"hyperpodPrices", "hyperpodTaskGovernance"}
    assert "amazon-sagemaker-hyperpod-taskgovernance in the state ACTIVE" in warned["hyperpodTaskGovernance"]


def test_idle_nodes_are_known_by_their_accelerators_alone() -> None:
    """EC2's metrics of their network are in SageMaker's account: with them, no node would ever be idle."""
    orchestrator = HyperPodOrchestrator(HyperPodSettings())
    (nodes,) = ClusterContext.of([WORKERS], orchestrator=orchestrator.kind).nodes
    assert nodes.policy is not None
    assert nodes.policy.host_activity is False
    asked = ClusterContext.of([WORKERS], IdlePolicy(host_activity=True), orchestrator=orchestrator.kind)
    (problem,) = orchestrator.problems(asked)
    assert problem.message.startswith("idle_policy of node group 'workers' must leave host_activity out on HyperPod")


def test_sessions_that_would_not_keep_their_node_are_refused() -> None:
    orchestrator = HyperPodOrchestrator(HyperPodSettings())
    asked = ClusterContext.of([WORKERS], IdlePolicy(signals=[IdleSignal.session()]), orchestrator=orchestrator.kind)
    (problem,) = orchestrator.problems(asked)
    assert problem.message.startswith("idle_policy of node group 'workers' must leave the signal session out on")


def test_a_public_subnet_is_refused() -> None:
    orchestrator = HyperPodOrchestrator(HyperPodSettings())
    (problem,) = orchestrator.problems(
        ClusterContext.of([WORKERS], orchestrator=orchestrator.kind, public_subnet=True)
    )
    assert problem.message.startswith("network must have a private subnet for HyperPod")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("eks_cluster_arn", "training"),
        ("eks_security_group_id", "training"),
        ("controller_type", "m5.xlarge"),
        ("partitions", {"workers": "dev"}),
        ("tiered_storage_percent", 101),
        ("priority_classes", {"high": 101}),
    ],
)
def test_a_setting_of_the_wrong_form_is_refused(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        HyperPodSettings(**{setting: value})


def test_the_types_are_those_of_sagemakers_own_model() -> None:
    sagemaker = botocore.session.get_session().get_service_model("sagemaker")
    shape: Any = sagemaker.shape_for("ClusterInstanceType")
    named = set(shape.enum)
    ours = {info.name for info in all_instance_types() if info.has_nvidia_gpus or info.has_neuron_devices}
    assert {name for name in ours if is_sold(name)} == {name for name in ours if f"ml.{name}" in named}


def test_the_template_that_the_table_changes_breaks_no_rule() -> None:
    assert [rule.id for rule, _ in broken_rules(hyperpod_template())] == []


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("InstanceGroups.1.InstanceCount", 0, "hyperpodCount"),
        ("NodeProvisioningMode", None, "hyperpodProvisioning"),
    ],
)
def test_what_sagemaker_takes_and_bills_or_rolls_back_breaks_a_rule(path: str, value: object, rule: str) -> None:
    template = hyperpod_template()
    place: Any = template["Resources"]["HyperPod"]["Properties"]
    *parents, name = path.split(".")
    for each in parents:
        place = place[int(each) if each.isdecimal() else each]
    place[name] = value
    assert [each.id for each, _ in broken_rules(template)] == [rule]
