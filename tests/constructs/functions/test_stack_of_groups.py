"""Functions count only Auto Scaling groups of their own stack as the cluster's."""

from cdk_training_cluster import Budget, NodeGroup, OnExceed, TrainingCluster
from synthesis import ZONE, new_stack, resources


def test_each_function_that_looks_for_auto_scaling_groups_knows_its_stack() -> None:
    stack = new_stack()
    workers = NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8)
    budget = Budget(monthly_usd=1000, on_exceed=OnExceed.STOP)
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=[workers], budget=budget)

    functions = [one["Properties"] for one in resources(stack, "AWS::Lambda::Function").values()]
    knowing = {one["Handler"].partition(".")[0]: one["Environment"]["Variables"].get("STACK_ID") for one in functions}
    whole = {"Ref": "AWS::StackId"}
    end = {"Fn::Join": ["", ["/", {"Fn::Select": [2, {"Fn::Split": ["/", whole]}]}]]}
    finders = {"cluster_health": end, "cluster_idle": end, "cluster_power": whole, "cluster_spend": end}
    assert {name: knowing.get(name) for name in finders} == finders
