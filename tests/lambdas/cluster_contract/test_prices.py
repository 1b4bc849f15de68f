import pytest

from cluster_contract.prices import on_demand_price, on_demand_prices


@pytest.mark.parametrize(
    ("instance_type", "usd"), [("p5.48xlarge", 55.04), ("p4de.24xlarge", 27.45), ("g5.xlarge", 1.006)]
)
def test_a_known_price_is_that_of_the_price_list(instance_type: str, usd: float) -> None:
    assert on_demand_price(instance_type, "us-east-1") == pytest.approx(usd, abs=0.005)


@pytest.mark.parametrize(
    ("instance_type", "region"),
    [("p5e.48xlarge", "us-east-1"), ("trn2.48xlarge", "us-east-2"), ("p5.48xlarge", "nowhere-1"), ("x9.large", "")],
)
def test_a_price_that_is_not_known_is_not_zero(instance_type: str, region: str) -> None:
    assert on_demand_price(instance_type, region) is None


def test_every_listed_price_is_above_zero() -> None:
    assert on_demand_prices()
    assert all(usd > 0 for regions in on_demand_prices().values() for usd in regions.values())
