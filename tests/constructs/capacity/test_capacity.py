"""How nodes are bought: what each way refuses."""

import pytest

from cdk_training_cluster import Capacity, instance_type_info


def test_on_demand_buys_one_type() -> None:
    assert Capacity.on_demand().problems([instance_type_info("p5.48xlarge")]) == []
    assert Capacity.on_demand().market == "on-demand"


def test_on_demand_refuses_several_types() -> None:
    types = [instance_type_info(name) for name in ("p5.48xlarge", "p5e.48xlarge")]
    assert Capacity.on_demand().problems(types) == [
        "instance_types must name exactly one type for Capacity.on_demand(), got p5.48xlarge, p5e.48xlarge: make a "
        "node group for each type"
    ]


@pytest.mark.parametrize("name", ["p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "trn2.48xlarge"])
def test_on_demand_takes_what_ec2_sells_on_demand(name: str) -> None:
    info = instance_type_info(name)
    assert ("on-demand" in info.usage_classes) is (Capacity.on_demand().problems([info]) == [])


def test_on_demand_refuses_a_type_that_ec2_sells_otherwise() -> None:
    info = instance_type_info("p6e-gb200.36xlarge")
    assert Capacity.on_demand().problems([info]) == [
        "p6e-gb200.36xlarge cannot be bought with Capacity.on_demand(): its usage classes are capacity-block"
    ]
