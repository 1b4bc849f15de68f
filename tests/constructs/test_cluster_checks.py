"""A cluster's name is its own in an account and region."""

from contextlib import nullcontext
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack, Stage
from constructs import Construct

from cdk_training_cluster import Budget, NodeGroup, TrainingCluster
from cdk_training_cluster.cluster.checks import check_name
from synthesis import ZONE, new_stack

_WORKERS = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)


def _stack(app: App, id: str, where: dict[str, str]) -> Stack:
    scope = Stage(app, where["stage"]) if "stage" in where else app
    place = Environment(account=where.get("account", "111111111111"), region=where.get("region"))
    return Stack(scope, id, env=place if "region" in where else None)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ({}, {}, True),
        ({"region": "us-east-1"}, {"region": "us-east-1"}, True),
        ({"region": "us-east-1", "stage": "One"}, {"region": "us-east-1", "stage": "Two"}, True),
        ({"region": "us-east-1"}, {"region": "us-east-1", "account": "222222222222"}, False),
        ({"stage": "One"}, {"stage": "Two"}, False),
        ({"region": "us-east-1"}, {}, False),
    ],
)
def test_two_clusters_of_one_name_in_one_place_are_refused(
    first: dict[str, str], second: dict[str, str], refused: bool
) -> None:
    app = App()
    one, other = (Construct(_stack(app, *where), "Cluster") for where in (("One", first), ("Two", second)))
    check_name(one, "pod")
    with pytest.raises(ValueError, match="cluster_name must") if refused else nullcontext() as error:
        check_name(other, "pod")
    assert error is None or str(error.value) == (
        "cluster_name must be unique in an account and region, got 'pod' for "
        f"{one.node.path} and {other.node.path}: rename one"
    )


def test_a_cluster_s_name_is_compared_with_those_of_the_app_unless_it_is_not_known_yet() -> None:
    stack = new_stack()
    name = CfnParameter(stack, "Name").value_as_string
    for scope in ("One", "Two"):
        check_name(Construct(stack, scope), name)
    check_name(Construct(stack, "Three"), "pod")
    with pytest.raises(ValueError, match=r"^cluster_name must be unique in an account and region, got 'pod' for "):
        TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=[_WORKERS], cluster_name="pod")


def test_the_name_is_made_of_the_path_unless_it_is_given() -> None:
    cluster = TrainingCluster(new_stack(), "Llama", availability_zone=ZONE, node_groups=[_WORKERS])
    assert cluster.cluster_name.startswith("Test-Llama")


def test_a_refused_cluster_does_not_keep_others_of_its_stack_from_being_made() -> None:
    stack = new_stack()
    settings: dict[str, Any] = {"availability_zone": ZONE, "node_groups": [_WORKERS]}
    TrainingCluster(stack, "First", cluster_name="pod", **settings)
    with pytest.raises(ValueError, match="cluster_name must be unique"):
        TrainingCluster(stack, "Second", cluster_name="pod", **settings)
    budget = Budget(monthly_usd=1000)
    assert TrainingCluster(stack, "Third", cluster_name="other", budget=budget, **settings).spend is not None
