"""Functions count only Auto Scaling groups of their own stack as the cluster's."""

from aws_cdk import App, Stack
from aws_cdk import aws_iam as iam

from cdk_training_cluster import Budget, NodeGroup, OnExceed, TrainingCluster
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import let_nodes_complete_actions
from cluster_contract.owners import logical_id_digest
from synthesis import ZONE, new_stack, only, resources

LAMBDA = "AWS::Lambda::Function"


def _cluster(stack: Stack) -> TrainingCluster:
    workers = NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8)
    budget = Budget(monthly_usd=1000, on_exceed=OnExceed.STOP)
    return TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=[workers], budget=budget)


def test_each_function_that_looks_for_auto_scaling_groups_knows_its_stack() -> None:
    stack = new_stack()
    _cluster(stack)

    functions = [one["Properties"] for one in resources(stack, LAMBDA).values()]
    knowing = {one["Handler"].partition(".")[0]: one["Environment"]["Variables"].get("STACK_ID") for one in functions}
    finders = {"cluster_health", "cluster_idle", "cluster_power", "cluster_spend"}
    assert {name: knowing.get(name) for name in finders} == {name: {"Ref": "AWS::StackId"} for name in finders}


def test_each_of_these_functions_knows_the_groups_by_the_logical_ids_that_the_template_has_in_the_end() -> None:
    stack = new_stack()
    cluster = _cluster(stack)
    cluster.node_group("workers").auto_scaling_group.override_logical_id("Chosen")

    variables = [one["Properties"]["Environment"]["Variables"] for one in resources(stack, LAMBDA).values()]
    texts = [str(value) for one in variables for name, value in one.items() if name.endswith("_SETTINGS")]
    assert sum(f'"resource":"{logical_id_digest("Chosen")}"' in text for text in texts) == 4


def test_nodes_with_a_role_of_another_stack_complete_actions_of_groups_with_the_tag_of_the_cluster() -> None:
    app = App()
    roles, nodes = Stack(app, "Roles"), Stack(app, "Nodes")
    role = iam.Role(roles, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    let_nodes_complete_actions(nodes, role, "pod")
    policy = only(roles, "AWS::IAM::Policy")["Properties"]["PolicyDocument"]["Statement"]
    assert policy[-1]["Condition"] == {"StringEquals": {"aws:ResourceTag/cdk-training-cluster:cluster": "pod"}}
