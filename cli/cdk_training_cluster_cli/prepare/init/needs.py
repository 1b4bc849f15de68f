"""What an orchestrator takes beside the answers: an image where AWS has none, and prices that no list has."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.prices import UNITS
from cdk_training_cluster.prices.names import is_budget_name, wrong_name
from cdk_training_cluster_cli.money.plan.assumptions import pairs
from cdk_training_cluster_cli.prepare.init.asking import Questions, formed, positive
from cdk_training_cluster_file import ClusterFile, fields
from cdk_training_cluster_file.orchestrators.choice import KINDS
from cdk_training_cluster_stacks.building import built_stacks
from cluster_contract.listings import has_source

_PRICES = "https://aws.amazon.com/pcs/pricing/"


def image_for(questions: Questions, given: str | None, info: InstanceTypeInfo, orchestrator: str) -> str | None:
    """Return the image that nodes start from. None: AWS's newest.

    Args:
        questions: Where answers come from.
        given: What an option gave.
        info: What is known of the nodes' type.
        orchestrator: What runs jobs.

    Raises:
        ValueError: It is no image, or AWS has none and there is no terminal to ask on.
    """
    kind = KINDS[orchestrator]
    if given is None and public_image(info, kind) is not None:
        return None
    why = f"AWS publishes no image for {info.name} on {kind.value}"
    if given is None and questions.ask is None:
        raise ValueError(f"--image is required: {why}; give the id of one of yours for {info.architectures[-1]}")
    return questions.answer(
        "--image", given, f"{why}: which one of yours do nodes start from? (ami-…)", formed(fields.Image)
    )


def prices_for(questions: Questions, given: Sequence[str], cluster: ClusterFile) -> Mapping[str, Decimal]:
    """Return what a budget must state of the cluster's orchestrator, in USD an hour by the names of prices.

    Args:
        questions: Where answers come from.
        given: What options gave: `NAME=USD`.
        cluster: The cluster, without its budget.

    Raises:
        ValueError: A price is wrong, or is missing and there is no terminal to ask on.
    """
    stated = pairs("--price", given, positive)
    for name in stated:
        if not is_budget_name(name):
            raise ValueError(f"--price {wrong_name(name, of_budget=True)}")
    with built_stacks(cluster) as (_, stack):
        made = stack.training_cluster
        orchestrator = made.orchestrator
        units = [orchestrator.hourly_units(), *(orchestrator.node_units(fleet) for fleet in made.node_groups)]
    names = sorted({name for name in chain(*units) if not has_source(name, cluster.region)} - stated.keys())
    if names and questions.ask is None:
        options = " ".join(f"--price {name}=USD" for name in names)
        raise ValueError(f"with --budget, {options} are required: look the prices an hour up at {_PRICES}")
    for name in names:
        question = f"What does {UNITS[name].what} cost an hour, in USD? ({_PRICES})"
        stated[name] = questions.answer(f"--price {name}", None, question, positive)
    return stated
