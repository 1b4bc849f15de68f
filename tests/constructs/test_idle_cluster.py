"""The whole cluster and its idle nodes: who watches, by what policy, and who may start them again."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from cdk_training_cluster import IdlePolicy, IdleScope, IdleSignal, NodeGroup, TrainingCluster
from synthesis import ZONE, new_stack, only, resources

_IDLE = {"Handler": "cluster_idle.handler.handler"}
_WORKERS = NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8)


def _cluster(stack: Stack, **settings: Any) -> TrainingCluster:
    whole = {"availability_zone": ZONE, "node_groups": [_WORKERS], "cluster_name": "pod", **settings}
    return TrainingCluster(stack, "Cluster", **whole)


def test_idle_nodes_are_stopped_unless_a_policy_says_otherwise() -> None:
    stack = new_stack()
    cluster = _cluster(stack)
    assert cluster.idle_stop is not None
    assert cluster.metric_idle_nodes().metric_name == "IdleNodes"
    only(stack, "AWS::Lambda::Function", _IDLE)


@pytest.mark.parametrize(
    ("own", "policy"),
    [(None, IdlePolicy.off()), (IdlePolicy.off(), None), (IdlePolicy.off(), IdlePolicy.off())],
)
def test_where_every_policy_is_off_no_function_watches(own: IdlePolicy | None, policy: IdlePolicy | None) -> None:
    stack = new_stack()
    cluster = _cluster(stack, node_groups=[replace(_WORKERS, idle_policy=own)], idle_policy=policy)
    assert cluster.idle_stop is None
    assert resources(stack, "AWS::Lambda::Function", _IDLE) == {}
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        cluster.metric_idle_nodes()
    assert str(refused.value) == (
        "there is no metric of idle nodes: every node group's idle_policy is IdlePolicy.off()"
    )


def test_a_group_of_its_own_mind_brings_the_function_back() -> None:
    lab = NodeGroup("lab", instance_types=["g5.xlarge"], count=1, idle_policy=IdlePolicy(is_off=False))
    cluster = _cluster(new_stack(), node_groups=[_WORKERS, lab], idle_policy=IdlePolicy.off())
    assert cluster.idle_stop is not None
    assert {name: policy.is_off for name, policy in cluster.idle_stop.policies.items()} == {
        "workers": True,
        "lab": False,
    }


@pytest.mark.parametrize(("scope", "allowed"), [(None, False), (IdleScope.NODE, True)])
def test_single_nodes_are_terminated_where_they_go_one_by_one(scope: IdleScope | None, allowed: bool) -> None:
    stack = new_stack()
    _cluster(stack, idle_policy=IdlePolicy(scope=scope))
    policies = resources(stack, "AWS::IAM::Policy")
    [power] = (str(policy) for name, policy in policies.items() if "ClusterPower" in name and "Function" in name)
    assert ("autoscaling:TerminateInstanceInAutoScalingGroup" in power) is allowed


def test_nodes_report_efa_traffic_where_their_policy_looks_at_it() -> None:
    looks = IdlePolicy(signals=[IdleSignal.efa()])
    groups = [
        NodeGroup("looks", instance_types=["p5.48xlarge"], count=8, idle_policy=looks),
        NodeGroup("usual", instance_types=["p5.48xlarge"], count=8),
        NodeGroup("off", instance_types=["p5.48xlarge"], count=8, idle_policy=replace(looks, is_off=True)),
    ]
    stack = new_stack()
    _cluster(stack, node_groups=groups)
    looking, usual, off = (_scripts(stack, group.name) for group in groups)
    assert looking != usual == off


def _scripts(stack: Stack, group: str) -> str:
    """Return the asset that a node group's nodes are set up from."""
    (template,) = (
        json.dumps(each)
        for each in resources(stack, "AWS::EC2::LaunchTemplate").values()
        if f'"{group}"' in json.dumps(each)
    )
    (found,) = set(re.findall(r"([0-9a-f]{64})\.zip", template))
    return str(found)


def test_resuming_can_be_granted() -> None:
    stack = new_stack()
    cluster = _cluster(stack)
    role = iam.Role(stack, "Operators", assumed_by=iam.AccountRootPrincipal())
    cluster.grant_resume(role)
    (policy,) = resources(stack, "AWS::IAM::Policy", {"Roles": [stack.resolve(role.role_name)]}).values()
    assert [statement["Action"] for statement in policy["Properties"]["PolicyDocument"]["Statement"]] == [
        "ssm:StartAutomationExecution",
        "ssm:GetAutomationExecution",
        "iam:PassRole",
    ]
