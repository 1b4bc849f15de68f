"""Nodes that EC2 does not describe, as the spend function counts them."""

from datetime import UTC, datetime

from cluster_common.owners.groups import OwnedGroup, OwnedNode
from cluster_contract.spend import SpendKind
from cluster_spend.nodes import nodes_of

LAUNCHED = datetime(2026, 11, 2, 8, tzinfo=UTC)


def test_nodes_of_hyperpod_are_billed_under_their_own_type_until_they_end() -> None:
    states = {"i-1": "InService", "i-2": "Pending", "i-3": "Failure", "i-4": "Terminating"}
    nodes = {
        one: OwnedNode(state=state, instance_type="ml.p5.48xlarge", launched=LAUNCHED)
        for one, state in states.items()
    }
    group = OwnedGroup(
        name="pod/workers", node_group="workers", desired=3, minimum=0, maximum=8, in_service=1, nodes=nodes
    )
    found = {node.id: node for node in nodes_of([group])}

    assert {one: node.pending for one, node in found.items()} == {"i-1": False, "i-2": True, "i-3": False}
    item = found["i-1"].item()
    # EC2's price list has no such type: its price is stated, or not known.
    assert (item.kind, "ml.p5.48xlarge" in item.price) == (SpendKind.ON_DEMAND, True)
