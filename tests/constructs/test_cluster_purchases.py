"""A cluster whose node groups are bought in each way: what the power function knows, and how large a template is."""

import json

import pytest
from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, Dataset, NodeGroup, OnIdle, TrainingCluster, WarmPool
from synthesis import ZONE, new_stack, only

_ID, _BLOCK = "cr-0a1b2c3d4e5f6789", "cr-0b1b2c3d4e5f6789"
_LISTED = Capacity.prioritized(reservations=[f"{_ID}0"])
_RELEASED = Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)

# By the name of a node group: how it is bought, its types, and its settings of the power function beside the count.
_SETTINGS: dict[str, tuple[Capacity, list[str], dict[str, object]]] = {
    "on-demand": (Capacity.on_demand(), ["p5.48xlarge"], {}),
    "spot": (Capacity.spot(), ["p5.48xlarge"], {}),
    "fleet": (Capacity.spot_fleet(), ["p5.48xlarge"], {"owner": "spot_fleet <AWS::EC2::SpotFleet>"}),
    "reserved": (
        Capacity.reservation(end=UNTIL_CANCELLED),
        ["p5.48xlarge"],
        {"reservation": "<Custom::CapacityReservation>"},
    ),
    "released": (_RELEASED, ["p5.48xlarge"], {"released": "<Custom::CapacityReservation>"}),
    "existing": (Capacity.from_reservation(f"{_ID}1"), ["p5.48xlarge"], {"reservation": f"{_ID}1"}),
    "block": (Capacity.capacity_block(f"{_BLOCK}1"), ["p5.48xlarge"], {"block": f"{_BLOCK}1"}),
    "ultraserver": (
        Capacity.capacity_block(f"{_BLOCK}3"),
        ["p6e-gb200.36xlarge"],
        {"block": f"{_BLOCK}3", "block_ends_early": 3600},
    ),
    "listed": (_LISTED, ["p5.48xlarge"], {"listed": [f"{_ID}0"]}),
    "both": (
        Capacity.prioritized(
            reservations=[f"{_ID}2"],
            capacity_blocks=[f"{_BLOCK}5", f"arn:aws:ec2:us-east-1:444455556666:capacity-reservation/{_BLOCK}6"],
        ),
        ["p5.48xlarge"],
        {"blocks": [f"{_BLOCK}5", f"{_BLOCK}6"], "listed": [f"{_ID}2"]},
    ),
    "only-blocks": (
        Capacity.prioritized(capacity_blocks=[f"{_BLOCK}7"], on_demand=False),
        ["p5.48xlarge", "p6e-gb200.36xlarge"],
        {"blocks": [f"{_BLOCK}7"], "on_demand": False, "block_ends_early": 3600},
    ),
}


@pytest.fixture(scope="module")
def bought() -> Stack:
    """Return the stack of a cluster with a node group that is bought in each way, and one with a warm pool."""
    stack = new_stack()
    groups = [
        NodeGroup(name, instance_types=types, count=4, capacity=capacity)
        for name, (capacity, types, _) in _SETTINGS.items()
    ]
    warm = NodeGroup("workers", instance_types=["p4de.24xlarge"], count=8, warm_pool=WarmPool(size=2))
    TrainingCluster(stack, "Cluster", availability_zone=ZONE, node_groups=[*groups, warm])
    return stack


def test_the_power_function_s_settings_say_how_nodes_are_bought(bought: Stack) -> None:
    template = Template.from_stack(bought).to_json()["Resources"]
    function = only(bought, "AWS::Lambda::Function", {"Handler": "cluster_power.handler.handler"})
    settings = function["Properties"]["Environment"]["Variables"]["CLUSTER_POWER_SETTINGS"]
    pieces = settings["Fn::Join"][1]
    text = "".join(each if isinstance(each, str) else f"<{template[each['Ref']]['Type']}>" for each in pieces)
    assert json.loads(text)["groups"] == {
        **{name: {"count": 4, **own} for name, (_, _, own) in _SETTINGS.items()},
        "workers": {"count": 8, "warm_pool": True},
    }


def test_fifty_groups_of_p5_stay_within_what_cloudformation_takes(bought: Stack) -> None:
    template = Template.from_stack(bought).to_json()["Resources"]
    shared = {key: each for key, each in template.items() if not key.startswith("ClusterNodeGroups")}
    # Written without indentation, as the stacks of cluster files with many groups are. Beside its own resources a
    # group is named in a few lines more.
    for name in ("ondemand", "spot", "reserved", "released", "existing", "block", "listed"):
        own = {key: each for key, each in template.items() if key.startswith(f"ClusterNodeGroups{name}")}
        assert own, name
        assert len(shared) + 50 * len(own) <= 500, name
        assert len(json.dumps(shared)) + 50 * (len(json.dumps(own)) + 1000) <= 1_000_000, name


def test_eight_p5_with_network_and_file_system_are_a_small_template() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    pod = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)
    datasets = [Dataset(bucket=corpus, file_system_path="/data")]
    TrainingCluster(
        stack, "Cluster", availability_zone=ZONE, node_groups=[pod], datasets=datasets, cluster_name="pod"
    )
    template = Template.from_stack(stack).to_json()
    only(stack, "AWS::EC2::VPC")
    # Of them 24 are the power function's, 23 the health function's, 21 the network's, 20 the idle stop's, 2 the jobs'
    # role's. Three functions have the id of the stack in their environments, 200 bytes together. The description has
    # the security group of the nodes, and each cluster has two namespaces of metrics, 340 bytes together.
    assert len(template["Resources"]) <= 123
    # As CDK writes it, indented by one space.
    assert len(json.dumps(template, indent=1)) <= 150_500
